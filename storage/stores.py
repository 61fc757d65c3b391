"""From a store URL to an open backend."""

import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from urllib.parse import unquote

from attrs import frozen

from .backend import Backend, Listener
from .model.errors import DriverMissing, InvalidValue

SQLITE = "sqlite:///"
MEMORY = "memory:"
POSTGRES = ("postgresql://", "postgres://")


def host_clock() -> int:
    """Read the clock of this host: microseconds since 1970, UTC."""
    return time.time_ns() // 1000


@frozen(kw_only=True)
class StoreOptions:
    """How a store is opened."""

    create: bool = True
    """Whether a missing SQLite file may be made."""
    migrate: bool = False
    """Whether an older schema may be raised."""
    read_only: bool = False
    """Whether only questions are asked: a SQLite file, which must be there, is not
    changed and need not be writable; nothing is created or raised."""
    clock: Callable[[], int] = host_clock
    """The store's clock, for the stores that have none of their own."""
    writer: Callable[[], bytes] = lambda: os.urandom(16)
    """Draws the name of a connection in the marker table."""


def open_store(url: str, options: StoreOptions | None = None) -> Backend:
    """Open the store that *url* names; this may block for up to 10 seconds.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``memory:``, or
            ``postgresql://user@host/database`` with any option of libpq's.
        options: How to open it.

    Raises:
        InvalidValue: The URL has none of these forms.
        DriverMissing: psycopg, which PostgreSQL needs, is not installed.
        StoreError: The store cannot be used; the class says why.
    """
    options = options or StoreOptions()
    if url == MEMORY:
        from .memory import MemoryBackend

        return MemoryBackend(options.clock)
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        from .sqlite import SqliteBackend, SqliteReader

        path = sqlite_path(url)
        if options.read_only:
            return SqliteReader(path, clock=options.clock)
        return SqliteBackend(
            path,
            clock=options.clock,
            writer=options.writer(),
            create=options.create,
            migrate=options.migrate,
        )
    if url.startswith(POSTGRES):
        _require_driver()
        from .postgres import open_postgres

        return open_postgres(
            url,
            writer=options.writer(),
            create=options.create,
            migrate=options.migrate,
            read_only=options.read_only,
        )
    raise InvalidValue(
        "the store URL",
        "must be sqlite:///FILE, sqlite:////ABSOLUTE/FILE, "
        "postgresql://USER@HOST/DATABASE or memory:",
    )


def listener_of(url: str, channels: Sequence[str]) -> Listener | None:
    """Make a listener on a store; None for a store that cannot push.

    Raises:
        InvalidValue: The URL is not one of a store.
        DriverMissing: psycopg is not installed.
    """
    if not url.startswith(POSTGRES):
        return None
    _require_driver()
    from .postgres import PostgresListener

    return PostgresListener(url, channels)


def _require_driver() -> None:
    if find_spec("psycopg") is None:
        raise DriverMissing


def migrate_store(url: str, options: StoreOptions | None = None) -> tuple[int, int]:
    """Raise a store's schema to this release's version; make it when it is missing.

    Returns:
        The version before, 0 for none, and the version after.

    Raises:
        InvalidValue: The URL is not one of a store.
        SchemaTooNew: A newer release wrote the store; nothing is changed.
        StoreError: The store cannot be used.
    """
    options = options or StoreOptions()
    if url.startswith(POSTGRES):
        _require_driver()
        from .postgres import migrate_database

        return migrate_database(url)
    if not url.startswith(SQLITE):
        version = open_store(url, options).descriptor.schema_version
        return version, version
    from .sqlite import migrate_file

    return migrate_file(sqlite_path(url), options.clock)


def sqlite_path(url: str) -> str:
    """Give the path in a URL of a SQLite store.

    Raises:
        InvalidValue: It holds a character that no path can hold, or options.
    """
    written = url[len(SQLITE) :]
    if "?" in written:
        raise InvalidValue(
            "the store URL",
            "must end with the file's name, SQLite takes no options (write a '?' that "
            "belongs to the name as %3F)",
        )
    path = unquote(written)
    if "\0" in path:
        raise InvalidValue("the store URL", "must not hold the character U+0000")
    return path
