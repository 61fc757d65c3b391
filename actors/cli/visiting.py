"""Visits for people: the last ones of a loop, and how many came before them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Visit: TypeAlias = tuple[str, int]

SHOWN_MAX = 3
"""How many visits of one node are shown."""


def visit_text(node: str, visit: int) -> str:
    """Name a visit; the first one by its node alone."""
    return node if visit == 1 else f"{node} (visit {visit})"


def last_visits(every: Iterable[T], key: Callable[[T], Visit]) -> list[T]:
    """Give the last visits of every node, in their order.

    Args:
        every: In the order of visits.
        key: Gives node and visit.
    """
    kept: list[T] = []
    seen: Counter[str] = Counter()
    for one in reversed(list(every)):
        node, _ = key(one)
        seen[node] += 1
        if seen[node] <= SHOWN_MAX:
            kept.append(one)
    return kept[::-1]


def left_out(count: int) -> Iterator[str]:
    """Say how many visits are not shown, if any."""
    if count:
        visits = "visit" if count == 1 else "visits"
        yield f"  ...and {count:,} earlier {visits}, which --json shows"
