"""What only the SQLite backend has: a file, a lock, a schema, a marker."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from triolet.storage.backend import (
    AnswerLost,
    Committed,
    NotCommitted,
    Pause,
    drive,
    run,
)
from triolet.storage.commands import (
    ListExecutions,
    OwnerFacts,
    OwnerRegistered,
    RegisterOwner,
    RenewLease,
)
from triolet.storage.model.errors import (
    SchemaMissing,
    SchemaTooNew,
    StoreLocked,
    StoreUnusable,
)
from triolet.storage.sqlite import SqliteBackend, schema
from triolet.storage.sqlite import backend as backend_module

REGISTER = RegisterOwner(OwnerFacts(host="here", pid=1), 30_000_000)
WRITE_VERSION_OFFSET = 18
"""Of the file header; a version that SQLite does not know makes it read-only."""


def batch(number: int) -> UUID:
    return UUID(int=number)


def open_file(
    path: Path, *, create: bool = True, writer: bytes = b"w" * 16
) -> SqliteBackend:
    return SqliteBackend(str(path), clock=lambda: 1_000, writer=writer, create=create)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteBackend]:
    opened = open_file(path)
    yield opened
    opened.close()


def test_every_connection_has_the_durable_settings(store: SqliteBackend) -> None:
    read = store._db.execute
    settings = ("journal_mode", "synchronous", "foreign_keys")
    assert [read(f"PRAGMA {one}").fetchone()[0] for one in settings] == ["wal", 2, 1]
    assert {
        row[0]
        for row in read(
            "SELECT strict FROM pragma_table_list "
            "WHERE name LIKE 'triolet_%' AND type = 'table'"
        )
    } == {1}


def test_a_second_opening_finds_the_schema_and_the_rows(path: Path) -> None:
    first = open_file(path)
    run(first, batch(1), REGISTER)
    first.close()
    second = open_file(path, create=False)
    assert run(second, batch(2), REGISTER) == OwnerRegistered(2, 30_001_000)
    second.close()


def test_a_missing_file_is_not_made_when_that_is_not_wanted(path: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        open_file(path, create=False)
    assert not path.exists()


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="is a folder"):
        open_file(tmp_path)


def test_the_folder_of_a_store_must_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="does not exist"):
        open_file(tmp_path / "missing" / "store.db")


def test_another_kind_of_file_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"year,month,day\n" * 100)
    with pytest.raises(StoreUnusable, match="is not a SQLite database"):
        open_file(path)
    assert path.read_bytes() == b"year,month,day\n" * 100


def test_a_database_of_the_users_gets_our_tables_beside_theirs(path: Path) -> None:
    with sqlite3.connect(path) as theirs:
        theirs.execute("CREATE TABLE orders (id INTEGER)")
    theirs.close()
    store = open_file(path)
    names = {row[0] for row in store._db.execute("SELECT name FROM sqlite_schema")}
    store.close()
    assert {"orders", "triolet_step"} <= names


def test_a_newer_schema_is_refused(path: Path) -> None:
    store = open_file(path)
    store._db.execute("INSERT INTO triolet_schema VALUES (?, 0)", (schema.NEWEST + 1,))
    store.close()
    with pytest.raises(SchemaTooNew) as caught:
        open_file(path)
    assert caught.value == SchemaTooNew(schema.NEWEST + 1, schema.NEWEST)


def test_an_older_schema_is_migrated_only_on_demand(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file(path).close()
    newer = schema.NEWEST + 1
    steps = [*schema.migrations(), (newer, "CREATE TABLE triolet_more (id INTEGER)")]
    monkeypatch.setattr(schema, "migrations", lambda: steps)
    monkeypatch.setattr(schema, "NEWEST", newer)
    with pytest.raises(SchemaMissing):
        open_file(path)
    migrated = SqliteBackend(
        str(path), clock=lambda: 5, writer=b"m" * 16, create=False, migrate=True
    )
    assert schema.version_of(migrated._db) == newer
    migrated.close()


def test_a_failing_migration_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [(1, "CREATE TABLE triolet_a (id INTEGER); CREATE NONSENSE")]
    monkeypatch.setattr(schema, "migrations", lambda: broken)
    with pytest.raises(StoreUnusable):
        open_file(path)
    with sqlite3.connect(path) as left:
        assert left.execute("SELECT name FROM sqlite_schema").fetchall() == []
    left.close()


def test_a_read_only_file_can_be_read_and_refuses_writes(path: Path) -> None:
    open_file(path).close()
    raw = bytearray(path.read_bytes())
    raw[WRITE_VERSION_OFFSET] = 3
    path.write_bytes(raw)
    store = open_file(path, create=False)
    assert run(store, batch(1), ListExecutions()).lines == ()
    with pytest.raises(StoreUnusable, match="is read-only"):
        run(store, batch(2), REGISTER)
    store.close()


def test_a_foreign_lock_is_waited_for_by_yielding(
    store: SqliteBackend, path: Path
) -> None:
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        waits = store.apply(batch(1), [REGISTER])
        assert next(waits) == Pause(backend_module.PAUSE_SECS)
        assert next(waits) == Pause(backend_module.PAUSE_SECS)
        other.execute("ROLLBACK")
        with pytest.raises(StopIteration) as done:
            next(waits)
        assert done.value.value == [OwnerRegistered(1, 30_001_000)]
    other.close()


def test_a_lock_that_stays_is_a_clear_error_and_harms_nothing(
    store: SqliteBackend, path: Path
) -> None:
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        waits = store.apply(batch(1), [REGISTER])
        pauses = [next(waits) for _ in range(backend_module.PAUSES_MAX)]
        with pytest.raises(StoreLocked, match="locked by another process for 10 sec"):
            next(waits)
        secs = sum(one.seconds for one in pauses if isinstance(one, Pause))
        assert secs == pytest.approx(10)
        other.execute("ROLLBACK")
    other.close()
    assert run(store, batch(2), REGISTER).owner_id == 1


def test_questions_are_answered_while_another_process_writes(
    store: SqliteBackend, path: Path
) -> None:
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        assert run(store, batch(1), ListExecutions()).lines == ()
        other.execute("ROLLBACK")
    other.close()


def test_writers_in_several_threads_all_get_through(path: Path) -> None:
    open_file(path).close()

    def write(number: int) -> None:
        store = open_file(path, writer=bytes([number]) * 16)
        for turn in range(20):
            run(store, UUID(int=number * 1000 + turn), REGISTER)
        store.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sqlite3.connect(path) as look:
        assert look.execute("SELECT count(*) FROM triolet_owner").fetchone() == (80,)
    look.close()


class LosesCommit:
    """A connection whose COMMIT raises, after or without having taken effect."""

    def __init__(self, real: sqlite3.Connection, *, committed: bool) -> None:
        self._real = real
        self._committed = committed

    def execute(self, statement: str, *rest: object) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self._real.execute("COMMIT" if self._committed else "ROLLBACK")
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.execute(statement, *rest)  # type: ignore[arg-type]  # a proxy

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


@pytest.mark.parametrize("committed", [True, False])
def test_a_lost_answer_is_settled_by_the_marker(
    store: SqliteBackend, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    run(store, batch(1), REGISTER)
    lossy = LosesCommit(store._db, committed=committed)
    monkeypatch.setattr(store, "_db", lossy)
    with pytest.raises(AnswerLost):
        run(store, batch(2), REGISTER)
    settled = drive(store.settle(batch(2), [REGISTER]))
    if committed:
        assert settled == Committed((OwnerRegistered(2, 30_001_000),))
    else:
        assert settled == NotCommitted()
    expected = 3 if committed else 2
    assert run(store, batch(3), REGISTER).owner_id == expected
    # Here, because the patch is undone before the fixture closes the store.
    store.close()


@pytest.mark.parametrize("committed", [True, False])
def test_a_lost_answer_is_settled_in_the_same_database_in_memory(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    store = SqliteBackend(":memory:", clock=lambda: 1_000, writer=b"w" * 16)
    run(store, batch(1), REGISTER)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_db", LosesCommit(store._db, committed=committed))
        with pytest.raises(AnswerLost):
            run(store, batch(2), REGISTER)
    settled = drive(store.settle(batch(2), [REGISTER]))
    assert isinstance(settled, Committed if committed else NotCommitted)
    assert run(store, batch(3), REGISTER).owner_id == (3 if committed else 2)
    store.close()


def test_a_batch_in_memory_whose_commit_failed_is_rolled_back_by_settling() -> None:
    store = SqliteBackend(":memory:", clock=lambda: 1_000, writer=b"w" * 16)
    run(store, batch(1), REGISTER)
    store._db.execute("BEGIN IMMEDIATE")
    assert isinstance(drive(store.settle(batch(2), [REGISTER])), NotCommitted)
    assert run(store, batch(3), REGISTER).owner_id == 2
    store.close()


def test_two_writers_have_a_marker_each(path: Path) -> None:
    one, two = open_file(path), open_file(path, writer=b"x" * 16)
    run(one, batch(1), REGISTER)
    run(two, batch(2), RenewLease(1, 5))
    assert drive(one.settle(batch(1), [REGISTER])) == Committed(
        (OwnerRegistered(1, 30_001_000),)
    )
    assert drive(two.settle(batch(9), [REGISTER])) == NotCommitted()
    one.close()
    two.close()


def test_closing_gives_the_file_back(path: Path) -> None:
    store = open_file(path)
    run(store, batch(1), REGISTER)
    store.close()
    began = time.monotonic()
    with sqlite3.connect(path, timeout=0) as other:
        other.execute("BEGIN EXCLUSIVE")
    other.close()
    assert time.monotonic() - began < 5
