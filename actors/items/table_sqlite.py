"""A table of a SQLite database, as a `TableWriter` writes it."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter, length_hint
from typing import Any

from ...storage.commands import Cursor
from .errors import TableMismatch, TableMissing, quoted
from .protocols import ChunkKey
from .table_rows import Row, identifier, refusal
from .table_sqlite_faults import row_fault

SQL_TYPES: dict[type, str] = {
    int: "INTEGER",
    float: "REAL",
    str: "TEXT",
    bytes: "BLOB",
    bool: "INTEGER",
}
SYNONYMS = {"INT": "INTEGER"}

_ROW_ERRORS = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    OverflowError,
    UnicodeEncodeError,
    LookupError,
    TypeError,
)
"""What a bad row may raise: from SQLite, from binding it, from taking it apart."""


def folded(name: str) -> bytes:
    """Fold a name as SQLite compares names: only A to Z lose their case."""
    return name.encode().lower()


def _refuse_text(row: object) -> Sequence[Any]:
    """Keep SQLite from taking the characters of a text for the values of a row."""
    raise TypeError(type(row).__name__)


class SqliteTable:
    """A table that is there and has the declared columns.

    Args:
        cursor: Of the transaction that opens the step.
        name: The table.
        columns: As declared, or None for those that the table has.
        create: Whether to make a table that is absent.

    Raises:
        TableMissing: There is no such table, or it cannot be created.
        TableMismatch: A column is missing or has another type.
    """

    def __init__(
        self,
        cursor: Cursor,
        name: str,
        columns: dict[str, type] | None,
        *,
        create: bool,
    ) -> None:
        self._name = name
        if columns is not None and create:
            self._create(cursor, columns)
        actual = self._actual(cursor)
        if columns is not None:
            self._check_columns(columns, actual)
        self._names = tuple(actual if columns is None else columns)
        into = ", ".join(map(identifier, self._names))
        values = ", ".join("?" * len(self._names))
        self._insert = f"INSERT INTO {identifier(name)} ({into}) VALUES ({values})"

    def write(self, cursor: Cursor, rows: Sequence[Row], chunk_key: ChunkKey) -> None:
        """Insert *rows*.

        Raises:
            TableRowRefused: A row does not fit; the transaction must be rolled back.
            sqlite3.Error: The database itself failed.
        """
        left = iter(rows if isinstance(rows, list | tuple) else list(rows))
        try:
            cursor.executemany(self._insert, self._bound(rows[0], left))
        except _ROW_ERRORS as exc:
            index = len(rows) - length_hint(left) - 1
            fault = None
            if index >= 0:
                fault = row_fault(self._name, self._names, rows[0], rows[index], exc)
            if fault is None:
                raise
            raise refusal(self._name, fault, index, chunk_key) from exc

    def _bound(self, first: Row, rows: Iterator[Row]) -> Iterable[Sequence[Any]]:
        """Turn rows into what SQLite binds by position, one at a time."""
        if isinstance(first, str | bytes | bytearray):
            return map(_refuse_text, rows)
        if not isinstance(first, Mapping):
            return rows  # type: ignore[return-value]  # else it is refused when bound
        pick: Callable[[Any], Any] = itemgetter(*self._names)
        picked = map(pick, rows)
        return zip(picked) if len(self._names) == 1 else picked

    def _create(self, cursor: Cursor, columns: dict[str, type]) -> None:
        body = ", ".join(
            f"{identifier(name)} {SQL_TYPES[kind]}" for name, kind in columns.items()
        )
        name = identifier(self._name)
        try:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {name} ({body}) STRICT")
        except sqlite3.OperationalError as exc:
            if getattr(exc, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
                raise
            reason = f"it cannot be created ({exc})"
            raise TableMissing(self._name, None, reason) from exc

    def _actual(self, cursor: Cursor) -> dict[str, str]:
        """Give the columns that the table has, with their types in capitals."""
        cursor.execute(f"PRAGMA table_info({identifier(self._name)})")
        actual = {row[1]: row[2].upper() for row in cursor.fetchall()}
        if not actual:
            mend = "create it, or declare columns and leave create at True"
            raise TableMissing(self._name, None, f"there is no such table; {mend}")
        return actual

    def _check_columns(self, columns: dict[str, type], actual: dict[str, str]) -> None:
        types = {folded(name): kind for name, kind in actual.items()}
        for name, kind in columns.items():
            found = types.get(folded(name))
            if found is None:
                reason = f"declared, but the table only has {quoted(actual)}"
                raise TableMismatch(self._name, name, reason)
            wanted = SQL_TYPES[kind]
            if SYNONYMS.get(found, found) != wanted:
                reason = (
                    f"declared as {kind.__name__} ({wanted}), but the table has "
                    f"{found or 'no type'}; alter one of the two"
                )
                raise TableMismatch(self._name, name, reason)
