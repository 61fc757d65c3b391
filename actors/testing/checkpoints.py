"""Interrupting a scenario at every one of its task steps, and asking for the same end."""

from collections.abc import Sequence

from .interruptions import How, Interruption
from .scenario import Run, Scenario
from .schedules import Schedule
from .sweep import Sweep, swept


def cancel_at_every_checkpoint(
    scenario: Scenario, *, points: int | None = None, only: str | None = None
) -> Sweep:
    """Prove that a cancelled job says STOPPED and comes to its end later.

    For every task step of the undisturbed run there is one more, in which the scope
    around the runtime is cancelled right before it. The store must say then that nobody
    works on the job, no task or thread may be left, and after another launch the run
    must end like the undisturbed one, under the premises of `crash_at_every_commit`.

    Args:
        scenario: What is run.
        points: As for `crash_at_every_commit`.
        only: As for `crash_at_every_commit`.

    Raises:
        EquivalenceError: As from `crash_at_every_commit`.
        ScheduleError: As from `crash_at_every_commit`.
    """
    name = "cancel_at_every_checkpoint"
    return interrupt_at_every_checkpoint(name, scenario, How.CANCEL, points, only)


def stop_at_every_checkpoint(
    scenario: Scenario, *, points: int | None = None, only: str | None = None
) -> Sweep:
    """Prove that a stopped job says STOPPED, or has ended, and comes to its end later.

    As `cancel_at_every_checkpoint`, with ``runtime.stop()`` instead. The report must say
    what the store says, and the runtime must refuse any further launch.

    Args:
        scenario: What is run.
        points: As for `crash_at_every_commit`.
        only: As for `crash_at_every_commit`.

    Raises:
        EquivalenceError: As from `crash_at_every_commit`.
        ScheduleError: As from `crash_at_every_commit`.
    """
    return interrupt_at_every_checkpoint(
        "stop_at_every_checkpoint", scenario, How.STOP, points, only
    )


def shutdown_at_every_checkpoint(
    scenario: Scenario, *, points: int | None = None, only: str | None = None
) -> Sweep:
    """Prove that a service that is shut down leaves a job that comes to its end later.

    As `stop_at_every_checkpoint`, with one deadline for the whole: what has not stopped
    after ten virtual seconds is cancelled, and the runtime is left.

    Args:
        scenario: What is run.
        points: As for `crash_at_every_commit`.
        only: As for `crash_at_every_commit`.

    Raises:
        EquivalenceError: As from `crash_at_every_commit`.
        ScheduleError: As from `crash_at_every_commit`.
    """
    name = "shutdown_at_every_checkpoint"
    return interrupt_at_every_checkpoint(name, scenario, How.SHUTDOWN, points, only)


def interrupt_at_every_checkpoint(
    name: str,
    scenario: Scenario,
    how: How,
    points: int | None = None,
    only: str | None = None,
) -> Sweep:
    """Sweep with one kind of interruption, under the name of the function."""
    return swept(name, scenario, lambda run: _interruptions(run, how), points, only)


def _interruptions(run: Run, how: How) -> Sequence[Schedule]:
    return [(Interruption(number, how),) for number in range(1, len(run.steps) + 1)]
