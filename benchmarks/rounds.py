"""Measuring in rounds, so that whatever else the machine does harms both sides alike.

A round measures the limit and then the value. The round that is reported is the one
with the median ratio: its two figures were taken side by side, which two separate
medians were not.
"""

from collections.abc import Callable, Sequence
from statistics import median_low
from typing import TypeAlias

from attrs import frozen

from .rows import Better, Row

Measure: TypeAlias = Callable[[], float]

ROUNDS = 5


@frozen
class Round:
    """What was measured side by side."""

    limit: float
    value: float

    @property
    def ratio(self) -> float:
        """The value in terms of the limit."""
        return self.value / self.limit


def in_turns(limit: Measure, value: Measure, rounds: int = ROUNDS) -> list[Round]:
    """Measure limit, value, limit, value and so on."""
    return [Round(limit(), value()) for _ in range(rounds)]


def compared(
    name: str, unit: str, better: Better, target: float, rounds: Sequence[Round]
) -> Row:
    """Make the row of a value that is compared with a measured limit."""
    ratios = [one.ratio for one in rounds]
    middle = rounds[ratios.index(median_low(ratios))]
    return Row(
        name=name,
        value=middle.value,
        unit=unit,
        limit=middle.limit,
        better=better,
        target=target,
        spread=(min(ratios), max(ratios)),
    )


def bounded(name: str, unit: str, bound: float, values: Sequence[float]) -> Row:
    """Make the row of a value that must not exceed an absolute bound."""
    rounds = [Round(bound, value) for value in values]
    return compared(name, unit, "lower", 1.0, rounds)
