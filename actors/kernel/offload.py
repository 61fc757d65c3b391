"""Where blocking work runs: on the event loop while it is fast, else in a thread.

A hop to a thread and back costs about 75 microseconds, a fast commit not much more, and
two busy threads take turns slowly. So the work is timed, and moves to a thread only
while it takes long.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import trio

A = TypeVar("A")
T = TypeVar("T")

PATIENCE_SECS = 0.01
"""Of the event loop. A batch of a hundred commands takes less on a fast disk."""
RETURN_SHARE = 0.5
"""Work comes back to the event loop when it takes less than this share of it."""
WEIGHT = 0.2
"""Of the newest measurement in the moving average."""


class Offload:
    """Runs one piece of blocking work at a time, inline or in its own thread.

    Args:
        adaptive: False pins the work to the event loop: a deterministic scenario must
            not use threads.
        patience: Seconds for which the work may keep the event loop, on average.
    """

    def __init__(self, *, adaptive: bool, patience: float = PATIENCE_SECS) -> None:
        self.threaded = False
        """Whether the next piece of work belongs into the thread."""
        self._adaptive = adaptive
        self._patience = patience
        self._average = 0.0
        self._limiter = trio.CapacityLimiter(1)

    def inline(self, work: Callable[[A], T], argument: A) -> T:
        """Run *work* on the event loop."""
        began = time.perf_counter()
        try:
            return work(argument)
        finally:
            self._measured(time.perf_counter() - began)

    async def in_thread(self, work: Callable[[A], T], argument: A) -> T:
        """Run *work*, which must not touch trio, in the thread, to its end.

        Cancellation: waits for the work; shield it where its result must not be lost.
        """
        return await trio.to_thread.run_sync(
            partial(self.inline, work, argument),
            abandon_on_cancel=False,
            limiter=self._limiter,
        )

    async def apart(self, work: Callable[[A], T], argument: A) -> T:
        """Run *work* in the thread, however fast it is, without measuring it.

        Cancellation: as for `in_thread`.
        """
        return await trio.to_thread.run_sync(
            work, argument, abandon_on_cancel=False, limiter=self._limiter
        )

    def _measured(self, took: float) -> None:
        if self._adaptive:
            self._average += WEIGHT * (took - self._average)
            share = RETURN_SHARE if self.threaded else 1.0
            self.threaded = self._average > share * self._patience
