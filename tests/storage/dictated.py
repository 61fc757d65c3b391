"""A PostgreSQL store whose clock and ids a test dictates, so that it can be compared.

Its sequences give the next number after the last row, as the other stores do: a batch
that is rolled back leaves no gap. Its clock is the test's.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import psycopg
from attrs import evolve
from psycopg import sql

from tests.postgres.server import Installation, shared_server
from triolet.storage.backend import Backend, Waits
from triolet.storage.commands import Advance, Command, CommitChunk, Cursor, Enlist
from triolet.storage.postgres import PostgresBackend, migrate_database

DATABASE = "dictated"
NUMBERED = (
    "owner",
    "definition",
    "instance",
    "execution",
    "step",
    "operator_request",
    "launch_request",
)
_HOOKS = """
CREATE SCHEMA tests;
CREATE OR REPLACE FUNCTION triolet.now() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT current_setting('tests.now')::bigint $$;
CREATE FUNCTION tests.next(name text) RETURNS bigint LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    number bigint;
BEGIN
    EXECUTE format('SELECT coalesce(max(id), 0) + 1 FROM triolet.%I', name) INTO number;
    RETURN number;
END
$$;
"""


class DictatedBackend(PostgresBackend):
    """The real backend, with the test's clock told to the server before each batch."""

    def __init__(self, url: str, clock: Callable[[], int]) -> None:
        super().__init__(url, writer=bytes(16), create=False)
        self.url = url
        self._clock = clock

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Set the clock, then do what the real one does."""
        wire = yield from self._link.connected()
        setting = "SELECT set_config('tests.now', $1, false)"
        yield from wire.exchange([(setting, (str(self._clock()),))])
        timed = [self._timed(command) for command in batch]
        return (yield from super().apply(batch_id, timed))

    def _timed(self, command: Command[Any]) -> Command[Any]:
        """Let the time that an enlisted write takes be seen after it."""
        if not command.enlisted:
            return command
        assert isinstance(command, Advance | CommitChunk | Enlist)
        write = command.write
        assert write is not None

        def timed(cursor: Cursor) -> None:
            write(cursor)
            cursor.execute(f"SELECT set_config('tests.now', '{self._clock()}', false)")

        return evolve(command, write=timed)


def open_dictated(installation: Installation, clock: Callable[[], int]) -> Backend:
    """Open the one dictated store of a server, emptied."""
    url, admin = _database(installation)
    left = admin.execute(
        "SELECT schemaname || '.' || tablename FROM pg_tables "
        "WHERE schemaname IN ('triolet', 'public') AND tablename <> 'schema_version'"
    ).fetchall()
    for (name,) in left:
        table = sql.Identifier(*name.split("."))
        verb = "TRUNCATE {} CASCADE" if name.startswith("triolet.") else "DROP TABLE {}"
        admin.execute(sql.SQL(verb).format(table))
    backend = DictatedBackend(url, clock)
    backend.connect()
    return backend


@cache
def _database(installation: Installation) -> tuple[str, psycopg.Connection]:
    url = shared_server(installation).create_database(DATABASE)
    migrate_database(url)
    admin = psycopg.connect(url, autocommit=True)
    admin.execute(_HOOKS)
    admin.execute(f"ALTER DATABASE {DATABASE} SET tests.now = '0'")
    for name in NUMBERED:
        table = sql.Identifier("triolet", name)
        for change in (
            "ALTER COLUMN id DROP IDENTITY",
            f"ALTER COLUMN id SET DEFAULT tests.next('{name}')",
        ):
            admin.execute(sql.SQL("ALTER TABLE {} " + change).format(table))
    return url, admin
