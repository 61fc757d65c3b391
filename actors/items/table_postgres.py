"""A table of a PostgreSQL database, as a `TableWriter` writes it: by COPY.

Rows of nothing but plain text, as they come from a file, are put together as COPY reads
them; all others are formatted by psycopg, in C, which is nearly as fast.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter, length_hint
from typing import Any, cast

import psycopg

from ...storage.commands import Cursor
from .errors import TableError, TableMismatch, TableMissing, quoted
from .protocols import ChunkKey
from .table_postgres_faults import Unstorable, server_fault, value_fault
from .table_rows import MEND, Row, identifier, refusal, shape_fault

SQL_TYPES: dict[type, str] = {
    int: "bigint",
    float: "double precision",
    str: "text",
    bytes: "bytea",
    bool: "boolean",
}
SYNONYMS = {
    "integer": "bigint",
    "smallint": "bigint",
    "character varying": "text",
}
"""Narrower types: the server refuses a value that does not fit."""
SCALARS = {*SQL_TYPES.values(), *SYNONYMS}
NAME_BYTES_MAX = 63
TABLE_KINDS = "rpf"
"""Ordinary, partitioned and foreign ones; no views."""
OURS = "triolet"
RESERVED = {OURS, "pg_catalog", "information_schema"}

_BINARY = (bytes, bytearray, memoryview)
_VALUE_ERRORS = (psycopg.Error, ValueError, TypeError, OverflowError, LookupError)

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('triolet table ' || %s))"
_TABLE = (
    "SELECT n.nspname, c.relkind::text FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)"
)
_COLUMNS = (
    "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
    "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
    "AND attgenerated = '' ORDER BY attnum"
)


class PostgresTable:
    """A table that is there and has the declared columns.

    Args:
        cursor: Of the transaction that opens the step, one of psycopg's.
        name: The table, without a schema: the search path finds it.
        columns: As declared, or None for those that the table has.
        create: Whether to make a table that is absent.

    Raises:
        TableMissing: There is no such table, or it cannot be created.
        TableMismatch: A column is missing or has another type, or the table is a view
            or belongs to Triolet or to PostgreSQL.
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
        self._check_length(columns or {})
        if not self._is_there(cursor):
            if columns is None or not create:
                mend = "create it, or declare columns and leave create at True"
                raise TableMissing(name, None, f"there is no such table; {mend}")
            self._create(cursor, columns)
        cursor.execute(_COLUMNS, (identifier(name),))
        actual: dict[str, str] = dict(cursor.fetchall())
        if columns is not None:
            self._check_columns(columns, actual)
        self._names = tuple(actual if columns is None else columns)
        self._types = {column: actual[column] for column in self._names}
        into = ", ".join(map(identifier, self._names))
        self._copy = f"COPY {identifier(name)} ({into}) FROM STDIN"
        self._unstorable = self._refused_kinds()
        self._texts = () if bytes in self._unstorable else self._text_columns()

    def write(self, cursor: Cursor, rows: Sequence[Row], chunk_key: ChunkKey) -> None:
        """Copy *rows* into the table.

        Raises:
            TableRowRefused: A row does not fit; the transaction must be rolled back.
            TableError: Some row does not fit, and the server does not say which.
            psycopg.Error: The database itself failed.
        """
        target = cast("psycopg.Cursor[Any]", cursor)
        for kind in self._unstorable:
            target.adapters.register_dumper(kind, Unstorable)
        values = self._in_order(rows, chunk_key)
        left = iter(values)
        text = _plain_text(values, len(self._names))
        if text is None:
            self._check_texts(values, chunk_key)
        try:
            with target.copy(self._copy) as copy:
                if text is not None:
                    copy.write(text)
                    left = iter(())
                write_row = copy.write_row
                for row in left:
                    write_row(row)
        except _VALUE_ERRORS as exc:
            if isinstance(exc, psycopg.Error) and exc.sqlstate is not None:
                error = self._refused_by_server(exc, len(values), chunk_key)
            else:
                index = len(values) - length_hint(left) - 1
                fault = value_fault(target, self._names, values[index])
                error = fault and refusal(self._name, fault, index, chunk_key)
            if error is None:
                raise
            raise error from exc

    def _refused_by_server(
        self, exc: psycopg.Error, count: int, chunk_key: ChunkKey
    ) -> Exception | None:
        found = server_fault(self._name, self._types, exc)
        if found is None:
            return None
        index, (column, reason) = found
        if index is not None and index < count:
            return refusal(self._name, (column, reason), index, chunk_key)
        where = f"{count} rows from item {chunk_key.ordinal + 1} on"
        return TableError(self._name, column, f"{reason} (one of the {where})")

    # Rows

    def _in_order(
        self, rows: Sequence[Row], chunk_key: ChunkKey
    ) -> Sequence[Sequence[Any]]:
        """Give the values of all rows in the order of the columns."""
        kinds = set(map(type, rows))
        # One look at all rows for what nearly always is so.
        if kinds <= {list, tuple} and set(map(len, rows)) == {len(self._names)}:
            return cast("Sequence[Sequence[Any]]", rows)
        pick = itemgetter(*self._names)
        if kinds == {dict} and len(self._names) > 1:
            try:
                return list(map(pick, cast("Sequence[dict[str, Any]]", rows)))
            except KeyError:
                pass
        for index, row in enumerate(rows):
            fault = shape_fault(self._names, rows[0], row)
            if fault is not None:
                raise refusal(self._name, fault, index, chunk_key)
        return [
            [row[name] for name in self._names] if isinstance(row, Mapping) else row
            for row in rows
        ]

    def _check_texts(
        self, values: Sequence[Sequence[Any]], chunk_key: ChunkKey
    ) -> None:
        """Keep bytes out of text columns, where the server would take their digits."""
        for at in self._texts:
            for index, row in enumerate(values):
                if isinstance(row[at], _BINARY):
                    reason = f"the value does not fit the type text; {MEND}"
                    fault = self._names[at], reason
                    raise refusal(self._name, fault, index, chunk_key)

    def _refused_kinds(self) -> tuple[type, ...]:
        """Name the types that psycopg would write as a text that nobody means."""
        types = set(self._types.values())
        if not types <= SCALARS:
            return ()
        return (list, tuple) if "bytea" in types else (list, tuple, *_BINARY)

    def _text_columns(self) -> tuple[int, ...]:
        texts = {"text", "character varying"}
        return tuple(
            at for at, name in enumerate(self._names) if self._types[name] in texts
        )

    # The table

    def _check_length(self, columns: Mapping[str, type]) -> None:
        reason = f"the name is longer than PostgreSQL's {NAME_BYTES_MAX} bytes"
        if len(self._name.encode()) > NAME_BYTES_MAX:
            raise TableMissing(self._name, None, reason)
        for column in columns:
            if len(column.encode()) > NAME_BYTES_MAX:
                raise TableMismatch(self._name, column, reason)

    def _is_there(self, cursor: Cursor) -> bool:
        cursor.execute(_TABLE, (identifier(self._name),))
        found = cursor.fetchone()
        if found is None:
            return False
        schema, kind = found
        self._check_schema(schema)
        if kind not in TABLE_KINDS:
            raise TableMismatch(self._name, None, "it is not a table; write to one")
        return True

    def _check_schema(self, schema: str | None) -> None:
        if schema in RESERVED:
            whose = "Triolet" if schema == OURS else "PostgreSQL"
            reason = f"in schema {schema} it would be {whose}'s own; choose another"
            raise TableMismatch(self._name, None, reason)

    def _create(self, cursor: Cursor, columns: dict[str, type]) -> None:
        cursor.execute("SELECT current_schema()")
        self._check_schema(cursor.fetchone()[0])
        name = identifier(self._name)
        body = ", ".join(
            f"{identifier(column)} {SQL_TYPES[kind]}"
            for column, kind in columns.items()
        )
        # Otherwise two processes that make it at the same time would collide.
        cursor.execute(_LOCK, (self._name,))
        try:
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {name} ({body})")
        except (psycopg.ProgrammingError, psycopg.NotSupportedError) as exc:
            why = exc.diag.message_primary or exc.sqlstate
            reason = f"it cannot be created ({why})"
            raise TableMissing(self._name, None, reason) from exc

    def _check_columns(self, columns: dict[str, type], actual: dict[str, str]) -> None:
        for name, kind in columns.items():
            found = actual.get(name)
            if found is None:
                reason = f"declared, but the table only has {quoted(actual)}"
                raise TableMismatch(self._name, name, reason)
            wanted = SQL_TYPES[kind]
            if SYNONYMS.get(found, found) != wanted:
                reason = (
                    f"declared as {kind.__name__} ({wanted}), but the table has "
                    f"{found}; alter one of the two"
                )
                raise TableMismatch(self._name, name, reason)


def _plain_text(rows: Sequence[Sequence[Any]], width: int) -> bytes | None:
    """Write rows of plain text in COPY's format; None when any would need escaping."""
    try:
        text = "\n".join(["\t".join(row) for row in rows]) + "\n"
        data = text.encode()
    except (TypeError, UnicodeEncodeError):
        return None
    whole = text.count("\n") == len(rows) and text.count("\t") == len(rows) * (
        width - 1
    )
    odd = "\\" in text or "\r" in text or "\0" in text
    return data if whole and not odd else None
