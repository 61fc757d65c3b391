"""How the parts of a statement name what it binds: of one command, or of many at once."""

from ..sql.fencing import ACTIVE
from .chain import AT, fence, replied

TOGETHER_MAX = 32
"""With more, joining the parts costs more than a statement saves."""


class Bound:
    """The values that a statement of one command binds, and how its parts name them."""

    many = False

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def take(self, *kinds: str) -> list[str]:
        """Bind the next values, of these SQL types; give their names."""
        first = len(self.kinds) + 1
        self.kinds += kinds
        return [self._name(at, kind) for at, kind in enumerate(kinds, first)]

    def _name(self, at: int, kind: str) -> str:
        return f"${at}::{kind}"

    @property
    def key(self) -> str:
        """A column that tells which command a row is of; a part gives it on."""
        return ""

    def together(self, part: str) -> tuple[str, str]:
        """Join what a part gave with its fence: tables, and a condition."""
        return ("fence" if part == "fence" else f"{part}, fence"), "TRUE"

    @property
    def order(self) -> str:
        """The order in which rows are made."""
        return ""

    def fence(self) -> str:
        """Write the part that finds the execution if it is its owner's; locks it."""
        return fence()

    def noted(self, part: str, *, started: bool) -> str:
        """Write the query for the reply: of a part's rows, with the step's id if any."""
        step = "(SELECT id FROM started)" if started else "''"
        return f"SELECT {replied(AT, step)} FROM {part}"


class BoundTogether(Bound):
    """The values of several commands: the fence has a row for each, which holds them."""

    many = True

    def _name(self, at: int, kind: str) -> str:
        return f"fence.p{at}"

    @property
    def key(self) -> str:
        """A column that tells which command a row is of; a part gives it on."""
        return ", fence.n"

    def together(self, part: str) -> tuple[str, str]:
        """Join what a part gave with its fence: tables, and a condition."""
        if part == "fence":
            return "fence", "TRUE"
        return f"{part}, fence", f"{part}.n = fence.n"

    @property
    def order(self) -> str:
        """The order in which rows are made."""
        return " ORDER BY fence.n"

    def fence(self) -> str:
        """Write the part that finds the executions; the last, since it binds all.

        The range expects the planner to expect one row, and so to look all others up by
        their keys, however small the tables were when it planned.
        """
        arrays = ", ".join(f"${at}::{kind}[]" for at, kind in enumerate(self.kinds, 1))
        names = ", ".join(f"p{at}" for at in range(1, len(self.kinds) + 1))
        return (
            "SELECT execution.id, instance_id, bound.* "
            f"FROM unnest({arrays}) WITH ORDINALITY AS bound({names}, n) "
            "JOIN triolet.execution ON execution.id = bound.p1 AND owner_id = bound.p2 "
            f"AND {ACTIVE} WHERE bound.n BETWEEN 1 AND {TOGETHER_MAX} "
            "FOR KEY SHARE OF execution"
        )

    def noted(self, part: str, *, started: bool) -> str:
        """Write the query for the replies; nothing unless there is one for each."""
        reply = replied(AT, "id" if started else "''")
        return (
            f"SELECT string_agg({reply}, ';' ORDER BY n) FROM {part} "
            "HAVING count(*) = cardinality($1)"
        )
