"""The parts that a statement is chained from.

A statement is a chain of parts (CTEs): each is carried out only for what the one before
it gave, and `triolet.note` makes the reply, or refuses the whole when the last part
gave nothing.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from ..sql.fencing import ACTIVE
from .wire import Statement

T = TypeVar("T")


@frozen(eq=False)
class Likeness:
    """What commands have in common that one statement can carry out together.

    Args:
        sql: The statement; it binds an array where that of one command binds a value.
        kinds: The SQL types of those values.
    """

    sql: str
    kinds: tuple[str, ...]


@frozen
class Compact(Generic[T]):
    """A command as one statement, and how to read the reply that the server notes.

    Args:
        statement: The statement and its values.
        read: Makes the command's reply of the numbers in the noted one.
        likeness: Of the commands that can be carried out together with it, if any can.
        execution: Id of the execution that it moves on, if it is like others.
        partition: Of the partition that is all it touches of the execution.
    """

    statement: Statement
    read: Callable[[Sequence[int | None]], T]
    likeness: Likeness | None = None
    execution: int = 0
    partition: tuple[int, int] | None = None


def fields_of(reply: str) -> list[int | None]:
    """Split a noted reply into its numbers."""
    return [int(part) if part else None for part in reply.split(",")]


class Chain:
    """Builds a statement of parts, in order."""

    def __init__(self) -> None:
        self._parts = {"clock": "MATERIALIZED (SELECT triolet.now() AS at)"}
        self.last = "clock"

    def add(self, name: str, text: str) -> None:
        """Add a part."""
        self._parts[name] = f"({text})"
        self.last = name

    def fill(self, name: str, text: str) -> None:
        """Replace a part that had only held its place."""
        self._parts[name] = f"({text})"

    def noting(self, *columns: str, source: str = "") -> str:
        """End the chain: note these columns of its last part."""
        return self.ending(f"SELECT {replied(*columns)} FROM {source or self.last}")

    def ending(self, query: str) -> str:
        """End the chain: note what this query gives, or refuse when that is nothing."""
        body = ",\n".join(f"{name} AS {text}" for name, text in self._parts.items())
        return f"WITH {body}\nSELECT triolet.note(({query}))"


def replied(*columns: str) -> str:
    """Write the text of a reply."""
    together = ", ',', ".join(columns)
    return f"concat({together})"


AT = "(SELECT at FROM clock)"


def fence() -> str:
    """Write the part that finds the execution, if it is still its owner's; locks it."""
    return (
        f"SELECT id, instance_id FROM triolet.execution WHERE id = $1 "
        f"AND owner_id = $2 AND {ACTIVE} FOR KEY SHARE"
    )


def number_of(field: int | None) -> int:
    """Take a number that the statement always gives."""
    assert field is not None
    return field


COUNTS = ("read", "process", "write", "filter", "commit", "rollback")


def counted(numbers: Sequence[str]) -> str:
    """Write the assignments of the six counts."""
    pairs = zip(COUNTS, numbers, strict=True)
    return ", ".join(f"{name}_count = {number}" for name, number in pairs)
