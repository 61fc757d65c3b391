"""Finding out why PostgreSQL did not take a row.

Of what the server says only names and numbers are read, never values; its words may be
in any language.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import psycopg
from psycopg.adapt import Dumper, PyFormat, Transformer

from .table_rows import CONSTRAINT_CHARS_MAX, MEND, Fault

DATA, INTEGRITY, RAISED = "22", "23", "P0"
"""Classes of SQLSTATE that are the row's fault; the last is what triggers raise."""


class Unstorable(Dumper):
    """Takes the place of a dumper whose text no scalar column should get."""

    def dump(self, obj: object) -> NoReturn:
        """Refuse."""
        raise TypeError(type(obj).__name__)


def value_fault(
    cursor: "psycopg.Cursor[Any]", names: Sequence[str], values: Sequence[Any]
) -> Fault | None:
    """Say which of the values psycopg cannot write; None when all are well."""
    writer = Transformer(cursor)
    for name, value in zip(names, values, strict=True):
        if value is None:
            continue
        try:
            writer.get_dumper(value, PyFormat.TEXT).dump(value)
        except UnicodeEncodeError:
            return name, "the text holds a lone surrogate"
        except Exception:
            if isinstance(value, str):
                return name, "the text holds U+0000, which PostgreSQL cannot store"
            kind = type(value).__name__
            return name, f"a value of type {kind} cannot be stored; {MEND}"
    return None


def server_fault(
    table: str, types: Mapping[str, str], exc: psycopg.Error
) -> tuple[int | None, Fault] | None:
    """Say what is wrong with a row that the server refused.

    Args:
        table: The table's name.
        types: From the columns that are written to their SQL types.
        exc: What was raised for them.

    Returns:
        The row's index, from 0, if the server tells it, and the fault. None when no
        row is at fault.
    """
    state = exc.sqlstate or ""
    if state[:2] not in (DATA, INTEGRITY, RAISED):
        return None
    index, column = _place(table, types, exc.diag.context or "")
    if state.startswith(DATA):
        return index, (column, _data_reason(state, types.get(column or "")))
    own = exc.diag.table_name == table
    column = exc.diag.column_name if own else None
    return index, (column, _constraint_reason(state, exc.diag.constraint_name))


def _data_reason(state: str, kind: str | None) -> str:
    named = "its column's type" if kind is None else f"the type {kind}"
    match state:
        case "22003":
            return f"the number is out of range for {named}"
        case "22001":
            return f"the text is too long for {named}"
        case _:
            return f"the value does not fit {named}; {MEND}"


def _constraint_reason(state: str, constraint: str | None) -> str:
    named = repr((constraint or "")[:CONSTRAINT_CHARS_MAX])
    match state:
        case "23502":
            return "NULL is not allowed here"
        case "23505":
            return f"a row with the same key is there already (constraint {named})"
        case "23503":
            return f"a foreign key refers to a row that does not exist ({named})"
        case "23514":
            return f"the check {named} refuses the row"
        case _:
            return "a constraint or trigger of the table refuses the row"


def _place(
    table: str, types: Mapping[str, str], context: str
) -> tuple[int | None, str | None]:
    """Read row and column out of ``COPY trades, line 2, column id: "..."``."""
    found = re.search(rf"COPY {re.escape(table)}, \w+ (\d+)", context)
    if found is None:
        return None, None
    names = "|".join(re.escape(name) for name in sorted(types, key=len, reverse=True))
    column = re.match(rf", \w+ ({names})(?=:|$)", context[found.end() :])
    return int(found[1]) - 1, column and column[1]
