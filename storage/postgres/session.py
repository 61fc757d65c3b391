"""A transaction in PostgreSQL, one statement at a time."""

from collections.abc import Mapping, Sequence

import psycopg

from ..backend import Waits
from ..commands import WriteFailed
from ..commands.command import EnlistedWrite, call_enlisted
from ..sql.session import Query, Row, UniqueViolation, Value
from .arrays import array_of
from .faults import UNIQUE_VIOLATION, UNORDERED, explained
from .wire import ConnectionLost, Refusal, Result, Statement, Wire


class PostgresSession:
    """The transaction that is open on a connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _one(self, statement: Statement) -> Waits[Result]:
        (result,) = yield from self._wire.exchange([statement])
        return result

    def fetch(self, sql: str, values: Sequence[Value] = ()) -> Waits[list[Row]]:
        """Give the rows of a query."""
        result = yield from self._one((sql, values))
        return result.rows

    def fetch_each(self, queries: Sequence[Query]) -> Waits[list[list[Row]]]:
        """Give the rows of several queries, asked at once."""
        results = yield from self._wire.exchange(queries)
        return [result.rows for result in results]

    def change(self, sql: str, values: Sequence[Value]) -> Waits[int]:
        """Carry out a statement; give the number of rows that it changed."""
        result = yield from self._keyed((sql, values))
        return result.changed

    def insert(self, sql: str, values: Sequence[Value]) -> Waits[int | None]:
        """Insert at most one row; give its id."""
        result = yield from self._keyed((f"{sql} RETURNING id", values))
        return result.rows[0][0] if result.rows else None

    def insert_all(
        self, table: str, columns: Mapping[str, str], rows: Sequence[Sequence[Value]]
    ) -> Waits[None]:
        """Insert many rows into a table."""
        arrays = ", ".join(
            f"${at}::{kind}[]" for at, kind in enumerate(columns.values(), 1)
        )
        sql = (
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"
        )
        values = list(map(array_of, columns.values(), zip(*rows, strict=True)))
        yield from self._one((sql, values))

    def _keyed(self, statement: Statement) -> Waits[Result]:
        try:
            return (yield from self._one(statement))
        except Refusal as refusal:
            if refusal.sqlstate == UNIQUE_VIOLATION:
                raise UniqueViolation from refusal
            raise

    def clock(self) -> Waits[int]:
        """Read the store's clock."""
        ((now,),) = yield from self.fetch("SELECT triolet.now()")
        return int(now)

    def notify(self, channel: str) -> Waits[None]:
        """Tell whoever listens to the store that there is something, once committed."""
        yield from self._one(("SELECT pg_notify($1, '')::text", (channel,)))

    def savepoint(self) -> Waits[None]:
        """Remember this point of the transaction."""
        yield from self._one(("SAVEPOINT trial", ()))

    def undo(self) -> Waits[None]:
        """Go back to the savepoint and forget it."""
        back = [("ROLLBACK TO SAVEPOINT trial", ()), ("RELEASE SAVEPOINT trial", ())]
        yield from self._wire.exchange(back)

    def write(self, write: EnlistedWrite) -> Waits[None]:
        """Call user code with a psycopg cursor; see that the transaction stays open.

        Raises:
            StoreUnavailable: The transaction failed in a way that may pass.
            ConnectionLost: It failed with the connection.
        """
        yield from ()
        wire = self._wire
        cursor = wire.connection.cursor()
        try:
            call_enlisted(write, cursor)
        except WriteFailed as failed:
            if wire.broken:
                raise ConnectionLost(str(failed.cause)) from failed
            sqlstate = getattr(failed.cause, "sqlstate", None) or ""
            if isinstance(failed.cause, psycopg.Error) and sqlstate in UNORDERED:
                raise explained(sqlstate) from failed
            raise
        finally:
            cursor.close()
        if not wire.in_transaction:
            error = RuntimeError("the enlisted write ended the transaction")
            raise WriteFailed(error)
