"""The launch report: what one launch did, for callers and for the command line."""

from attrs import frozen

from ...storage.model.errors import TrioletError, error, listed
from ...storage.model.execution import Counts, Failure
from ...storage.model.parameters import ParameterSet
from ...storage.model.status import BatchStatus
from ..plan.actions import Overridden, PartitionReport, StepReport
from .wording import failure_text


@error
class JobFailed(TrioletError):
    """The job did not complete; raised by `LaunchReport.raise_for_status` only."""

    code = "job_not_completed"
    job: str
    execution_id: int
    status: BatchStatus
    message: str | None = None
    """Which step failed, the type and text of what it raised, and in which line."""

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        why = f": {self.message}" if self.message else ""
        return f"job {self.job!r} (execution {self.execution_id}) {self.status}{why}"


@error
class StepNotReported(TrioletError, KeyError):
    """The attempt did not come by that node, or the job has none of that name."""

    code = "step_not_reported"
    node: str
    known: tuple[str, ...]
    """The nodes that are in the report."""

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        known = listed(map(repr, self.known)) or "no step at all"
        return f"the report has no step {self.node!r}: this attempt came by {known}"


@frozen(kw_only=True)
class LaunchReport:
    """What a launch came to. A failed job is a report, not an exception."""

    job: str
    instance_id: int
    execution_id: int
    attempt: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    """The sum over the latest rows of all nodes of the instance."""
    failure: Failure | None
    steps: tuple[StepReport, ...]
    """Steps in the order in which this attempt came by, reused ones included."""
    partitions: tuple[PartitionReport, ...]
    """Of the partitioned steps that ran in this attempt, in the order of keys."""
    parameters: ParameterSet
    run: int | None
    """The run number, when the job was launched anew."""
    restart_of: int | None
    """The execution that this one continues."""
    took_over: int | None
    """The execution of a dead owner that was closed first."""
    reused: tuple[str, ...] = ()
    """Of a restart: the parameters that are those of the restarted execution. The
    others were given, or are defaults."""
    overridden: Overridden | None = None
    """What came of the steps, when a job listener made something else of it."""
    over: bool = False
    """Whether it ended FAILED or STOPPED for good: no later launch can continue it,
    because it, or something in it that did not complete, must not be run again. What
    is left is to launch the job anew."""

    def step(self, node: str, visit: int = 1) -> StepReport:
        """Give the report of one node, in a loop that of one visit.

        Raises:
            StepNotReported: This attempt did not come by that node.
        """
        for report in self.steps:
            if (report.node, report.visit) == (node, visit):
                return report
        known = dict.fromkeys(report.node for report in self.steps)
        raise StepNotReported(node, tuple(known))

    def raise_for_status(self) -> "LaunchReport":
        """Give the report itself when the job COMPLETED.

        Raises:
            JobFailed: It did not; the sentence says which step failed and why.
        """
        if self.status is BatchStatus.COMPLETED:
            return self
        message = None if self.failure is None else failure_text(self.failure)
        raise JobFailed(self.job, self.execution_id, self.status, message)
