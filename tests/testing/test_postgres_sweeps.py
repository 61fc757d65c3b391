"""The sweeps on a real server: six kinds of jobs, disturbed at points drawn by a seed.

The server is waited for without an event loop, so that the clock may be a virtual one
and the order of tasks is drawn by the seed. TRIOLET_LONG tries every point.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from attrs import define, field
from psycopg import sql

from tests.postgres.server import available_servers
from tests.storage.dictated import DictatedBackend, open_dictated
from tests.testing.jobs import (
    copying_with_failure,
    deciding,
    looping,
    nesting,
    parenting,
    partitioning,
    scenario,
    sequential,
    splitting,
)
from triolet.actors import Job
from triolet.actors.testing import (
    Sweep,
    cancel_at_every_checkpoint,
    crash_at_every_commit,
    shutdown_at_every_checkpoint,
    stop_at_every_checkpoint,
)
from triolet.actors.testing import scenario as playing
from triolet.actors.testing.effects import noting
from triolet.actors.testing.equivalence import Rows
from triolet.actors.testing.faults import Wire
from triolet.actors.testing.stage import Stage, StoreKind
from triolet.storage.backend import Backend, Descriptor, Settlement, Waits, drive
from triolet.storage.commands import Command

LONG = bool(os.environ.get("TRIOLET_LONG"))
POINTS = None if LONG else 4
JOBS = (
    sequential,
    deciding,
    looping,
    splitting,
    nesting,
    partitioning,
    parenting,
    copying_with_failure,
)
SWEEPS = (
    crash_at_every_commit,
    cancel_at_every_checkpoint,
    stop_at_every_checkpoint,
    shutdown_at_every_checkpoint,
)
Record = Callable[[str, object], None]


@define(eq=False)
class Blocking:
    """A backend whose waits are over before anybody else runs."""

    inner: Backend

    @property
    def descriptor(self) -> Descriptor:
        return self.inner.descriptor

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        yield from ()
        return drive(self.inner.apply(batch_id, batch))

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        yield from ()
        return drive(self.inner.settle(batch_id, batch))

    def close(self) -> None:
        self.inner.close()


@define(eq=False)
class ServerStage(Stage):
    """A stage whose store is on a server; it is empty at the beginning of a run."""

    place: str | None = field(default=None, init=False)

    def _open(self) -> Backend:
        if self.place is None:
            first = open_dictated(available_servers()[0], self.now)
            assert isinstance(first, DictatedBackend)
            self.place = first.url
            return Blocking(first)
        again = DictatedBackend(self.place, self.now)
        again.connect()
        return Blocking(again)

    def _rows(self) -> Rows:
        assert self.place is not None
        with psycopg.connect(self.place) as look:
            names = look.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall()
            return {
                name: Counter(
                    look.execute(
                        sql.SQL("SELECT * FROM {}").format(sql.Identifier(name))
                    ).fetchall()
                )
                for (name,) in sorted(names)
            }


@contextmanager
def open_server_stage(
    kind: StoreKind, seed: int, lease: float, wire: Wire
) -> Iterator[Stage]:
    with noting() as effects:
        yield ServerStage("server", seed, lease, wire, effects)


@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.__name__)
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_a_server_changes_nothing_of_the_proof(
    job: Callable[[], Job],
    sweep: Callable[..., Sweep],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Record,
) -> None:
    monkeypatch.setattr(playing, "open_stage", open_server_stage)
    tried = sweep(scenario(job, "sqlite", seed=13), points=POINTS)
    assert tried.points > 0
    record_property("triolet_points", tried.points)
