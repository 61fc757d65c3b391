"""Tells of a job's code that keeps the event loop to itself for long.

Meanwhile nothing else on the loop runs: no other job, no stop, no heartbeat. No thread
watches: the loop itself says when a task ends its turn, while jobs run.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

import trio
from attrs import frozen

from .events import Event, EventKind

log = logging.getLogger("triolet.loop")

Tell = Callable[[float], None]
"""Called on the event loop with the seconds for which it was blocked."""


@frozen
class _Code:
    """Code of a job that is being run, by whatever task."""

    watch: "LoopWatch"
    tell: Tell


_running: ContextVar[_Code | None] = ContextVar("triolet_code", default=None)


class LoopWatch(trio.abc.Instrument):
    """Measures the turns of the tasks that run a job's code, for one runtime.

    It measures time that has passed, so a process that is suspended, or another thread
    that keeps the interpreter, looks like a block, too.

    Args:
        bound: Seconds that a turn may take; 0 switches everything off.
    """

    __slots__ = ("_began", "_bound", "_jobs")

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self._jobs = 0
        self._began = 0.0

    @contextmanager
    def job(self) -> Iterator[None]:
        """Watch while a job runs."""
        if not self._bound:
            yield
            return
        if self._jobs == 0:
            self._began = perf_counter()
            trio.lowlevel.add_instrument(self)
        self._jobs += 1
        try:
            yield
        finally:
            self._jobs -= 1
            if self._jobs == 0:
                trio.lowlevel.remove_instrument(self)

    @contextmanager
    def code(self, tell: Tell) -> Iterator[None]:
        """Run a job's code in it, which includes the tasks that are started inside."""
        if not self._bound:
            yield
            return
        within = _running.set(_Code(self, tell))
        self._began = perf_counter()
        try:
            yield
        finally:
            _running.reset(within)
            # The turn goes on, but no longer with this code.
            took = perf_counter() - self._began
            if took > self._bound:
                tell(took)

    def after_io_wait(self, timeout: float) -> None:
        """Note when the first of a row of turns begins."""
        self._began = perf_counter()

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
