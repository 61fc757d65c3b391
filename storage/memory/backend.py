"""The memory backend: command values applied to dicts, one after the other.

It never waits and never copies. A command is checked as a whole before it changes
anything, so a refusal needs no rollback and a batch is a plain loop.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from ..backend import Committed, Descriptor, NotCommitted, Settlement, Waits
from ..commands import (
    Abandon,
    Advance,
    BeginStopping,
    Command,
    CommitChunk,
    Diagnose,
    Enlist,
    FindStops,
    LatestExecution,
    ListExecutions,
    ListOperations,
    OpenExecution,
    Question,
    Recover,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
    RequestStop,
    ShowExecution,
)
from ..commands.previewing import PreviewOpening
from ..commands.requesting import (
    ClaimLaunches,
    EndLaunch,
    FindLaunches,
    ListLaunches,
    RequestLaunch,
    WithdrawLaunch,
)
from ..commands.upgrading import FindDefinition, RegisterUpgrade
from ..dump import Dump
from ..model.errors import InternalError, TrioletError
from . import (
    advancing,
    diagnosing,
    opening,
    operating,
    ownership,
    previewing,
    questions,
    requesting,
    upgrading,
)
from .tables import Tables

CONNECTIONS_STOOD_FOR = 65
"""As many as the most workers of a partitioned step ask for, and one for control."""

_HANDLERS: dict[type, Callable[[Tables, Any, int], object]] = {
    RegisterOwner: ownership.register,
    RenewLease: ownership.renew,
    ReleaseOwner: ownership.release,
    OpenExecution: opening.open_execution,
    Advance: advancing.advance,
    CommitChunk: advancing.commit_chunk,
    Enlist: advancing.enlist,
    ListExecutions: questions.list_executions,
    LatestExecution: questions.latest_execution,
    ShowExecution: questions.show_execution,
    RequestStop: operating.operate,
    Abandon: operating.operate,
    Recover: operating.operate,
    BeginStopping: operating.begin_stopping,
    FindStops: diagnosing.find_stops,
    ListOperations: diagnosing.list_operations,
    Diagnose: diagnosing.diagnose,
    RegisterUpgrade: upgrading.register_upgrade,
    FindDefinition: upgrading.find_definition,
    PreviewOpening: previewing.preview_opening,
    RequestLaunch: requesting.request_launch,
    FindLaunches: requesting.find_launches,
    ClaimLaunches: requesting.claim_launches,
    EndLaunch: requesting.end_launch,
    WithdrawLaunch: requesting.withdraw_launch,
    ListLaunches: requesting.list_launches,
}


class MemoryBackend:
    """A store that lasts as long as this object.

    Args:
        clock: The store's clock: microseconds since 1970.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._tables = Tables(clock)
        self._last: tuple[UUID, tuple[object, ...]] | None = None

    @property
    def descriptor(self) -> Descriptor:
        """Say what this backend is; it has no schema."""
        return Descriptor(
            "memory", 0, capacity=1, inline=True, stands_for=CONNECTIONS_STOOD_FOR
        )

    @property
    def business(self) -> sqlite3.Connection:
        """The database that enlisted writes go to, for tests to look into."""
        return self._tables.business.connection

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Carry out *batch*; see `Backend.apply`."""
        yield from ()
        if len(batch) > 1 and any(command.enlisted for command in batch):
            raise InternalError("an enlisted write is not alone in its batch")
        now = self._clock()
        outcomes = [self._one(command, now) for command in batch]
        if not all(isinstance(command, Question) for command in batch):
            self._last = (batch_id, tuple(outcomes))
        return outcomes

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        """Recall the last batch; whatever raised out of `apply` changed nothing."""
        yield from ()
        if self._last is None or self._last[0] != batch_id:
            return NotCommitted()
        return Committed(self._last[1])

    def close(self) -> None:
        """Close the business database."""
        self._tables.business.close()

    def dump(self) -> Dump:
        """Give the complete durable state."""
        return questions.dump_of(self._tables)

    def _one(self, command: Command[Any], now: int) -> object:
        try:
            return _HANDLERS[type(command)](self._tables, command, now)
        except TrioletError as refused:
            return refused
