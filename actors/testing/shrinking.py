"""Shrinking a schedule that fails: fewer disturbances, and each as early as possible."""

from collections.abc import Callable, Iterator
from itertools import combinations

from attrs import define

from .schedules import Schedule

Fails = Callable[[Schedule], bool]

RUNS_MAX = 1000
"""After so many runs the smallest schedule so far has to do."""


def shrunk(schedule: Schedule, fails: Fails, runs: int = RUNS_MAX) -> Schedule:
    """Find a schedule from which nothing can be taken any more.

    No disturbance can be left out, and none can be moved to a smaller number, without
    the failure going away, as far as *runs* allow to find out.

    Args:
        schedule: One that fails.
        fails: Runs the scenario.
        runs: How often at most.
    """
    limited = _Limited(fails, runs)
    smaller: Schedule | None = schedule
    while smaller is not None:
        schedule = smaller
        smaller = next(filter(limited, _smaller(schedule)), None)
    return schedule


@define(eq=False)
class _Limited:
    fails: Fails
    left: int

    def __call__(self, schedule: Schedule) -> bool:
        self.left -= 1
        return self.left >= 0 and self.fails(schedule)


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    """Give all that are smaller, cheap ways to get far first."""
    for size in range(1, len(schedule)):
        yield from combinations(schedule, size)
    for size in range(1, len(schedule) + 1):
        # Without a disturbance the run is shorter, and what is left has to come sooner.
        for kept in combinations(schedule, size):
            yield from _sooner(kept)


def _sooner(schedule: Schedule) -> Iterator[Schedule]:
    for place, one in enumerate(schedule):
        for number in _earlier(one.number):
            yield (*schedule[:place], one.moved(number), *schedule[place + 1 :])


def _earlier(number: int) -> Iterator[int]:
    """Give all smaller numbers; first the great leaps, which soon find a small one."""
    leaps = []
    leap = number // 2
    while leap:
        leaps.append(number - leap)
        leap //= 2
    yield from dict.fromkeys([*leaps, *range(1, number)])
