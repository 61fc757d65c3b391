"""The launch report: what one launch did, for callers and for the command line."""

from attrs import frozen

from ...storage.model.errors import TrioletError, error
from ...storage.model.execution import Counts, Failure
from ...storage.model.parameters import ParameterSet
from ...storage.model.status import BatchStatus
from ..plan.actions import StepReport


@error
class JobFailed(TrioletError):
    """The job did not complete; raised by `LaunchReport.raise_for_status` only."""

    code = "job_not_completed"
    job: str
    execution_id: int
    status: BatchStatus
    message: str | None = None

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        why = f": {self.message}" if self.message else ""
        return f"job {self.job!r} (execution {self.execution_id}) {self.status}{why}"


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

    def step(self, node: str) -> StepReport:
        """Give the report of one node.

        Raises:
            KeyError: This attempt did not come by that node.
        """
        for report in self.steps:
            if report.node == node:
                return report
        raise KeyError(node)

    def raise_for_status(self) -> "LaunchReport":
        """Give the report itself when the job COMPLETED.

        Raises:
            JobFailed: It did not; the failure's text is part of the sentence.
        """
        if self.status is BatchStatus.COMPLETED:
            return self
        message = None if self.failure is None else self.failure.message
        raise JobFailed(self.job, self.execution_id, self.status, message)
