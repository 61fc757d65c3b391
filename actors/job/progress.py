"""Progress of a step, as its code reports it from the event loop or from a thread."""

from collections.abc import Callable
from threading import get_ident

import trio
from attrs import evolve

from ..plan.actions import OpenStep
from .events import Event, EventKind


class Progress:
    """Tells of progress on the event loop; made there.

    Args:
        tell: Hands an event on.
    """

    __slots__ = ("_loop", "_tell", "_trio")

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._loop = get_ident()
        self._trio = trio.lowlevel.current_trio_token()

    def report(self, row: OpenStep, done: int, total: int | None) -> None:
        """Tell that a step is done with *done* of *total* items, from any thread."""
        event = Event(
            kind=EventKind.STEP_PROGRESSED,
            node=row.node.id,
            step_id=row.step_id,
            counts=evolve(row.counts, read=done),
            fraction=min(done / total, 1.0) if total else None,
        )
        if get_ident() == self._loop:
            self._tell(event)
        else:
            self._trio.run_sync_soon(self._tell, event)
