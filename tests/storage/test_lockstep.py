"""All backends, one random history: equal replies, equal durable state.

A failure prints the steps of its smallest history as a program; Hypothesis keeps it
in its database and replays it first at the next run.
"""

from typing import Any
from uuid import UUID

from attrs import define, evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.storage.backends import KINDS, Clock, dump_of, open_backend
from tests.strategies import FACTS, MINUTE, advances, chunks, commands, openings
from triolet.storage.backend import drive
from triolet.storage.commands import Command, Cursor, Enlist, RegisterOwner

# How far the store's clock moves between two batches: sometimes back.
STEPS = (0, 1, 1_000_000, MINUTE // 2, MINUTE, -5_000_000)


class UserError(Exception):
    """What the enlisted writes of this test raise."""


@define
class Write:
    """An enlisted write: adds a row, notes all rows, then may fail."""

    value: int
    failure: UserError | None
    seen: list[list[int]]

    def __call__(self, cursor: Cursor) -> None:
        cursor.execute("CREATE TABLE IF NOT EXISTS trade (id INTEGER NOT NULL)")
        cursor.execute("INSERT INTO trade VALUES (?)", (self.value,))
        cursor.execute("SELECT id FROM trade ORDER BY id")
        self.seen.append([row[0] for row in cursor.fetchall()])
        if self.failure is not None:
            raise self.failure


class LockStep(RuleBasedStateMachine):
    """Sends every batch to all backends and compares what comes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.backends = [open_backend(kind, self.clock) for kind in KINDS]
        self.batch_id = UUID(int=1)

    @initialize(owners=st.integers(1, 2), data=st.data())
    def open_first(self, owners: int, data: st.DataObject) -> None:
        """Begin with a running execution."""
        for _ in range(owners):
            self._apply([RegisterOwner(FACTS[0], MINUTE)])
        self._apply([data.draw(openings(dump_of(self.backends[0])), "command")])

    @rule(data=st.data(), size=st.integers(1, 4), micros=st.sampled_from(STEPS))
    def send(self, data: st.DataObject, size: int, micros: int) -> None:
        """Send a batch whose commands were all made up before it was sent."""
        self.clock.now += micros
        drawn = commands(dump_of(self.backends[0]))
        self._apply([data.draw(drawn, "command") for _ in range(size)])

    @rule(data=st.data(), value=st.integers(0, 9), fails=st.booleans())
    def enlist(self, data: st.DataObject, value: int, fails: bool) -> None:
        """Send a command with an enlisted write, alone in its batch."""
        write = Write(value, UserError() if fails else None, [])
        dump = dump_of(self.backends[0])
        kinds = st.sampled_from([advances(dump), chunks(dump)])
        command = data.draw(kinds.flatmap(lambda kind: kind), "command")
        if data.draw(st.booleans(), "bare"):
            self._apply([Enlist(command.execution_id, command.owner_id, write)])
        else:
            self._apply([evolve(command, write=write)])
        assert all(rows == write.seen[0] for rows in write.seen)
        assert len(write.seen) in (0, len(self.backends))

    @invariant()
    def same_rows(self) -> None:
        first, *others = (dump_of(backend) for backend in self.backends)
        for other in others:
            assert other == first

    def teardown(self) -> None:
        for backend in self.backends:
            backend.close()

    def _apply(self, batch: list[Command[Any]]) -> list[object]:
        self.batch_id = UUID(int=self.batch_id.int + 1)
        first, *others = (
            list(drive(backend.apply(self.batch_id, batch)))
            for backend in self.backends
        )
        for outcomes in others:
            assert outcomes == first
        return first


LockStep.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None
)
TestLockStep = LockStep.TestCase
