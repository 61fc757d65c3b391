"""What the commands need of a SQL store: one open transaction to work in.

The SQL is written once, in PostgreSQL's words; a store of another dialect translates
the few that it has not. Statements are generators like all of a backend's work, so that
a store behind a socket can be awaited.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ..backend import Waits
from ..commands.command import EnlistedWrite

Row: TypeAlias = tuple[Any, ...]
Value: TypeAlias = str | int | bytes | None
Query: TypeAlias = tuple[str, Sequence[Value]]


class UniqueViolation(Exception):
    """A statement would have made a second row with the same key."""


class Session(Protocol):
    """One open transaction. Values are bound to ``$1``, ``$2``, ... in order."""

    def fetch(self, sql: str, values: Sequence[Value] = ()) -> Waits[list[Row]]:
        """Give the rows of a query."""

    def fetch_each(self, queries: Sequence[Query]) -> Waits[list[list[Row]]]:
        """Give the rows of several queries, asked at once."""

    def change(self, sql: str, values: Sequence[Value]) -> Waits[int]:
        """Carry out a statement; give the number of rows that it changed.

        Raises:
            UniqueViolation: A key is taken.
        """

    def insert(self, sql: str, values: Sequence[Value]) -> Waits[int | None]:
        """Insert at most one row into a table with an id; give the id.

        Raises:
            UniqueViolation: A key is taken.
        """

    def insert_all(
        self, table: str, columns: Mapping[str, str], rows: Sequence[Sequence[Value]]
    ) -> Waits[None]:
        """Insert many rows into a table.

        Args:
            table: Its name.
            columns: Those that are given, with their SQL types.
            rows: Their values, in the order of *columns*.
        """

    def clock(self) -> Waits[int]:
        """Read the store's clock: microseconds since 1970."""

    def notify(self, channel: str) -> Waits[None]:
        """Tell whoever listens to the store that there is something, once committed."""

    def savepoint(self) -> Waits[None]:
        """Remember this point of the transaction."""

    def undo(self) -> Waits[None]:
        """Go back to the savepoint and forget it."""

    def write(self, write: EnlistedWrite) -> Waits[None]:
        """Call user code with a cursor.

        Raises:
            WriteFailed: What the user code raised, or that it ended the transaction.
        """
