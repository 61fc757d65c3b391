"""The time that a step or a job has, and what is done when it is over."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from math import inf

import trio

MICROS = 1_000_000
NO_LIMIT = nullcontext()
"""Around what may take as long as it takes."""


def deadline_of(timeout: float | None, began: float, spent: int) -> float:
    """Find when the time is over, by trio's clock; never, without a *timeout*.

    Args:
        timeout: Seconds that were given.
        began: When this attempt began, by trio's clock.
        spent: Microseconds of the store's clock that had passed by then.
    """
    return inf if timeout is None else began + timeout - spent / MICROS


@contextmanager
def time_limit(
    nursery: trio.Nursery,
    deadline: float,
    over: Callable[[], bool],
    outlast: Callable[[], Awaitable[None]],
) -> Iterator[None]:
    """Call *over* at the deadline, unless the body has ended before.

    Args:
        nursery: Around the body. No checkpoint of the body's is added.
        deadline: By trio's clock; when it has passed already, the body comes after.
        over: Brings the body to an end; says whether it did.
        outlast: Awaited then; it is cancelled when the body has ended.
    """
    if deadline == inf:
        yield
    elif deadline <= trio.current_time():
        over()
        yield
    else:
        # The body's scopes are not the timer's, so that it outlasts their cancelling.
        timer = trio.CancelScope(shield=True)
        nursery.start_soon(_wait, timer, deadline, over, outlast)
        try:
            yield
        finally:
            timer.cancel()


async def _wait(
    timer: trio.CancelScope,
    deadline: float,
    over: Callable[[], bool],
    outlast: Callable[[], Awaitable[None]],
) -> None:
    with timer:
        await trio.sleep_until(deadline)
        if over():
            await outlast()


def too_long(what: str, timeout: float) -> str:
    """Say that the time is over of what is called so."""
    limit = f"{timeout:,.10g} s"
    return (
        f"{what} took longer than its timeout of {limit} and was brought to an end: "
        "launch the job again, which gives it the whole time anew"
    )
