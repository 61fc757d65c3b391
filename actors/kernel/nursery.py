"""A nursery out of which one exception comes as itself.

Whoever waits for children inside a job handles `trio.Cancelled` and our own errors by
their class, and a group would hide them.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

log = logging.getLogger("triolet.kernel")


@asynccontextmanager
async def open_flat_nursery() -> AsyncIterator[trio.Nursery]:
    """Open a nursery; of several exceptions the gravest goes on, the others are logged.

    What is no `Exception` and no cancellation is gravest, then errors, then
    cancellation, which is delivered again at the next checkpoint in any case.
    """
    grouped: BaseExceptionGroup[BaseException] | None = None
    try:
        async with trio.open_nursery() as nursery:
            yield nursery
    except BaseExceptionGroup as group:
        grouped = group
    if grouped is not None:
        raise gravest(grouped)


def gravest(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Choose which exception of a group goes on."""
    leaves = list(_leaves(group))
    first, *others = sorted(leaves, key=_rank)
    for other in others:
        if not isinstance(other, trio.Cancelled):
            log.error("another task failed, too: %s", other, exc_info=other)
    return first


def _leaves(exc: BaseException) -> list[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        return [leaf for one in exc.exceptions for leaf in _leaves(one)]
    return [exc]


def _rank(exc: BaseException) -> int:
    if isinstance(exc, trio.Cancelled):
        return 2
    return 1 if isinstance(exc, Exception) else 0
