"""Tells of a job's code that keeps the event loop to itself for long.

Meanwhile nothing else on the loop runs: no other job, no stop, no heartbeat. No thread
watches: the loop itself says when a task ends its turn, while jobs run.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from time import perf_counter

import trio
from attrs import define, field

from .events import Event, EventKind

log = logging.getLogger("triolet.loop")

Tell = Callable[[float], None]
"""Called on the event loop with the seconds for which it was blocked."""


_running: ContextVar["_Code | None"] = ContextVar("triolet_code", default=None)


class LoopWatch(trio.abc.Instrument):
    """Measures the turns of the tasks that run a job's code, for one runtime.

    It measures time that has passed, so a process that is suspended, or another thread
    that keeps the interpreter, looks like a block, too.

    Args:
        bound: Seconds that a turn may take; 0 switches everything off.
    """

    __slots__ = ("_began", "_bound", "_jobs", "_watching")

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._jobs = 0
        self._began = 0.0
        self._watching = False

    def job(self) -> AbstractContextManager[None]:
        """Watch while a job runs: it costs every turn of the loop a little."""
        return _Job(self) if self._bound else _UNWATCHED

    def job_began(self) -> None:
        """Watch from now on."""
        self._jobs += 1
        if not self._watching:
            self.begin()
            trio.lowlevel.add_instrument(self)
            self._watching = True

    def job_ended(self) -> None:
        """Watch no more, if this was the last job and the loop goes to wait."""
        self._jobs -= 1

    def close(self) -> None:
        """Watch no more."""
        if self._watching:
            trio.lowlevel.remove_instrument(self)
            self._watching = False

    def code(self, tell: Tell) -> AbstractContextManager[None]:
        """Run a job's code in it, which includes the tasks that are started inside."""
        return _Code(self, tell) if self._bound else _UNWATCHED

    def begin(self) -> None:
        """Note that a job's code begins, in the middle of a turn."""
        self._began = perf_counter()

    def blocked_for(self) -> float:
        """Tell how long this turn has gone on, if that is too long; else 0."""
        took = perf_counter() - self._began
        return took if took > self._bound else 0

    def after_io_wait(self, timeout: float) -> None:
        """Note when the first of a row of turns begins."""
        self._began = perf_counter()
        # Launch after launch is one row of turns; to begin and end watching takes long.
        if timeout and not self._jobs:
            self.close()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Tell of a turn that took too long, if the code has not returned in it."""
        now = perf_counter()
        took = now - self._began
        self._began = now  # the next turn follows at once
        if took > self._bound:
            code = task.context.get(_running)
            if code is not None and code.watch is self:
                # Not here: whoever is told may not use trio inside of an instrument.
                token = trio.lowlevel.current_trio_token()
                token.run_sync_soon(task.context.copy().run, code.tell, took)


@define(eq=False)
class _Job:
    """Around a job."""

    watch: LoopWatch

    def __enter__(self) -> None:
        self.watch.job_began()

    def __exit__(self, *raised: object) -> None:
        self.watch.job_ended()


@define(eq=False)
class _Code:
    """Around code of a job, by whatever task it is run."""

    watch: LoopWatch
    tell: Tell
    _within: "Token[_Code | None] | None" = field(default=None, init=False)

    def __enter__(self) -> None:
        self._within = _running.set(self)
        self.watch.begin()

    def __exit__(self, *raised: object) -> None:
        assert self._within is not None
        _running.reset(self._within)
        # The turn goes on, but no longer with this code.
        took = self.watch.blocked_for()
        if took:
            self.tell(took)


_UNWATCHED = nullcontext()


def blocked(node: str, step_id: int | None, seconds: float) -> Event:
    """Log that a node's code has blocked the event loop, and make the event of it."""
    message = (
        f"the event loop was blocked for {seconds:.2f} s while {node!r} ran, and nothing "
        "else went on: wait asynchronously, or do the work in a plain function, which "
        "runs in a thread"
    )
    log.warning("%s", message)
    return Event(
        kind=EventKind.LOOP_BLOCKED,
        node=node,
        step_id=step_id,
        seconds=seconds,
        message=message,
    )
