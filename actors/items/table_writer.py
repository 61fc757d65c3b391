"""A writer of rows into a table of the store's own database."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import ClassVar

from attrs import Attribute, define, field

from ...storage.commands import Cursor
from ...storage.model.errors import InvalidValue
from .protocols import ChunkKey, Delivery
from .table_rows import Row, Table
from .table_sqlite import SQL_TYPES, SqliteTable, folded

RESERVED = (b"triolet_", b"sqlite_")


def _check_identifier(what: str, name: object) -> None:
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidValue(what, "must be text, not empty and without U+0000")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidValue(what, "must not hold a lone surrogate") from None


def _check_table(_: object, __: "Attribute[str]", name: str) -> None:
    _check_identifier("table", name)
    if folded(name).startswith(RESERVED):
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
    if len({folded(name) for name in value}) < len(value):
        raise InvalidValue("columns", "has two names that differ only in case")
    return dict(value)


@define(eq=False)
class TableWriter:
    """Insert each chunk's rows in the transaction that stores the checkpoint.

    So every row is written exactly once. Rows are sequences in the order of *columns*
    or dicts by name, as the first row of the chunk is; keys that name no column are
    not written. A value that does not fit its column's type is refused, and the chunk
    with it; the store converts what loses nothing: the text "12" into an integer.

    On SQLite a table that is created here is STRICT, and NaN is stored as NULL. On
    PostgreSQL int is bigint, float double precision, str text, bytes bytea and bool
    boolean; names are taken exactly as they are written here, without a schema, and
    rows travel by COPY.

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
    _opened: Table | None = field(default=None, init=False, repr=False)

    def open(self, cursor: Cursor | None) -> None:
        """Create the table, or check that it has the declared columns and types.

        Raises:
            TableMissing: There is no such table, or it cannot be created.
            TableMismatch: A column is missing or has another type, or the table is not
                one to write into.
        """
        if cursor is None:
            raise InvalidValue("the cursor of TableWriter", "is missing")
        if isinstance(cursor, sqlite3.Cursor):
            self._opened = SqliteTable(
                cursor, self.table, self.columns, create=self.create
            )
            return
        # Only a store on PostgreSQL needs its driver.
        from .table_postgres import PostgresTable

        self._opened = PostgresTable(
            cursor, self.table, self.columns, create=self.create
        )

    def write(
        self, cursor: Cursor | None, rows: Sequence[Row], chunk_key: ChunkKey
    ) -> None:
        """Insert *rows*.

        Raises:
            TableRowRefused: A row does not fit; the transaction must be rolled back.
            sqlite3.Error: SQLite itself failed.
            psycopg.Error: PostgreSQL itself failed.
        """
        if cursor is None or self._opened is None:
            raise InvalidValue("TableWriter", "is not open, or has no cursor")
        if rows:
            self._opened.write(cursor, rows, chunk_key)

    def close(self) -> None:
        """Do nothing: the cursor belongs to the transaction."""
