"""Questions: commands that change nothing."""

from attrs import frozen

from ..model.bounds import check_whole
from ..model.errors import Rejection, error
from ..model.execution import (
    COUNT_MAX,
    Decision,
    JobExecution,
    JobInstance,
    StepExecution,
)
from ..model.partition import PartitionExecution
from ..model.status import BatchStatus
from .command import Question
from .ownership import OwnerFacts

PAGE_MAX = (1 << 32) - 1


@frozen
class ListExecutions(Question["ExecutionPage"]):
    """List executions, newest first.

    Raises:
        InvalidValue: *limit* or *before* is out of its bounds.
    """

    job: str | None = None
    status: BatchStatus | None = None
    limit: int = 50
    before: int | None = None
    """Only executions with a lower id: the last one of the page before."""

    def __attrs_post_init__(self) -> None:
        check_whole("the limit of a list", self.limit, 0, PAGE_MAX)
        if self.before is not None:
            check_whole("the execution before which to list", self.before, 0, COUNT_MAX)


@frozen
class ExecutionLine:
    """One execution with its instance."""

    execution: JobExecution
    instance: JobInstance


@frozen
class ExecutionPage:
    """A page of executions and whether there are more."""

    lines: tuple[ExecutionLine, ...]
    more: bool


@frozen
class LatestExecution(Question[ExecutionLine | None]):
    """Give the latest execution of one instance; None when there is no such instance."""

    job: str
    instance_key: bytes


@frozen
class ShowExecution(Question["ExecutionDetail"]):
    """Give everything that is known of one execution."""

    execution_id: int


@frozen(kw_only=True)
class ExecutionDetail:
    """One execution with its steps and decisions, in order."""

    execution: JobExecution
    instance: JobInstance
    owner: OwnerFacts
    steps: tuple[StepExecution, ...]
    decisions: tuple[Decision, ...]
    reused: tuple[StepExecution, ...]
    """Steps of earlier attempts that this execution took over as they were."""
    partitions: tuple[PartitionExecution, ...] = ()
    """Of its partitioned steps, by manager and ordinal."""


@error
class ExecutionNotFound(Rejection, LookupError):
    """No such execution is in the store."""

    code = "execution_not_found"
    execution_id: int

    def __str__(self) -> str:
        return f"there is no execution {self.execution_id} in this store"
