"""Entering a launch request on a connection of the caller's own, in SQLite."""

import sqlite3

from ..backend import drive
from ..commands.requesting import RequestLaunch
from ..sql.requesting import request_launch
from .schema import require
from .session import SqliteSession


def insert_on_sqlite(
    connection: sqlite3.Connection, command: RequestLaunch, now: int
) -> int:
    """Enter a request; give its number.

    Raises:
        SchemaMissing: There is no store in this file, or an older one.
        sqlite3.Error: Whatever else the connection raises.
    """
    require(connection)
    session = SqliteSession(connection, lambda: now)
    return drive(request_launch(session, command, now)).request_id
