"""The boundary around user code: whatever it raises becomes a typed failure.

`trio.Cancelled` and `KeyboardInterrupt` always go on. `SystemExit` is a failure like
any other: a component must not end the process that runs other people's jobs.
"""

import inspect
import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

import trio
from attrs import define, frozen

from ...storage.model.execution import Failure
from ...storage.model.status import FailureCategory
from .masking import masked
from .places import place_of

log = logging.getLogger("triolet.job")

T = TypeVar("T")

MESSAGE_BYTES_MAX = 1024
PLACE_CHARS_MAX = 128
LEAVES_MAX = 3
"""Of the exceptions in a group, how many are named."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_ASYNCIO = "no running event loop"
"""What asyncio raises when trio runs its code."""


class OutcomeUnknown(Exception):
    """Raised by user code that cannot tell whether its effect took place.

    The step and the job end UNKNOWN, and nothing is repeated until an operator decides.
    """


class ComponentFailed(Exception):
    """User code raised; carries the failure to be stored."""

    def __init__(self, failure: Failure, cause: BaseException) -> None:
        super().__init__(failure)
        self.failure = failure
        self.cause = cause


@frozen
class Where:
    """Which piece of user code is called: the node or listener, and its role."""

    name: str
    code: str
    """Stable word of the failure, ``tasklet_failed`` for one."""
    category: FailureCategory = FailureCategory.USER_COMPONENT


@define(eq=False)
class Boundary:
    """Calls user code of one job.

    Args:
        new_failure_id: Draws failure ids.
        secrets: Texts that must not appear in a stored message; see `spellings`.
        limiter: Bounds the threads of synchronous functions; None runs them inline,
            as deterministic scenarios must.
        store_error_text: False keeps messages out of the store.
    """

    new_failure_id: Callable[[], int]
    secrets: tuple[str, ...] = ()
    limiter: trio.CapacityLimiter | None = None
    store_error_text: bool = True

    async def call(
        self, where: Where, function: Callable[..., Any], *arguments: object
    ) -> Any:  # noqa: ANN401  # what user code returns is its own affair
        """Call a plain function in a thread, or await an async one.

        Raises:
            ComponentFailed: It raised.
            OutcomeUnknown: It said so.
            trio.Cancelled: It was cancelled, also when it hid that in a group.
        """
        try:
            if is_async(function):
                return await function(*arguments)
            # In a tuple, because trio refuses plain functions that return coroutines.
            (result,) = await self.in_thread(lambda: (function(*arguments),))
            return await result if isinstance(result, Awaitable) else result
        except (Exception, SystemExit, BaseExceptionGroup) as exc:
            raise self.failed(where, exc) from exc

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run blocking work to its end; a cancellation waits for it."""
        if self.limiter is None:
            return work()
        return await trio.to_thread.run_sync(
            work, abandon_on_cancel=False, limiter=self.limiter
        )

    def failed(self, where: Where, exc: BaseException) -> BaseException:
        """Find what goes on up instead of *exc*: it is logged and made a failure."""
        if isinstance(exc, OutcomeUnknown | ComponentFailed):
            return exc
        if isinstance(exc, BaseExceptionGroup):
            for kind in (KeyboardInterrupt, trio.Cancelled, OutcomeUnknown):
                hidden, rest = exc.split(kind)
                if hidden is not None:
                    if rest is not None:
                        log.error(
                            "%s also raised", where.name, exc_info=self._shown(rest)
                        )
                    return _first_leaf(hidden)
        failure = self.failure(where, exc)
        shown = self._shown(exc)
        log.error("%s failed: %s", where.name, failure.message, exc_info=shown)
        return ComponentFailed(failure, exc)

    def failure(self, where: Where, exc: BaseException) -> Failure:
        """Describe *exc* for the store."""
        place = place_of(exc)
        return Failure(
            where.category,
            self.new_failure_id(),
            where.code,
            where.name,
            type(exc).__name__[:128],
            self.cleaned(_text_of(exc)) if self.store_error_text else None,
            None if place is None else self.cleaned(str(place))[-PLACE_CHARS_MAX:],
        )

    def refusal(self, where: Where, message: str) -> ComponentFailed:
        """Make a failure of a rule that user code broke without raising."""
        failure = Failure(
            where.category, self.new_failure_id(), where.code, where.name, None, message
        )
        log.error("%s failed: %s", where.name, message)
        return ComponentFailed(failure, TypeError(message))

    def cleaned(self, text: str) -> str:
        """Replace secrets and control characters, and cut to 1 KiB."""
        text = _CONTROL.sub(" ", self._masked(text))
        raw = text.encode()[:MESSAGE_BYTES_MAX]
        return raw.decode(errors="ignore")

    def _masked(self, text: str) -> str:
        return masked(text, self.secrets)

    def _shown(self, exc: BaseException) -> BaseException:
        """Give what may be logged of an exception; its causes may hold secrets, too."""
        if not self.secrets:
            return exc
        whole = "".join(traceback.format_exception(exc))
        if self._masked(whole) == whole:
            return exc
        kind = type(exc)
        alike = type(kind.__name__, (Exception,), {"__module__": kind.__module__})
        masked: BaseException = alike(self._masked(_text_of(exc)))
        return masked.with_traceback(exc.__traceback__)


def _text_of(exc: BaseException) -> str:
    if isinstance(exc, SystemExit):
        return f"user code called sys.exit({exc.code!r}); return or raise instead"
    if isinstance(exc, BaseExceptionGroup):
        return _text_of_group(exc)
    try:
        text = str(exc)
    except Exception as broken:
        return f"its text could not be made ({type(broken).__name__})"
    if type(exc) is RuntimeError and text == _NO_ASYNCIO:
        return f"{text}: if it uses asyncio, wrap it with asyncio_tasklet"
    return text


def _text_of_group(group: BaseExceptionGroup[BaseException]) -> str:
    """Name the first exceptions inside, which tell more than the group does."""
    every = list(_leaves(group))
    named = [_leaf_text(exc) for exc in every[:LEAVES_MAX]]
    if len(every) > LEAVES_MAX:
        named.append(f"and {len(every) - LEAVES_MAX} more")
    inside = "; ".join(named)
    # A nursery's own words say nothing.
    nursery = group.message.startswith("Exceptions from Trio nursery")
    return inside if nursery else f"{group.message}: {inside}"


def _leaf_text(exc: BaseException) -> str:
    text = _text_of(exc)
    place = place_of(exc)
    message = f": {text}" if text else ""
    where = "" if place is None else f" (at {place})"
    return f"{type(exc).__name__}{message}{where}"


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for one in exc.exceptions:
            yield from _leaves(one)
    else:
        yield exc


def _first_leaf(exc: BaseException) -> BaseException:
    return next(_leaves(exc))


def is_async(function: object) -> bool:
    """Tell whether calling *function* gives a coroutine."""
    # The usual case, before inspect looks for partials, methods and marks.
    if (
        isinstance(function, FunctionType)
        and function.__code__.co_flags & inspect.CO_COROUTINE
    ):
        return True
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # its kind is asked for
    )
