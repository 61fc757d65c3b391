"""All backends, one random history: equal replies, equal durable state.

A failure prints the steps of its smallest history as a program; Hypothesis keeps it
in its database and replays it first at the next run.
"""

import os
from typing import Any
from uuid import UUID

from attrs import define, evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.storage.backends import KINDS, Clock, dump_of, open_backend
from tests.strategies import FACTS, MINUTE, advances, chunks, commands, live, openings
from triolet.storage.backend import drive
from triolet.storage.commands import Command, Cursor, Enlist, RegisterOwner

# How far the store's clock moves before a batch: sometimes back.
MICROS = st.sampled_from([0, 0, 1, 1_000_000, MINUTE // 2, MINUTE, -5_000_000])
SIZES = st.sampled_from([1, 1, 2, 3, 4])
PARTS = st.sampled_from(["chunk", "advance", "nothing"])


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
        cursor.execute(f"INSERT INTO trade VALUES ({self.value})")
        cursor.execute("SELECT id FROM trade ORDER BY id")
        self.seen.append([row[0] for row in cursor.fetchall()])
        if self.failure is not None:
            raise self.failure


class LockStep(RuleBasedStateMachine):
    """Sends every batch to all backends and compares what comes of it."""

    kinds: tuple[str, ...] = ("memory", "sqlite")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.backends = [open_backend(kind, self.clock) for kind in self.kinds]
        self.batch_id = UUID(int=0)
        self.dump = dump_of(self.backends[0])

    @initialize(owners=st.integers(1, 2), data=st.data())
    def open_first(self, owners: int, data: st.DataObject) -> None:
        """Begin with a running execution."""
        self.apply([RegisterOwner(FACTS[0], MINUTE) for _ in range(owners)])
        self.apply([data.draw(openings(self.dump), "command")])

    @rule(data=st.data(), size=SIZES, micros=MICROS)
    def send(self, data: st.DataObject, size: int, micros: int) -> None:
        """Send a batch whose commands were all made up before it was sent."""
        self.clock.now += micros
        drawn = commands(self.dump)
        self.apply([data.draw(drawn, "command") for _ in range(size)])

    @precondition(lambda self: bool(self.dump.executions))
    @rule(data=st.data(), value=st.integers(0, 9), fails=st.booleans(), part=PARTS)
    def enlist(self, data: st.DataObject, value: int, fails: bool, part: str) -> None:
        """Send a command with an enlisted write, alone in its batch."""
        write = Write(value, UserError() if fails else None, [])
        match part:
            case "chunk":
                chunk = data.draw(chunks(self.dump), "command")
                self.apply([evolve(chunk, write=write)])
            case "advance":
                advance = data.draw(advances(self.dump), "command")
                self.apply([evolve(advance, write=write)])
            case _:
                execution = data.draw(live(self.dump), "execution")
                self.apply([Enlist(execution.id, execution.owner_id, write)])
        assert len(write.seen) in (0, len(self.backends))
        assert all(rows == write.seen[0] for rows in write.seen)

    def apply(self, batch: list[Command[Any]]) -> list[object]:
        """Send *batch* to all backends; replies and rows must be the same."""
        self.batch_id = UUID(int=self.batch_id.int + 1)
        first, *others = (
            list(drive(backend.apply(self.batch_id, batch)))
            for backend in self.backends
        )
        for outcomes in others:
            assert outcomes == first
        self.dump, *dumps = (dump_of(backend) for backend in self.backends)
        for dump in dumps:
            assert dump == self.dump
        return first

    def teardown(self) -> None:
        for backend in self.backends:
            backend.close()


class LockStepWithServers(LockStep):
    """The same with PostgreSQL, which takes its time."""

    kinds = KINDS


LONG = bool(os.environ.get("TRIOLET_LONG"))
LockStep.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, deadline=None
)
LockStepWithServers.TestCase.settings = settings(
    max_examples=200 if LONG else 12, stateful_step_count=50, deadline=None
)
TestLockStep = LockStep.TestCase
TestLockStepWithServers = LockStepWithServers.TestCase
