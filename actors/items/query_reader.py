"""Reading the rows of a database, page by page along a unique key.

Keyset paging: each page asks for the rows behind the last key, so that rows which
appear, vanish or leave the result meanwhile never shift the window, as they would with
an offset. It needs a key that is unique; where it is not, rows could be left out, and
the reader says so instead.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...storage.model.errors import InvalidValue
from ...storage.model.json import JsonObject
from .errors import QueryChanged, QueryKeyInvalid
from .table_rows import identifier

_STATE = "after"


class DatabaseConnection(Protocol):
    """What the reader needs of a connection: what DB-API promises (PEP 249)."""

    def cursor(self) -> Any:  # noqa: ANN401  # as in DB-API
        """Make a cursor."""

    def rollback(self) -> object:
        """End the transaction."""

    def close(self) -> object:
        """Close the connection."""


class QueryReader:
    """Reads a table or a query restartably; its items are tuples of column values.

    Args:
        connect: Opens a connection of the reader's own, with sqlite3 or psycopg; called
            when the step begins, closed when it ends.
        source: A table's name, or a whole ``SELECT`` without ``ORDER BY``. In a query
            for psycopg a per cent sign is written twice.
        key: Columns of the result, by which it is ordered and which are unique
            together; integers, floats or texts without NULL.

    Raises:
        InvalidValue: The source or the key is empty.

    Every `read` is one query and one short transaction. A restart goes on behind the
    last key that was committed, also when rows were added or removed before it.
    """

    def __init__(
        self,
        connect: Callable[[], DatabaseConnection],
        source: str,
        *,
        key: Sequence[str] = ("id",),
    ) -> None:
        if not source.strip():
            raise InvalidValue("the source of a QueryReader", "must not be empty")
        if isinstance(key, str) or not key:
            raise InvalidValue("the key of a QueryReader", "must be a list of columns")
        self._connect = connect
        self._source = source.strip().rstrip(";")
        self._key = tuple(key)
        self._connection: DatabaseConnection | None = None
        self._after: tuple[Any, ...] | None = None

    def open(self, state: JsonObject | None) -> None:
        """Connect; the first page begins behind the key in *state*.

        Raises:
            QueryChanged: The state belongs to another key.
        """
        self._after = None
        if state is not None:
            after = state.get(_STATE)
            if not isinstance(after, list) or len(after) not in (0, len(self._key)):
                raise QueryChanged(self._key)
            self._after = tuple(after) or None
        self._connection = self._connect()

    def read(self, n: int) -> list[tuple[Any, ...]]:
        """Give the next rows, in the order of the key.

        Raises:
            QueryKeyInvalid: A key is missing, NULL, no number or text, or not unique.
        """
        connection = self._connection
        assert connection is not None, "the reader is not open"
        cursor = connection.cursor()
        try:
            cursor.execute(self._statement(connection, n + 1), self._after or ())
            names = [column[0] for column in cursor.description]
            rows = [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()
            connection.rollback()
        keys = self._keys(names, rows)
        if rows := rows[:n]:
            self._after = keys[len(rows) - 1]
        return rows

    def state(self) -> JsonObject:
        """Give the last key; it is stored as JSON."""
        return {_STATE: list(self._after or ())}

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _statement(self, connection: DatabaseConnection, limit: int) -> str:
        columns = ", ".join(map(identifier, self._key))
        is_query = re.match(r"(select|with|values)\b", self._source, re.IGNORECASE)
        source = f"({self._source})" if is_query else identifier(self._source)
        where = ""
        if self._after is not None:
            kind = type(connection).__module__.partition(".")[0]
            mark = "%s" if kind == "psycopg" else "?"
            marks = ", ".join([mark] * len(self._key))
            where = f" WHERE ({columns}) > ({marks})"
        return (
            f"SELECT * FROM {source} AS source{where} ORDER BY {columns} LIMIT {limit}"
        )

    def _keys(
        self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> list[tuple[Any, ...]]:
        missing = [name for name in self._key if name not in names]
        if missing:
            raise QueryKeyInvalid(self._key, f"the result has no column {missing[0]!r}")
        places = [names.index(name) for name in self._key]
        keys = [tuple(row[at] for at in places) for row in rows]
        before = self._after
        for key in keys:
            if not all(type(value) in (int, float, str) for value in key):
                reason = "a value is NULL, or neither a number nor a text: cast it"
                raise QueryKeyInvalid(self._key, reason)
            if key == before:
                reason = "two rows have the same: add a column that tells them apart"
                raise QueryKeyInvalid(self._key, reason)
            before = key
        return keys
