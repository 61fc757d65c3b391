"""Finding out why SQLite did not take a row.

Called with the one row that failed. Only SQLite's messages about constraints are read:
they name tables, columns and constraints, never values.
"""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import quoted
from .table_rows import CONSTRAINT_CHARS_MAX, MEND, Fault, shape_fault

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

_MISTYPED = re.compile(r"cannot store \w+ value in (\w+) column (.*)", re.DOTALL)
_CONSTRAINT = re.compile(r"([A-Z ]+) constraint failed(?:: (.*))?", re.DOTALL)
_BINDING = re.compile(r"Error binding parameter (\d+)")


def row_fault(
    table: str, names: Sequence[str], first: object, row: object, exc: Exception
) -> Fault | None:
    """Say what is wrong with *row*.

    Args:
        table: The table's name.
        names: The columns that are written.
        first: The first row of the chunk, which decides about the form of all.
        row: The row that failed.
        exc: What was raised for it.

    Returns:
        None when the row is not at fault.
    """
    shape = shape_fault(names, first, row)
    if shape is not None:
        return shape
    if isinstance(exc, sqlite3.IntegrityError):
        return _constraint_fault(table, str(exc))
    values = [row[name] for name in names] if isinstance(row, Mapping) else list(row)  # type: ignore[call-overload]  # the shape is right
    return _value_fault(names, values, exc)


def _constraint_fault(table: str, message: str) -> Fault:
    if found := _MISTYPED.fullmatch(message):
        column = _own_column(table, found[2])
        return column, f"the value does not fit the type {found[1]}; {MEND}"
    found = _CONSTRAINT.fullmatch(message)
    kind, about = (found[1], found[2] or "") if found else ("", "")
    if kind == "NOT NULL":
        return _own_column(table, about), "NULL is not allowed here"
    if kind == "UNIQUE":
        columns = [_own_column(table, part) or part for part in about.split(", ")]
        reason = f"a row with the same {quoted(columns)} is there already"
        return columns[0] if len(columns) == 1 else None, reason
    if kind == "CHECK":
        return None, f"the check {about[:CONSTRAINT_CHARS_MAX]!r} refuses the row"
    if kind == "FOREIGN KEY":
        return None, "a foreign key refers to a row that does not exist"
    return None, "a constraint or trigger of the table refuses the row"


def _own_column(table: str, full: str) -> str | None:
    prefix, column = full[: len(table) + 1], full[len(table) + 1 :]
    return column if prefix.lower() == f"{table}.".lower() else None


def _value_fault(
    names: Sequence[str], values: Sequence[Any], exc: Exception
) -> Fault | None:
    if found := _BINDING.match(str(exc)):
        at = int(found[1]) - 1
        kind = type(values[at]).__name__
        return names[at], f"a value of type {kind} cannot be stored; {MEND}"
    if isinstance(exc, sqlite3.DataError):
        return None, "a value is too long for SQLite"
    for name, value in zip(names, values, strict=True):
        if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
            return name, "the integer does not fit 64 bits"
        if isinstance(value, str) and isinstance(exc, UnicodeEncodeError):
            try:
                value.encode()
            except UnicodeEncodeError:
                return name, "the text holds a lone surrogate"
    return None
