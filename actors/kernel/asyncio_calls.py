"""Calls of code that was written for asyncio, out of trio, and back.

Nothing of asyncio is imported before the first of them.
"""

import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import sniffio
import trio

from .nursery import open_flat_nursery

if TYPE_CHECKING:
    from .asyncio_loop import AsyncioLoop

_offered: ContextVar["SharedAsyncio | None"] = ContextVar(
    "triolet_asyncio", default=None
)


def _in_asyncio() -> bool:
    return sniffio.thread_local.name == "asyncio"


async def call_asyncio(
    function: Callable[..., Awaitable[Any]], *arguments: object
) -> Any:  # noqa: ANN401  # what user code returns is its own affair
    """Call an asyncio function in the loop that is shared here, or in one of its own.

    Raises:
        RuntimeError: `asyncio.CancelledError` came out, but nobody had cancelled it.
        trio.Cancelled: It was cancelled.
        BaseException: Whatever else it raised.
    """
    if _in_asyncio():
        return await function(*arguments)
    shared = _offered.get()
    if shared is not None:
        return await (await shared.loop()).call(function, arguments)
    async with open_flat_nursery() as nursery:
        alone = SharedAsyncio(nursery)
        try:
            return await (await alone.loop()).call(function, arguments)
        finally:
            await alone.close()


async def in_trio(function: Callable[[], Awaitable[object]]) -> None:
    """Await a trio function, also out of asyncio code inside of trio."""
    if _in_asyncio():
        import trio_asyncio

        await trio_asyncio.trio_as_aio(function)()
    else:
        await function()


class SharedAsyncio:
    """The asyncio loop of one piece of work after the other; a call opens it.

    The loop has a task of its own, so that its scopes are not in the way of the callers.

    Args:
        nursery: Where the loop runs; it must stay open until `close` has returned.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._opening = trio.Lock()
        self._loop: AsyncioLoop | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a loop that `close` would end."""
        return self._loop is not None

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Let the asyncio code that this task calls inside share the loop."""
        within = _offered.set(self)
        try:
            yield
        finally:
            _offered.reset(within)

    async def loop(self) -> "AsyncioLoop":
        """Give the loop, opened if need be.

        Raises:
            RuntimeError: There is no trio-asyncio for this Python.
        """
        async with self._opening:
            if self._loop is None or self._loop.has_ended:
                loop = _new_loop()
                # A task that is cancelled while it starts would not reach the nursery.
                with trio.CancelScope(shield=True):
                    await self._nursery.start(loop.run)
                self._loop = loop
            return self._loop

    async def close(self) -> None:
        """End the loop, if there is one, and all that was left running in it.

        Never raises `trio.Cancelled`.
        """
        if self._loop is not None:
            loop, self._loop = self._loop, None
            await loop.end()


def _new_loop() -> "AsyncioLoop":
    with warnings.catch_warnings():
        # trio-asyncio derives from what asyncio deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            from .asyncio_loop import AsyncioLoop
        except (ImportError, AttributeError) as exc:
            raise RuntimeError(
                "asyncio code needs trio-asyncio, which this Python cannot import "
                f"({exc}): use a Python that it supports"
            ) from exc
    return AsyncioLoop()
