"""The backends that keep the contract: the one list that its tests run over."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from attrs import define, evolve

from triolet.storage.backend import Backend
from triolet.storage.codec import decode_facts, decode_parameters
from triolet.storage.commands import Definition
from triolet.storage.dump import Dump, StoredDefinition, StoredInstance, StoredOwner
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.status import BatchStatus
from triolet.storage.sql.rows import (
    DECISION,
    EXECUTION,
    STEP,
    decision_of,
    execution_of,
    instance_of,
    step_of,
)
from triolet.storage.sqlite import SqliteBackend
from triolet.storage.stores import StoreOptions, open_store

KINDS = ("memory", "sqlite")
NOON = 1_764_590_400_000_000


@define
class Clock:
    """A store clock that stands still until a test moves it."""

    now: int = NOON

    def __call__(self) -> int:
        return self.now


def open_backend(
    kind: str, clock: Callable[[], int], folder: Path | None = None
) -> Backend:
    """Open an empty store; without a folder a durable one lives in memory too."""
    if kind == "memory":
        return open_store("memory:", StoreOptions(clock=clock))
    path = ":memory:" if folder is None else folder / "store.db"
    return open_store(f"sqlite:///{path}", StoreOptions(clock=clock))


def dump_of(backend: Backend) -> Dump:
    """Give the whole durable state of any backend in one shape."""
    if isinstance(backend, MemoryBackend):
        return backend.dump()
    assert isinstance(backend, SqliteBackend)

    def read(sql: str) -> sqlite3.Cursor:
        return backend._db.execute(sql.replace("triolet.", "triolet_"))

    return Dump(
        owners=tuple(
            StoredOwner(
                id=row[0],
                facts=decode_facts(row[1]),
                registered_at=row[2],
                lease_until=row[3],
            )
            for row in read(
                "SELECT id, facts, registered_at, lease_until "
                "FROM triolet_owner ORDER BY id"
            )
        ),
        definitions=tuple(
            StoredDefinition(
                id=row[0],
                job=row[1],
                definition=Definition(
                    revision=row[2], format=row[3], fingerprint=row[4], manifest=row[5]
                ),
                registered_at=row[6],
            )
            for row in read(
                "SELECT id, job, revision, format, fingerprint, manifest, "
                "registered_at FROM triolet_definition ORDER BY id"
            )
        ),
        instances=_sqlite_instances(backend),
        executions=tuple(map(execution_of, read(f"{EXECUTION} ORDER BY e.id"))),
        steps=tuple(map(step_of, read(f"{STEP} ORDER BY s.id"))),
        decisions=tuple(
            map(decision_of, read(f"{DECISION} ORDER BY c.execution_id, c.sequence"))
        ),
    )


def _sqlite_instances(backend: SqliteBackend) -> tuple[StoredInstance, ...]:
    parameters = dict(
        backend._db.execute("SELECT id, parameters FROM triolet_instance ORDER BY id")
    )
    records = {
        record.id: record
        for record in map(
            instance_of, backend._db.execute(EXECUTION.replace("triolet.", "triolet_"))
        )
    }
    return tuple(
        StoredInstance(
            instance=records[instance_id], parameters=decode_parameters(text)
        )
        for instance_id, text in parameters.items()
    )


def abandon(backend: Backend, execution_id: int) -> None:
    """Abandon a finished execution behind the port: no command does it yet."""
    if isinstance(backend, MemoryBackend):
        row = backend._tables.executions[execution_id]
        row.record = evolve(row.record, status=BatchStatus.ABANDONED)
        return
    assert isinstance(backend, SqliteBackend)
    backend._db.execute(
        "UPDATE triolet_execution SET status = 'ABANDONED' WHERE id = ?",
        (execution_id,),
    )
