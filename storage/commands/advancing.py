"""Moving an execution on: results, decisions, starts, chunks, the end.

These commands are fenced: they name the owner that sent them, and are refused once
somebody else has taken the execution over.
"""

from attrs import evolve, field, frozen

from ..model.errors import Rejection, error
from ..model.execution import (
    Counts,
    DecisionRef,
    ExitCode,
    Failure,
    Target,
    TransitionKind,
)
from ..model.partition import PartitionRef
from ..model.status import BatchStatus
from .command import Command, EnlistedWrite
from .starting import NextStep, StartLimitReached, StepStarted


@frozen
class Folded:
    """The transition that is committed with a step's result, in the same row.

    Its input digest is not sent: it follows from the row (`digests.step_input`).
    """

    sequence: int
    target: Target


@frozen(kw_only=True)
class StepEnd:
    """A step's result. It raises the row's version by 2: exit code, then status."""

    step_id: int
    version: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    context: str | None
    failure: Failure | None = None
    decision: Folded | None = None
    partition: PartitionRef | None = None
    """The partition that takes over what came of the row, its worker's."""


@frozen(kw_only=True)
class NewDecision:
    """A transition with a row of its own: of a decider or of a reused step."""

    sequence: int
    source: str
    visit: int = 1
    step_id: int | None
    kind: TransitionKind
    outcome: str
    target: Target
    digest: bytes = field(repr=False)
    reused: DecisionRef | None = None


@frozen(kw_only=True)
class JobEnd:
    """The execution's result. It raises the row's version by 2."""

    status: BatchStatus
    exit_code: str
    counts: Counts
    failure: Failure | None = None

    def after(self, found: BatchStatus) -> "JobEnd":
        """Give the end that is written: what is STOPPING never becomes COMPLETED."""
        if found is BatchStatus.STOPPING and self.status is BatchStatus.COMPLETED:
            return evolve(
                self, status=BatchStatus.STOPPED, exit_code=ExitCode.STOPPED.value
            )
        return self


@frozen(kw_only=True)
class Advance(Command["Advanced"]):
    """Move an execution on: any of its parts may be absent.

    The parts take effect in the order of the fields. A refused start does not refuse
    the result beside it.
    """

    execution_id: int
    owner_id: int
    begin: int | None = None
    """A STARTING step that becomes STARTED."""
    finish: StepEnd | None = None
    decisions: tuple[NewDecision, ...] = ()
    start: NextStep | None = None
    end: JobEnd | None = None
    write: EnlistedWrite | None = None

    @property
    def enlisted(self) -> bool:
        """Whether user code writes within the transaction."""
        return self.write is not None

    @property
    def first_visit(self) -> bool:
        """Whether a decision is one of a node's first visit.

        Then their numbers must not be those of transitions in step rows either. For
        later visits that is not looked up: they come in loops, whose rows are many.
        """
        return any(one.visit == 1 for one in self.decisions)


@frozen
class Advanced:
    """The parts are durable."""

    at: int
    start: StepStarted | StartLimitReached | None = None
    stopped: bool = False
    """The execution was STOPPING, so it ended STOPPED instead of COMPLETED."""


@frozen(kw_only=True)
class CommitChunk(Command["ChunkCommitted"]):
    """Make a chunk durable: counts, checkpoint and enlisted rows, all or nothing."""

    execution_id: int
    owner_id: int
    step_id: int
    version: int
    counts: Counts
    """Of the step as a whole, this chunk included."""
    checkpoint: str
    write: EnlistedWrite | None = None

    @property
    def enlisted(self) -> bool:
        """Whether user code writes within the transaction."""
        return self.write is not None


@frozen
class ChunkCommitted:
    """The chunk is durable; the row's version is one higher."""

    at: int


@frozen
class Enlist(Command["Enlisted"]):
    """Let user code write in a transaction of its own, under the owner's fence."""

    execution_id: int
    owner_id: int
    write: EnlistedWrite

    @property
    def enlisted(self) -> bool:
        """Whether user code writes within the transaction."""
        return True


@frozen
class Enlisted:
    """The rows are durable."""


@error
class LeaseLost(Rejection):
    """The execution is no longer this owner's: it was taken over or has ended."""

    code = "lease_lost"
    execution_id: int
    status: BatchStatus

    def __str__(self) -> str:
        return (
            f"execution {self.execution_id} is {self.status} and not owned by this "
            "process any more"
        )


@error
class StaleVersion(Rejection):
    """The row has changed since it was read."""

    code = "stale_version"
    expected: int
    actual: int

    def __str__(self) -> str:
        return f"version {self.expected} was expected, the row has {self.actual}"


@error
class DuplicateStep(Rejection):
    """The execution has a row for this node and visit, or a decision of this number."""

    code = "duplicate_step"
    node: str

    def __str__(self) -> str:
        return f"node {self.node!r} was entered twice in one execution"


@error
class StepUnknown(Rejection):
    """No such step execution belongs to the execution."""

    code = "step_unknown"
    step_id: int

    def __str__(self) -> str:
        return f"step execution {self.step_id} does not belong to this execution"
