"""The backends that keep the contract: the one list that its tests run over."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from attrs import define

from tests.postgres.server import available_servers
from tests.storage.dictated import open_dictated
from triolet.storage.backend import Backend, drive, run
from triolet.storage.codec import decode_facts, decode_parameters
from triolet.storage.commands import Abandon, Definition
from triolet.storage.dump import (
    Dump,
    StoredDefinition,
    StoredInstance,
    StoredOwner,
    StoredUpgrade,
)
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.execution import JobInstance
from triolet.storage.postgres import PostgresBackend
from triolet.storage.postgres.session import PostgresSession
from triolet.storage.sql.rows import (
    DECISION,
    EXECUTION,
    OPERATION,
    PARTITION,
    RECOVERY,
    REQUEST,
    STEP,
    STOP,
    decision_of,
    execution_of,
    operation_of,
    partition_of,
    recovery_of,
    request_of,
    step_of,
    stop_of,
)
from triolet.storage.sql.session import Row, Session
from triolet.storage.sqlite import SqliteBackend
from triolet.storage.stores import StoreOptions, open_store

SERVERS = {str(one): one for one in available_servers()}
KINDS = ("memory", "sqlite", *SERVERS)
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
    """Open an empty store; without a folder a SQLite one lives in memory too.

    There is one PostgreSQL store of a kind at a time: opening it empties it.
    """
    if kind == "memory":
        return open_store("memory:", StoreOptions(clock=clock))
    if kind in SERVERS:
        return open_dictated(SERVERS[kind], clock)
    path = ":memory:" if folder is None else folder / "store.db"
    return open_store(f"sqlite:///{path}", StoreOptions(clock=clock))


def session_of(backend: Backend) -> Session:
    """Give a way to work on a SQL store's rows behind the port."""
    if isinstance(backend, SqliteBackend):
        return backend._session
    assert isinstance(backend, PostgresBackend)
    return PostgresSession(drive(backend._link.connected()))


def rows_of(backend: Backend, *queries: str) -> list[list[Row]]:
    """Give the rows of some queries; one round trip where there is a server."""
    if isinstance(backend, PostgresBackend):
        wire = drive(backend._link.connected())
        results = drive(wire.exchange([(query, ()) for query in queries]))
        return [result.rows for result in results]
    session = session_of(backend)
    return [drive(session.fetch(query)) for query in queries]


_DUMP = (
    "SELECT id, facts, registered_at, lease_until FROM triolet.owner ORDER BY id",
    "SELECT id, job, revision, format, fingerprint, manifest, registered_at "
    "FROM triolet.definition ORDER BY id",
    "SELECT source_id, target_id, upgrade_key, steps FROM triolet.upgrade "
    "ORDER BY source_id, target_id",
    "SELECT id, job, instance_key, run, created_at, parameters "
    "FROM triolet.instance ORDER BY id",
    f"{EXECUTION} ORDER BY e.id",
    f"{STEP} ORDER BY s.id",
    f"{DECISION} ORDER BY c.execution_id, c.sequence",
    f"{STOP} ORDER BY p.execution_id",
    f"{RECOVERY} ORDER BY r.execution_id, r.version",
    f"{OPERATION} ORDER BY o.id",
    f"{REQUEST} ORDER BY r.id",
    f"{PARTITION} ORDER BY p.manager_id, p.ordinal",
)


def dump_of(backend: Backend) -> Dump:
    """Give the whole durable state of any backend in one shape."""
    if isinstance(backend, MemoryBackend):
        return backend.dump()
    owners, definitions, upgrades, instances, *records = rows_of(backend, *_DUMP)
    executions, steps, decisions, stops, recoveries, *others = records
    operations, requests, partitions = others
    return Dump(
        owners=tuple(map(_owner, owners)),
        definitions=tuple(map(_definition, definitions)),
        upgrades=tuple(map(_upgrade, upgrades)),
        instances=tuple(map(_instance, instances)),
        executions=tuple(map(execution_of, executions)),
        steps=tuple(map(step_of, steps)),
        decisions=tuple(map(decision_of, decisions)),
        stops=tuple(map(stop_of, stops)),
        recoveries=tuple(map(recovery_of, recoveries)),
        operations=tuple(map(operation_of, operations)),
        requests=tuple(map(request_of, requests)),
        partitions=tuple(map(partition_of, partitions)),
    )


def _owner(row: Row) -> StoredOwner:
    return StoredOwner(
        id=row[0],
        facts=decode_facts(row[1]),
        registered_at=row[2],
        lease_until=row[3],
    )


def _definition(row: Row) -> StoredDefinition:
    definition = Definition(
        revision=row[2], format=row[3], fingerprint=row[4], manifest=row[5]
    )
    return StoredDefinition(
        id=row[0], job=row[1], definition=definition, registered_at=row[6]
    )


def _upgrade(row: Row) -> StoredUpgrade:
    return StoredUpgrade(
        source_id=row[0],
        target_id=row[1],
        key=row[2],
        steps=tuple(sorted(json.loads(row[3]).items())),
    )


def _instance(row: Row) -> StoredInstance:
    instance = JobInstance(
        id=row[0], job=row[1], key=row[2], run=row[3], created_at=row[4]
    )
    return StoredInstance(instance=instance, parameters=decode_parameters(row[5]))


def abandon(backend: Backend, execution_id: int) -> None:
    """Abandon a finished execution."""
    request = Abandon(execution_id=execution_id, actor="eve", operation_id="abandon")
    run(backend, UUID(int=1 << 64), request)
