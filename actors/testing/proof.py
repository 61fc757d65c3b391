"""The proof: a scenario is run with a schedule, and must come to the undisturbed end.

Every sweep is a row of schedules that are given to one proof.
"""

from collections.abc import Iterator

from attrs import define, field, frozen

from ...storage.model.status import BatchStatus
from ..job.options import check_type
from .equivalence import EquivalenceError, differences
from .faults import Fault
from .interruptions import Interruption
from .scenario import Disturbance, Interrupted, Run, Scenario
from .schedules import Schedule, ScheduleError, in_words, line_of
from .shrinking import shrunk


@frozen
class Failure:
    """What came of a run that did not come to the undisturbed end."""

    lines: tuple[str, ...]
    commits: tuple[str, ...]
    cause: Exception | None = None


@define(eq=False)
class Proof:
    """An undisturbed run, and what was tried against it.

    Args:
        scenario: What is run.

    Raises:
        InvalidValue: It is no ``Scenario``.
        EquivalenceError: The undisturbed run leaves something behind.
    """

    scenario: Scenario
    undisturbed: Run = field(init=False)
    _tried: dict[Schedule, Failure | None] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        check_type(self.scenario, Scenario, "what is swept")
        self.undisturbed = self.scenario.run()
        left = self.undisturbed.ending.unresolved
        if left:
            lines = tuple(f"left behind: {line}" for line in left)
            raise self._error((), Failure(lines, self.undisturbed.commits))

    def demand(self, schedule: Schedule, found_by: str = "") -> None:
        """Run the scenario with a schedule.

        Args:
            schedule: What is done to the run.
            found_by: How the schedule came about, when a shrunk one does not tell.

        Raises:
            EquivalenceError: With the smallest schedule that fails, too.
        """
        if self._failure(schedule) is None:
            return
        small = shrunk(schedule, lambda one: self._failure(one) is not None)
        failure = self._tried[small]
        if failure is not None:
            origin = self._origin(schedule, small, found_by)
            raise self._error(small, failure, origin) from failure.cause

    def _origin(self, schedule: Schedule, small: Schedule, found_by: str) -> str:
        words = [found_by] if found_by else []
        if small != schedule:
            words.append(f"shrunk from {line_of(schedule)}")
        return f" ({', '.join(words)})" if words else ""

    def demand_exactly(self, schedule: Schedule) -> None:
        """Run the scenario with a schedule, as it is.

        Raises:
            EquivalenceError: It comes to another end.
            ScheduleError: A disturbance in it never takes place.
        """
        failure = self._failure(schedule)
        if failure is not None:
            raise self._error(schedule, failure) from failure.cause
        run = self.scenario.run(*schedule)
        never = tuple(one for one in schedule if one not in run.reached)
        if never:
            raise ScheduleError(
                f"{line_of(never)} never takes place: the run has {len(run.steps)} "
                f"task steps and {len(run.commits)} commits"
            )

    def _failure(self, schedule: Schedule) -> Failure | None:
        if schedule not in self._tried:
            self._tried[schedule] = self._try(schedule)
        return self._tried[schedule]

    def _try(self, schedule: Schedule) -> Failure | None:
        try:
            run = self.scenario.run(*schedule)
        except Exception as exc:
            what = f"{type(exc).__name__}: {exc}"
            line = f"the run could not be brought to its end: {what}"
            return Failure((line,), (), exc)
        lines = tuple(wrong(self.undisturbed, run))
        return Failure(lines, run.commits) if lines else None

    def _error(
        self, schedule: Schedule, failure: Failure, origin: str = ""
    ) -> EquivalenceError:
        return EquivalenceError(
            job=self.scenario.name,
            store=self.scenario.store,
            seed=self.scenario.seed,
            disturbance=in_words(schedule) + origin,
            schedule=line_of(schedule),
            difference=failure.lines,
            commits=failure.commits,
        )


def wrong(undisturbed: Run, run: Run) -> Iterator[str]:
    """Say in what a disturbed run is not as it must be; nothing when it is."""
    first = run.reached[0] if run.reached else None
    yield from _unlike(undisturbed, run, first)
    for interrupted in run.interrupted:
        yield from _left_by(interrupted, undisturbed, run)
    deadly = sum(isinstance(one, Fault) and one.variant.deadly for one in run.reached)
    if run.crashes != deadly:
        yield f"{run.crashes} launches died, {deadly} were to"
    calm = not deadly and not run.interrupted
    if calm and len(run.reports) != len(undisturbed.reports):
        yield (
            f"{len(run.reports)} launches were needed, undisturbed "
            f"{len(undisturbed.reports)}"
        )
    yield from differences(undisturbed.ending, run.ending)


def _unlike(undisturbed: Run, run: Run, first: Disturbance | None) -> Iterator[str]:
    """Find out whether the run was another one even before it was disturbed."""
    end = None if first is None else first.number
    begin = undisturbed.commits[:end]
    another = (
        "the run was another one before it was disturbed, so user code is not "
        "deterministic"
    )
    if not isinstance(first, Interruption) and run.commits[:end] != begin:
        yield f"{another}; it should begin {list(begin)}"
    elif not isinstance(first, Fault) and run.steps[:end] != undisturbed.steps[:end]:
        yield f"{another}: it consists of other task steps"


def _left_by(interrupted: Interrupted, undisturbed: Run, run: Run) -> Iterator[str]:
    """Check what an interrupted launch said, and what it left in the store."""
    ending, report = interrupted.ending, interrupted.report
    if not run.crashes:
        # What a dead launch left is taken over by a later one, perhaps not by this one.
        for line in ending.unresolved:
            yield f"the interrupted launch left behind: {line}"
    usual = {report.status for report in undisturbed.reports}
    if report is not None and report.status is not ending.status:
        yield f"the interrupted launch reported {report.status}, left {ending.status}"
    if ending.unresolved or ending.status in (None, BatchStatus.STOPPED, *usual):
        return
    yield f"the interrupted launch left the job {ending.status}"
