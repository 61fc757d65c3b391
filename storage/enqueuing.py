"""Entering a launch request on a connection of the caller's own."""

import sqlite3
import sys
from typing import TYPE_CHECKING, Any

from .commands.requesting import RequestLaunch
from .model.errors import InvalidValue
from .stores import host_clock

if TYPE_CHECKING:
    import psycopg


def insert_request(
    connection: "sqlite3.Connection | psycopg.Connection[Any]", command: RequestLaunch
) -> int:
    """Enter a request in the transaction that is open, or begin one as the driver does.

    Raises:
        InvalidValue: The connection is of another kind.
        SchemaMissing: There is no store in this database, or an older one.
        sqlite3.Error, psycopg.Error: Whatever else the connection raises.
    """
    given: object = connection
    if isinstance(given, sqlite3.Connection):
        from .sqlite.enqueuing import insert_on_sqlite

        return insert_on_sqlite(given, command, host_clock())
    if "psycopg" in sys.modules:  # else nobody can have a connection of its
        import psycopg

        if isinstance(given, psycopg.Connection):
            from .postgres.enqueuing import insert_on_postgres

            return insert_on_postgres(given, command)
    wanted = "must be a sqlite3.Connection or a (synchronous) psycopg.Connection"
    raise InvalidValue("the connection", f"{wanted}, not {type(given).__name__}")
