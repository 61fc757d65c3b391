"""Entering a launch request on a connection of the caller's own, in PostgreSQL."""

from typing import Any

import psycopg
from psycopg.rows import tuple_row

from ..commands.requesting import LAUNCH_CHANNEL, RequestLaunch
from ..model.errors import SchemaMissing
from ..sql.requesting import INSERT_REQUEST, request_values
from .schema import NEWEST

_INSERT = (
    f"WITH made AS ({INSERT_REQUEST.replace('$5', 'triolet.now()')} RETURNING id) "
    f"SELECT id, pg_notify('{LAUNCH_CHANNEL}', '')::text FROM made"
)
_ABSENT = psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName


def insert_on_postgres(
    connection: psycopg.Connection[Any], command: RequestLaunch
) -> int:
    """Enter a request; give its number. Listeners hear of it when it is committed.

    Raises:
        SchemaMissing: There is no store in this database, or an older one.
        psycopg.Error: Whatever else the connection raises.
    """
    *values, _ = request_values(command, 0)
    cursor = psycopg.RawCursor(connection, row_factory=tuple_row)
    with cursor:
        try:
            row = cursor.execute(_INSERT, values).fetchone()
        except _ABSENT as exc:
            raise SchemaMissing(None, NEWEST) from exc
    assert row is not None
    return int(row[0])
