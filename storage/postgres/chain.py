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


@frozen
class Compact(Generic[T]):
    """A command as one statement, and how to read the reply that the server notes."""

    statement: Statement
    read: Callable[[Sequence[int | None]], T]


def fields_of(reply: str) -> list[int | None]:
    """Split a noted reply into its numbers."""
    return [int(part) if part else None for part in reply.split(",")]


class Chain:
    """Builds a statement: parts in order, and the values they bind."""

    def __init__(self) -> None:
        self.parts = ["clock AS MATERIALIZED (SELECT triolet.now() AS at)"]
        self.last = "clock"

    def add(self, name: str, text: str) -> None:
        """Add a part."""
        self.parts.append(f"{name} AS ({text})")
        self.last = name

    def noting(self, *columns: str, source: str = "") -> str:
        """End the chain: note these columns of its last part."""
        reply = ", ',', ".join(columns)
        rows = source or self.last
        body = ",\n".join(self.parts)
        return f"WITH {body}\nSELECT triolet.note((SELECT concat({reply}) FROM {rows}))"


AT = "(SELECT at FROM clock)"


def fence() -> str:
    """Write the part that finds the execution, if it is still its owner's; locks it."""
    return (
        f"SELECT id, instance_id FROM triolet.execution WHERE id = $1 "
        f"AND owner_id = $2 AND {ACTIVE} FOR KEY SHARE"
    )


class Numbers:
    """Hands out the parameters of a statement in order."""

    def __init__(self, used: int) -> None:
        self._used = used

    def take(self, count: int) -> list[str]:
        """Give the next ones."""
        names = [f"${self._used + index}" for index in range(1, count + 1)]
        self._used += count
        return names


def number_of(field: int | None) -> int:
    """Take a number that the statement always gives."""
    assert field is not None
    return field


COUNTS = ("read", "process", "write", "filter", "commit", "rollback")


def counted(numbers: Sequence[str]) -> str:
    """Write the assignments of the six counts."""
    pairs = zip(COUNTS, numbers, strict=True)
    return ", ".join(f"{name}_count = {number}" for name, number in pairs)
