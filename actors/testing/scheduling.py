"""The order in which trio runs tasks that are ready at the same time, by a seed.

Trio draws that order from a random source of its own, which it keeps private; this is
the one place that reaches for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from trio._core import _run as scheduler

SWITCH = "_ALLOW_DETERMINISTIC_SCHEDULING"


@contextmanager
def seeded_scheduling(seed: int) -> Iterator[None]:
    """Make trio runs inside repeatable; afterwards trio draws as before."""
    before = getattr(scheduler, SWITCH), scheduler._r.getstate()
    setattr(scheduler, SWITCH, True)
    scheduler._r.seed(seed)
    try:
        yield
    finally:
        setattr(scheduler, SWITCH, before[0])
        scheduler._r.setstate(before[1])
