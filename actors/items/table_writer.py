"""A writer of rows into a table of the store's own SQLite database."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter, length_hint
from typing import Any, ClassVar, TypeAlias

from attrs import Attribute, define, field

from ...storage.commands import Cursor
from ...storage.model.errors import InvalidValue
from .errors import TableMismatch, TableMissing, TableRowRefused, quoted
from .protocols import ChunkKey, Delivery
from .table_faults import row_fault

Row: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Values in the order of the columns, or by the columns' names."""

SQL_TYPES: dict[type, str] = {
    int: "INTEGER",
    float: "REAL",
    str: "TEXT",
    bytes: "BLOB",
    bool: "INTEGER",
}
SYNONYMS = {"INT": "INTEGER"}
RESERVED = (b"triolet_", b"sqlite_")

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


def _folded(name: str) -> bytes:
    """Fold a name as SQLite compares names: only A to Z lose their case."""
    return name.encode().lower()


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_identifier(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidValue(what, "must be text, not empty and without U+0000")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidValue(what, "must not hold a lone surrogate") from None


def _check_table(_: object, __: "Attribute[str]", name: str) -> None:
    _check_identifier("table", name)
    if _folded(name).startswith(RESERVED):
        raise InvalidValue(
            "table", "must not begin with triolet_ or sqlite_: such names are reserved"
        )


def _check_create(_: object, __: "Attribute[bool]", value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidValue("create", "must be True or False")


def _columns(value: object) -> dict[str, type] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value:
        raise InvalidValue("columns", "must map column names to types, at least one")
    for name, kind in value.items():
        _check_identifier("a name in columns", name)
        if not isinstance(kind, type) or kind not in SQL_TYPES:
            allowed = "int, float, str, bytes or bool"
            raise InvalidValue(f"columns[{name!r}]", f"must be the type {allowed}")
    if len({_folded(name) for name in value}) < len(value):
        raise InvalidValue("columns", "has two names that differ only in case")
    return dict(value)


def _refuse_text(row: object) -> Sequence[Any]:
    """Keep SQLite from taking the characters of a text for the values of a row."""
    raise TypeError(type(row).__name__)


@define(eq=False)
class TableWriter:
    """Insert each chunk's rows in the transaction that stores the checkpoint.

    So every row is written exactly once. Rows are sequences in the order of *columns*
    or dicts by name, as the first row of the chunk is; keys that name no column are
    not written. A table that is created here is STRICT: a value that does not fit its
    column's type is refused, and the chunk with it. SQLite converts what loses nothing:
    the text "12" into an integer, an integer into a float. NaN it stores as NULL.

    Args:
        table: Its name, in the store's database. Names that begin with triolet_ or
            sqlite_ are reserved.
        columns: From name to int, float, str, bytes or bool; all may be NULL. None
            takes the columns of the table, which must then exist.
        create: Whether to create the table when it is absent.

    Raises:
        InvalidValue: An argument breaks these rules.
    """

    delivery: ClassVar[Delivery] = Delivery.ATOMIC

    table: str = field(validator=_check_table)
    columns: dict[str, type] | None = field(default=None, converter=_columns)
    create: bool = field(default=True, kw_only=True, validator=_check_create)
    _names: tuple[str, ...] = field(default=(), init=False, repr=False)
    _insert: str = field(default="", init=False, repr=False)

    def open(self, cursor: Cursor | None) -> None:
        """Create the table, or check that it has the declared columns and types.

        Raises:
            TableMissing: There is no such table, or it cannot be created.
            TableMismatch: A column is missing or has another type.
        """
        if cursor is None:
            raise InvalidValue("the cursor of TableWriter", "is missing")
        if self.columns is not None and self.create:
            self._create(cursor, self.columns)
        actual = self._actual(cursor)
        if self.columns is not None:
            self._check_columns(self.columns, actual)
        self._names = tuple(actual if self.columns is None else self.columns)
        into = ", ".join(map(_identifier, self._names))
        values = ", ".join("?" * len(self._names))
        self._insert = (
            f"INSERT INTO {_identifier(self.table)} ({into}) VALUES ({values})"
        )

    def write(
        self, cursor: Cursor | None, rows: Sequence[Row], chunk_key: ChunkKey
    ) -> None:
        """Insert *rows*.

        Raises:
            TableRowRefused: A row does not fit; the transaction must be rolled back.
            sqlite3.Error: The database itself failed.
        """
        if cursor is None or not self._insert:
            raise InvalidValue("TableWriter", "is not open, or has no cursor")
        if not rows:
            return
        left = iter(rows if isinstance(rows, list | tuple) else list(rows))
        try:
            cursor.executemany(self._insert, self._bound(rows[0], left))
        except _ROW_ERRORS as exc:
            index = len(rows) - length_hint(left) - 1
            refused = self._refusal(rows, index, chunk_key, exc)
            if refused is None:
                raise
            raise refused from exc

    def close(self) -> None:
        """Do nothing: the cursor belongs to the transaction."""

    def _refusal(
        self, rows: Sequence[Row], index: int, chunk_key: ChunkKey, exc: Exception
    ) -> TableRowRefused | None:
        """Explain *exc* by the row that was bound last; None if it is not at fault."""
        if index < 0:
            return None
        fault = row_fault(self.table, self._names, rows[0], rows[index], exc)
        if fault is None:
            return None
        column, reason = fault
        ordinal = chunk_key.ordinal + index
        return TableRowRefused(self.table, column, reason, index, ordinal)

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
            f"{_identifier(name)} {SQL_TYPES[kind]}" for name, kind in columns.items()
        )
        name = _identifier(self.table)
        try:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {name} ({body}) STRICT")
        except sqlite3.OperationalError as exc:
            if getattr(exc, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
                raise
            reason = f"it cannot be created ({exc})"
            raise TableMissing(self.table, None, reason) from exc

    def _actual(self, cursor: Cursor) -> dict[str, str]:
        """Give the columns that the table has, with their types in capitals."""
        cursor.execute(f"PRAGMA table_info({_identifier(self.table)})")
        actual = {row[1]: row[2].upper() for row in cursor.fetchall()}
        if not actual:
            mend = "create it, or declare columns and leave create at True"
            raise TableMissing(self.table, None, f"there is no such table; {mend}")
        return actual

    def _check_columns(self, columns: dict[str, type], actual: dict[str, str]) -> None:
        types = {_folded(name): kind for name, kind in actual.items()}
        for name, kind in columns.items():
            found = types.get(_folded(name))
            if found is None:
                reason = f"declared, but the table only has {quoted(actual)}"
                raise TableMismatch(self.table, name, reason)
            wanted = SQL_TYPES[kind]
            if SYNONYMS.get(found, found) != wanted:
                reason = (
                    f"declared as {kind.__name__} ({wanted}), but the table has "
                    f"{found or 'no type'}; alter one of the two"
                )
                raise TableMismatch(self.table, name, reason)
