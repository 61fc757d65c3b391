"""An asyncio loop inside of a trio program; imported only when there is use for one.

The import of trio-asyncio changes functions of asyncio for the whole process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, NoReturn, TypeAlias

import trio
import trio_asyncio

from .nursery import gravest

log = logging.getLogger("triolet.asyncio")

HEEDING_SECS = 1.0
"""How long tasks that were left behind may take to end before anybody is told."""

AsyncioFunction: TypeAlias = Callable[..., Awaitable[Any]]
AnyCoroutine: TypeAlias = Coroutine[Any, Any, Any] | Generator[Any, None, Any]
Escape: TypeAlias = SystemExit | KeyboardInterrupt


class AsyncioLoop:
    """An asyncio loop with a task of its own: `run`, by a nursery's ``start``."""

    def __init__(self) -> None:
        # A cancellation reaches the calls, and they wait for what they called.
        self._life = trio.CancelScope(shield=True)
        self._ended = trio.Event()
        self._calls: set[asyncio.Task[Any]] = set()
        self._escaped: Escape | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it takes no more calls, as after a failure of its own."""
        return self._ended.is_set()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Serve calls until `end`; nothing of the user's raises out of here."""
        try:
            with self._life:
                async with trio_asyncio.open_loop() as loop:
                    loop.set_task_factory(self._new_task)
                    loop.set_exception_handler(_log_as_asyncio_does)
                    self._loop = loop
                    task_status.started()
                    await trio.sleep_forever()
        except BaseExceptionGroup as group:
            if group.subgroup(KeyboardInterrupt) is not None:
                raise
            exc = gravest(group)
            log.exception("asyncio code failed in the background", exc_info=exc)
        finally:
            self._ended.set()

    async def end(self) -> None:
        """Cancel the tasks that are left, wait for them, and end the loop.

        Never raises `trio.Cancelled`.
        """
        self._life.cancel()
        with trio.CancelScope(shield=True):
            with trio.move_on_after(HEEDING_SECS) as patience:
                await self._ended.wait()
            if patience.cancelled_caught:
                log.warning(
                    "asyncio tasks that were left behind have been cancelled, but have "
                    "not ended; waiting for them"
                )
                await self._ended.wait()

    async def call(
        self, function: AsyncioFunction, arguments: tuple[object, ...]
    ) -> Any:  # noqa: ANN401  # what user code returns is its own affair
        """Call a function as an asyncio task.

        Raises:
            RuntimeError: `asyncio.CancelledError` came out, but nobody had cancelled it.
            trio.Cancelled: It was cancelled.
            BaseException: Whatever else it raised, or another task of the loop that
                wants to end the process.
        """
        assert self._loop is not None
        within = trio_asyncio.current_loop.set(self._loop)
        try:
            task = self._loop.create_task(_called(function, arguments))
            return await self._outcome(task)
        finally:
            trio_asyncio.current_loop.reset(within)

    async def _outcome(self, task: "asyncio.Task[Any]") -> Any:  # noqa: ANN401
        self._calls.add(task)
        try:
            result = await trio_asyncio.run_aio_future(task)
        except asyncio.CancelledError as exc:
            if self._escaped is not None:
                self._raise_escaped(self._escaped)
            raise RuntimeError(
                "asyncio.CancelledError came out of asyncio code that nobody had "
                "cancelled: catch it where that code cancels a task of its own"
            ).with_traceback(exc.__traceback__) from exc
        finally:
            self._calls.discard(task)
        if self._escaped is not None:
            self._raise_escaped(self._escaped)
        return result

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: AnyCoroutine,
        **details: Any,  # noqa: ANN401  # name and context, as this Python has them
    ) -> "asyncio.Task[Any]":
        return asyncio.Task(_Contained(coroutine, self._escape), loop=loop, **details)

    def _escape(self, exc: Escape) -> None:
        self._escaped = exc
        for task in self._calls:
            task.cancel()

    def _raise_escaped(self, exc: Escape) -> NoReturn:
        self._escaped = None
        raise exc


class _Contained(Coroutine[Any, Any, Any]):
    """A coroutine that is cancelled where asyncio would end the loop.

    With `SystemExit` and `KeyboardInterrupt` asyncio leaves the loop, and what waits for
    other tasks of it would wait for ever.
    """

    def __init__(self, inner: AnyCoroutine, escape: Callable[[Escape], None]) -> None:
        self._inner = inner
        self._escape = escape
        # As asyncio shows it.
        self.__name__ = getattr(inner, "__name__", type(inner).__name__)
        self.__qualname__ = getattr(inner, "__qualname__", self.__name__)

    def send(self, value: object) -> object:
        return self._resumed(self._inner.send, value)

    def throw(self, *what: Any) -> object:  # noqa: ANN401  # as generators have it
        return self._resumed(self._inner.throw, *what)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, None, Any]:
        raise TypeError("only a task runs it")

    def _resumed(self, resume: Callable[..., object], *arguments: object) -> object:
        try:
            return resume(*arguments)
        except (SystemExit, KeyboardInterrupt) as exc:
            self._escape(exc)
            raise asyncio.CancelledError from exc


async def _called(function: AsyncioFunction, arguments: tuple[object, ...]) -> Any:  # noqa: ANN401
    return await function(*arguments)


def _log_as_asyncio_does(
    loop: asyncio.AbstractEventLoop, context: dict[str, Any]
) -> None:
    """Log the failure of a task that nobody waits for; trio-asyncio ends the loop."""
    assert isinstance(loop, asyncio.BaseEventLoop)
    asyncio.BaseEventLoop.default_exception_handler(loop, context)
