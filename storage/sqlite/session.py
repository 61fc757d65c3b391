"""A transaction in SQLite, and the words in which its dialect differs."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence

from ..backend import Waits
from ..commands import WriteFailed
from ..commands.command import EnlistedWrite, call_enlisted
from ..sql.session import Query, Row, UniqueViolation, Value

# SQLite locks the whole file, so rows need no locks; its largest-of function is max.
_WORDS = (
    ("triolet.", "triolet_"),
    ("$", "?"),
    ("greatest(", "max("),
    (" FOR NO KEY UPDATE", ""),
    (" FOR KEY SHARE", ""),
    (" FOR UPDATE OF e", ""),
    (" FOR UPDATE OF r", ""),
    (" SKIP LOCKED", ""),
)


def _translated(sql: str) -> str:
    for theirs, ours in _WORDS:
        sql = sql.replace(theirs, ours)
    return sql


class _Translations(dict[str, str]):
    def __missing__(self, sql: str) -> str:
        return self.setdefault(sql, _translated(sql))


_TRANSLATED = _Translations()


class SqliteSession:
    """The transaction that is open on a connection; no statement ever waits."""

    def __init__(self, db: sqlite3.Connection, clock: Callable[[], int]) -> None:
        self._db = db
        self._clock = clock

    def fetch(self, sql: str, values: Sequence[Value] = ()) -> Waits[list[Row]]:
        """Give the rows of a query."""
        yield from ()
        return self._db.execute(_TRANSLATED[sql], values).fetchall()

    def fetch_each(self, queries: Sequence[Query]) -> Waits[list[list[Row]]]:
        """Give the rows of several queries, asked at once."""
        yield from ()
        execute = self._db.execute
        return [execute(_TRANSLATED[sql], bound).fetchall() for sql, bound in queries]

    def change(self, sql: str, values: Sequence[Value]) -> Waits[int]:
        """Carry out a statement; give the number of rows that it changed."""
        yield from ()
        return self._executed(sql, values).rowcount

    def insert(self, sql: str, values: Sequence[Value]) -> Waits[int | None]:
        """Insert at most one row; give its id."""
        yield from ()
        cursor = self._executed(sql, values)
        return cursor.lastrowid if cursor.rowcount == 1 else None

    def insert_all(
        self, table: str, columns: Mapping[str, str], rows: Sequence[Sequence[Value]]
    ) -> Waits[None]:
        """Insert many rows into a table."""
        yield from ()
        places = ", ".join(f"${at}" for at in range(1, len(columns) + 1))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
        self._db.executemany(_TRANSLATED[sql], rows)

    def _executed(self, sql: str, values: Sequence[Value]) -> sqlite3.Cursor:
        try:
            return self._db.execute(_TRANSLATED[sql], values)
        except sqlite3.IntegrityError as exc:
            if exc.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE":
                raise UniqueViolation from exc
            raise

    def clock(self) -> Waits[int]:
        """Read the store's clock."""
        yield from ()
        return self._clock()

    def notify(self, channel: str) -> Waits[None]:
        """Do nothing: a file cannot push."""
        yield from ()

    def savepoint(self) -> Waits[None]:
        """Remember this point of the transaction."""
        yield from ()
        self._db.execute("SAVEPOINT trial")

    def undo(self) -> Waits[None]:
        """Go back to the savepoint and forget it."""
        yield from ()
        self._db.execute("ROLLBACK TO trial")
        self._db.execute("RELEASE trial")

    def write(self, write: EnlistedWrite) -> Waits[None]:
        """Call user code with a cursor; see that it left the transaction open."""
        yield from ()
        cursor = self._db.cursor()
        try:
            call_enlisted(write, cursor)
        finally:
            cursor.close()
        if not self._db.in_transaction:
            error = RuntimeError("the enlisted write ended the transaction")
            raise WriteFailed(error)
