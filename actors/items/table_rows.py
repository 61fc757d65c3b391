"""Rows and names of tables, as far as all stores agree about them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ...storage.commands import Cursor
from ...storage.model.errors import with_article
from .errors import TableRowRefused
from .protocols import ChunkKey

Row: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Values in the order of the columns, or by the columns' names."""

Fault: TypeAlias = tuple[str | None, str]
"""The column, if it is known, and the reason."""

MEND = "convert it in the processor"
CONSTRAINT_CHARS_MAX = 100


class Table(Protocol):
    """A table of one kind of store, opened for writing."""

    def write(self, cursor: Cursor, rows: Sequence[Row], chunk_key: ChunkKey) -> None:
        """Write *rows*, of which there is at least one."""


def identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def shape_fault(names: Sequence[str], first: object, row: object) -> Fault | None:
    """Say why *row* is no row for these columns, if it is none.

    Args:
        names: The columns that are written.
        first: The first row of the chunk, which decides about the form of all.
        row: The row in question.
    """
    kind = type(row).__name__
    if isinstance(row, str | bytes | bytearray):
        mend = "for a single column give a list of one value"
        return None, f"the row is of type {kind}, not a sequence of values; {mend}"
    if not isinstance(row, Mapping | Sequence):
        return None, f"the row is of type {kind}; it must be a sequence or a dict"
    if isinstance(row, Mapping) != isinstance(first, Mapping):
        other = with_article(type(first).__name__)
        reason = f"the row is of type {kind}, but the first of its chunk is {other}"
        return None, reason
    if isinstance(row, Mapping):
        missing = [name for name in names if name not in row]
        return (missing[0], "the row has no such key") if missing else None
    if len(row) != len(names):
        return None, f"the row has {len(row)} values for {len(names)} columns"
    return None


def refusal(table: str, fault: Fault, index: int, chunk_key: ChunkKey) -> Exception:
    """Make the error for the row at *index* of its chunk."""
    column, reason = fault
    return TableRowRefused(table, column, reason, index, chunk_key.ordinal + index)
