"""Crashing a scenario at every one of its commits, and asking for the same end.

Commits are the only instants that matter: between two of them nothing is durable, so a
process that dies there dies, for the store, right after the first.
"""

from collections.abc import Sequence

from .faults import Fault, Variant
from .scenario import Run, Scenario
from .schedules import Schedule
from .sweep import Sweep, swept


def crash_at_every_commit(
    scenario: Scenario, *, points: int | None = None, only: str | None = None
) -> Sweep:
    """Prove that no crash and no lost answer changes what a job comes to.

    For every commit of the undisturbed run there are four more: the process dies right
    before it, or right after it, and the job is launched again; or the answer to the
    commit is lost, which must not disturb the run at all. Each must end like the
    undisturbed run, as far as users can rely on it: status, exit code, the latest row of
    every step, the way through the plan, and enlisted rows and business effects, each
    exactly once.

    The property has premises: user code is deterministic, no start limit is reached, and
    no step has ``allow_start_if_complete``. What user code does to the world otherwise
    happens at least once; only in a scenario its ``finally`` still runs after a crash.

    Args:
        scenario: What is run.
        points: Try at most so many of the disturbed runs, drawn by the scenario's seed.
        only: Try this schedule alone, as `replay` does.

    Raises:
        EquivalenceError: The first run that came to another end, made as small as it
            can be.
        ScheduleError: *only* cannot be read, or something in it never takes place.
    """
    return swept("crash_at_every_commit", scenario, _crashes, points, only)


def _crashes(run: Run) -> Sequence[Schedule]:
    numbers = range(1, len(run.commits) + 1)
    return [(Fault(number, variant),) for number in numbers for variant in Variant]
