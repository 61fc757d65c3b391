"""Questions to a SQLite file that may not be written, and that must stay as it is."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import pytest

from triolet.storage.backend import NotCommitted, Waits, drive, run
from triolet.storage.commands import (
    ListExecutions,
    OwnerFacts,
    RegisterOwner,
    ShowExecution,
)
from triolet.storage.model.errors import (
    SchemaMissing,
    SchemaTooNew,
    StoreLocked,
    StoreUnusable,
)
from triolet.storage.sqlite import SqliteBackend, SqliteReader, reading, schema
from triolet.storage.stores import StoreOptions, open_store

from .backends import Clock
from .client import Client

NOBODY = 65_534
ASKED = UUID(int=0)
REGISTER = RegisterOwner(OwnerFacts(host="here", pid=1), 30_000_000)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder into which everybody may look, as pytest's own are not."""
    with TemporaryDirectory(prefix="triolet-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


@contextmanager
def read_only(folder: Path, mode: int = 0o444) -> Iterator[None]:
    """Take the right to write from a folder, and from root what it may do anyway."""
    for path in folder.iterdir():
        path.chmod(mode)
    folder.chmod(0o555)
    privileged = os.geteuid() == 0
    if privileged:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if privileged:
            os.seteuid(0)


def open_writing(path: Path) -> SqliteBackend:
    return SqliteBackend(str(path), clock=lambda: 1_000, writer=b"w" * 16)


def filled(path: Path) -> Path:
    """Make a store with one execution, and close it."""
    backend = open_writing(path)
    Client(backend, Clock()).open()
    backend.close()
    return path


def asked(path: Path) -> list[int]:
    store = open_store(f"sqlite:///{path}", StoreOptions(read_only=True))
    page = run(store, ASKED, ListExecutions())
    if page.lines:
        assert run(store, ASKED, ShowExecution(1)).execution.id == 1
    store.close()
    return [line.execution.id for line in page.lines]


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.iterdir()
    }


def test_a_closed_store_is_read_where_nothing_may_be_written(folder: Path) -> None:
    path = filled(folder / "store.db")
    with read_only(folder):
        assert asked(path) == [1]
        with pytest.raises(StoreUnusable, match="is read-only"):
            open_writing(path)


def test_a_store_in_use_is_read_where_nothing_may_be_written(folder: Path) -> None:
    owner = open_writing(folder / "store.db")
    Client(owner, Clock()).open()
    with read_only(folder):
        assert asked(folder / "store.db") == [1]
    owner.close()


def test_a_killed_store_is_read_where_nothing_may_be_written(folder: Path) -> None:
    (folder / "killed").mkdir()
    owner = open_writing(folder / "store.db")
    Client(owner, Clock()).open()
    for path in folder.glob("store.db*"):
        shutil.copy(path, folder / "killed")
    owner.close()
    with read_only(folder / "killed"):
        assert asked(folder / "killed" / "store.db") == [1]


def test_a_log_that_cannot_be_read_is_never_overlooked(folder: Path) -> None:
    (folder / "copy").mkdir()
    owner = open_writing(folder / "store.db")
    Client(owner, Clock()).open()
    for name in ("store.db", "store.db-wal"):
        shutil.copy(folder / name, folder / "copy")
    owner.close()
    with (
        read_only(folder / "copy"),
        pytest.raises(StoreUnusable, match="make its folder writable, or copy"),
    ):
        asked(folder / "copy" / "store.db")
    (folder / "copy").chmod(0o755)
    assert asked(folder / "copy" / "store.db") == [1]


def test_a_question_leaves_file_and_folder_as_they_were(folder: Path) -> None:
    path = filled(folder / "store.db")
    before = snapshot(folder)
    assert asked(path) == [1]
    assert snapshot(folder) == before


def test_a_question_leaves_the_journal_mode_alone(folder: Path) -> None:
    path = filled(folder / "store.db")
    theirs = sqlite3.connect(path)
    theirs.execute("PRAGMA journal_mode=DELETE")
    theirs.close()
    before = snapshot(folder)
    assert asked(path) == [1]
    assert snapshot(folder) == before


def test_a_store_opened_for_reading_takes_no_commands(folder: Path) -> None:
    store = SqliteReader(str(filled(folder / "store.db")), clock=lambda: 1)
    with pytest.raises(StoreUnusable, match="opened only for reading"):
        run(store, ASKED, REGISTER)
    assert drive(store.settle(ASKED, [REGISTER])) == NotCommitted()
    assert store.descriptor.kind == "sqlite"


def test_a_file_that_is_written_while_it_is_read_is_read_once_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(folder / "store.db")
    owner = open_writing(path)
    answer, seen = SqliteReader._answer, list[bool]()

    def meanwhile(
        self: SqliteReader, batch: object, still: bool
    ) -> Waits[list[object]]:
        answers = yield from answer(self, batch, still)  # type: ignore[arg-type]  # passed on
        seen.append(still)
        if len(seen) == 1:
            client = Client(owner, Clock())
            client.open(job="another")
            owner._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return answers

    monkeypatch.setattr(SqliteReader, "_answer", meanwhile)
    store = SqliteReader(str(path), clock=lambda: 1)
    page = run(store, ASKED, ListExecutions())
    assert [line.execution.id for line in page.lines] == [2, 1]
    assert seen == [True, True]
    owner.close()


def test_a_file_that_is_written_all_the_time_is_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamps = iter([(0, 0, number) for number in range(100)])
    monkeypatch.setattr(SqliteReader, "_stamp", lambda self: next(stamps))
    monkeypatch.setattr(reading, "PAUSES_MAX", 3)
    store = SqliteReader(str(filled(folder / "store.db")), clock=lambda: 1)
    with pytest.raises(StoreLocked):
        run(store, ASKED, ListExecutions())


def test_names_with_signs_that_mean_something_in_a_uri_are_read(folder: Path) -> None:
    path = filled(folder / "a?b#c%41 ü.db")
    reader = SqliteReader(str(path), clock=lambda: 1)
    assert len(run(reader, ASKED, ListExecutions()).lines) == 1


def test_what_is_no_store_is_refused_as_before(folder: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        asked(folder / "store.db")
    with pytest.raises(StoreUnusable, match="is a folder"):
        asked(folder)
    (folder / "empty.db").touch()
    with pytest.raises(SchemaMissing):
        asked(folder / "empty.db")
    (folder / "text.db").write_text("year,month\n" * 100)
    with pytest.raises(StoreUnusable, match="is not a SQLite database"):
        asked(folder / "text.db")
    path = filled(folder / "newer.db")
    newer = open_writing(path)
    newer._db.execute("INSERT INTO triolet_schema VALUES (?, 0)", (schema.NEWEST + 1,))
    newer.close()
    with pytest.raises(SchemaTooNew):
        asked(path)
    assert sorted(one.name for one in folder.iterdir()) == [
        "empty.db",
        "newer.db",
        "text.db",
    ]


def test_a_file_that_may_not_even_be_read_says_so(folder: Path) -> None:
    path = filled(folder / "store.db")
    with (
        read_only(folder, mode=0),
        pytest.raises(StoreUnusable, match="check the path and the permissions"),
    ):
        asked(path)
