"""A measured figure beside its limit, and when it meets its target.

``ratio`` is value / limit. A "higher" row meets its target with a ratio of at least
*target*, a "lower" row with a ratio of at most *target*. The limit is either measured
in the same run, in turns with the value, or an absolute bound: then the row is a
"lower" one, its limit is the bound and its target 1.0.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from attrs import field, frozen, validators

Better: TypeAlias = Literal["higher", "lower"]


class WrongResult(Exception):
    """A workload did not do its work, so that its time means nothing."""


def check(actual: object, expected: object, what: str) -> None:
    """Raise `WrongResult` unless both are equal."""
    if actual != expected:
        raise WrongResult(f"{what}: expected {expected!r}, found {actual!r}")


@frozen(kw_only=True)
class Row:
    """One line of the table and one object of ``results.json``."""

    name: str
    """The group and what is measured, as in ``sqlite.csv``."""
    value: float
    unit: str
    limit: float = field(validator=validators.gt(0))
    better: Better
    target: float
    spread: tuple[float, float]
    """Lowest and highest ratio of a single round."""

    @property
    def ratio(self) -> float:
        """The value in terms of the limit."""
        return self.value / self.limit

    @property
    def met(self) -> bool:
        """Whether the ratio is as good as the target, or better."""
        if self.better == "higher":
            return self.ratio >= self.target
        return self.ratio <= self.target

    def as_json(self) -> dict[str, object]:
        """Give what ``results.json`` keeps."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "limit": self.limit,
            "ratio": self.ratio,
            "better": self.better,
            "target": self.target,
            "met": self.met,
        }


HEADINGS = ("name", "value", "unit", "limit", "ratio", "spread", "target", "met")


def table(rows: Sequence[Row]) -> str:
    """Align the rows below their headings: text to the left, numbers to the right."""
    lines = [HEADINGS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.spread
    comparison = ">=" if row.better == "higher" else "<="
    return (
        row.name,
        _number(row.value),
        row.unit,
        _number(row.limit),
        f"{row.ratio:.2f}",
        f"{low:.2f} to {high:.2f}",
        f"{comparison} {row.target:g}",
        "yes" if row.met else "no",
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


_LEFT = {HEADINGS.index(name) for name in ("name", "unit", "met")}


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
