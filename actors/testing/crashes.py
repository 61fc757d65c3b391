"""Crashing a scenario at every one of its commits, and asking for the same end.

Commits are the only instants that matter: between two of them nothing is durable, so a
process that dies there dies, for the store, right after the first.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import frozen

from .equivalence import EquivalenceError, differences
from .faults import Fault, Variant
from .scenario import Run, Scenario


@frozen
class Sweep:
    """What was tried: all of it came to the undisturbed end."""

    commits: tuple[str, ...]
    """Of the undisturbed run, in words."""
    points: int
    """How many disturbed runs there were."""


def crash_at_every_commit(scenario: Scenario, *, only: Fault | None = None) -> Sweep:
    """Prove that no crash and no lost answer changes what a job comes to.

    For every commit of the undisturbed run there are four more: the process dies right
    before it, or right after it, and the job is launched again; or the answer to the
    commit is lost, which must not disturb the run at all. Each must end like the
    undisturbed run, as far as users can rely on it: status, exit code, the latest row of
    every step, the way through the plan, and enlisted rows, each exactly once.

    The property has premises: user code is deterministic, no start limit is reached, and
    no step has ``allow_start_if_complete``. What user code does to the world otherwise
    happens at least once; only in a scenario its ``finally`` still runs after a crash.

    Args:
        scenario: What is run.
        only: Try this fault alone, to replay a failure.

    Raises:
        EquivalenceError: The first run that came to another end.
    """
    undisturbed = scenario.run()
    _check(scenario, undisturbed)
    count = len(undisturbed.commits)
    points = 0
    with _quietly():
        for fault in _faults(count) if only is None else (only,):
            _try(scenario, undisturbed, fault)
            points += 1
    return Sweep(undisturbed.commits, points)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep what dying processes log off standard error, unless logging is set up."""
    ours = logging.getLogger("triolet")
    heard = logging.NullHandler()
    ours.addHandler(heard)
    try:
        yield
    finally:
        ours.removeHandler(heard)


def _faults(commits: int) -> Iterator[Fault]:
    for commit in range(1, commits + 1):
        for variant in Variant:
            yield Fault(commit, variant)


def _check(scenario: Scenario, undisturbed: Run) -> None:
    left = undisturbed.ending.unresolved
    if left:
        lines = tuple(f"left behind: {line}" for line in left)
        raise _error(scenario, "nothing was disturbed", lines, undisturbed.commits)


def _try(scenario: Scenario, undisturbed: Run, fault: Fault) -> None:
    disturbance = (
        f"{fault} of {len(undisturbed.commits)} (replay it with only=Fault("
        f"{fault.commit}, Variant.{fault.variant.name}))"
    )
    try:
        run = scenario.run(fault)
    except Exception as exc:
        line = f"the run could not be brought to its end: {type(exc).__name__}: {exc}"
        raise _error(scenario, disturbance, (line,), ()) from exc
    lines = (
        *_unlike(undisturbed.commits, run.commits, fault),
        *_undue(undisturbed, run, fault),
        *differences(undisturbed.ending, run.ending),
    )
    if lines:
        raise _error(scenario, disturbance, lines, run.commits)


def _unlike(
    undisturbed: tuple[str, ...], disturbed: tuple[str, ...], fault: Fault
) -> Iterator[str]:
    """Find out whether the run was another one even before it was disturbed."""
    expected, found = undisturbed[: fault.commit], disturbed[: fault.commit]
    if expected != found:
        yield (
            "the run was another one before it was disturbed, so user code is not "
            f"deterministic; it should begin {list(expected)}"
        )


def _undue(undisturbed: Run, run: Run, fault: Fault) -> Iterator[str]:
    if fault.commit > len(run.commits):
        yield f"there are {len(run.commits)} commits only"
    elif run.crashes != fault.variant.deadly:
        yield f"{run.crashes} launches died"
    if not fault.variant.deadly and len(run.reports) != len(undisturbed.reports):
        yield (
            f"{len(run.reports)} launches were needed, undisturbed "
            f"{len(undisturbed.reports)}"
        )


def _error(
    scenario: Scenario,
    disturbance: str,
    difference: tuple[str, ...],
    commits: tuple[str, ...],
) -> EquivalenceError:
    return EquivalenceError(
        job=scenario.name,
        store=scenario.store,
        seed=scenario.seed,
        disturbance=disturbance,
        difference=difference,
        commits=commits,
    )
