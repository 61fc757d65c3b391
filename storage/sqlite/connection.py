"""Opening a SQLite file, and sqlite3's errors in our words.

Every connection has the same settings: WAL, synchronous=FULL, foreign keys on, and no
implicit transactions. Waiting for locks is the backend's business, not SQLite's, so
that an event loop is never blocked.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..model.errors import (
    StoreError,
    StoreLocked,
    StoreUnavailable,
    StoreUnusable,
)

MEMORY = ":memory:"
OLDEST_SQLITE = (3, 37, 0)
"""STRICT tables came with it."""

BUSY_SECS = 10.0


def connect(path: str, *, create: bool) -> sqlite3.Connection:
    """Open the file with our settings.

    Args:
        path: Of the file; ``:memory:`` for a database of this connection only.
        create: Whether a file that is not there may be made.

    Raises:
        StoreUnusable: The file is absent and may not be made, is a folder, is not a
            database, or cannot be written.
        StoreLocked: Another process kept it locked for 10 seconds.
    """
    if path != MEMORY:
        check_path(Path(path), create)
    with translated(path):
        connection = open_file(path)
        try:
            for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {setting}").fetchone()
        except BaseException:
            connection.close()
            raise
    return connection


def open_file(name: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a file, by its path or by a URI, without implicit transactions.

    Raises:
        StoreUnusable: This SQLite is too old.
        sqlite3.Error: As `sqlite3.connect`, which may also open it later only.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        found = sqlite3.sqlite_version
        raise StoreUnusable(f"SQLite {found} is too old: 3.37 or newer is needed")
    return sqlite3.connect(
        name,
        timeout=BUSY_SECS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=uri,
    )


def check_path(path: Path, create: bool) -> None:
    """Refuse a folder, and a file that is absent and may not or cannot be made."""
    if path.is_dir():
        raise StoreUnusable(f"the store {str(path)!r} is a folder, not a file")
    if path.exists():
        return
    if not create:
        raise StoreUnusable(f"there is no store at {str(path)!r}: run a job first")
    if not path.parent.is_dir():
        raise StoreUnusable(f"the folder of the store {str(path)!r} does not exist")


_UNUSABLE = {
    sqlite3.SQLITE_READONLY: "is read-only: make the file and its folder writable",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database: name another file",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check the path and the permissions",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a backup",
    sqlite3.SQLITE_PERM: "cannot be opened: check the permissions",
    sqlite3.SQLITE_AUTH: "cannot be opened: check the permissions",
}
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_IOERR: "could not be read or written: the disk failed",
    sqlite3.SQLITE_NOMEM: "could not be used: out of memory",
}
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def is_locked(exc: sqlite3.Error) -> bool:
    """Tell whether another connection holds the lock that was needed."""
    return _primary(exc) in _LOCKED


def _primary(exc: sqlite3.Error) -> int:
    return getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def locked(path: str) -> StoreLocked:
    """Say that the store stayed locked."""
    return StoreLocked(
        f"the store {path!r} was locked by another process for {BUSY_SECS:.0f} "
        "seconds: try again when that process is done"
    )


def explained(path: str, exc: sqlite3.Error) -> StoreError:
    """Put sqlite3's error into our words, without SQL and values."""
    code = _primary(exc)
    if code in _LOCKED:
        return locked(path)
    if code in _UNUSABLE:
        return StoreUnusable(f"the store {path!r} {_UNUSABLE[code]}")
    if code in _UNAVAILABLE:
        return StoreUnavailable(f"the store {path!r} {_UNAVAILABLE[code]}")
    name = getattr(exc, "sqlite_errorname", type(exc).__name__)
    return StoreUnusable(f"the store {path!r} refused a statement ({name})")


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise our error for each of sqlite3's, keeping the cause."""
    try:
        yield
    except sqlite3.Error as exc:
        raise explained(path, exc) from exc
