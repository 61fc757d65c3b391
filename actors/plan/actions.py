"""What a traversal asks for, and what came of it: the values between engine and actor."""

from typing import TYPE_CHECKING, TypeAlias

from attrs import define, evolve, frozen

from ...storage.commands import Advance, EnlistedWrite
from ...storage.model.execution import NO_COUNTS, Counts, DecisionRef, Failure
from ...storage.model.status import BatchStatus
from .plan import DecisionNode, PartitionedNode, SplitNode, StepNode

if TYPE_CHECKING:
    from .branch_traversal import BranchTraversal
    from .partitioned import PartitionTraversal


@define(eq=False)
class OpenStep:
    """The row of the step that runs now, as it stands in the store.

    Whoever runs the step keeps it true after every commit, so that the engine can
    close the row at any moment.
    """

    node: StepNode
    step_id: int
    attempt: int
    """Which start of this visit in the instance it is, from 1."""
    status: BatchStatus
    version: int
    counts: Counts = NO_COUNTS
    checkpoint: str | None = None
    context: str | None = None
    spent: int = 0
    """Microseconds of the store's clock that had passed when the row was made, since
    the first one that an attempt left open which died."""
    visit: int = 1


@frozen
class LatestRow:
    """The latest row of a node's visit in the instance, as this attempt knows it."""

    node: str
    step_id: int
    version: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    checkpoint: str | None
    context: str | None
    decision: DecisionRef | None = None
    """The transition that was committed with it, under the same fingerprint."""
    resumed: bool = False
    """That transition was a stop that says where the next attempt goes on."""
    visit: int = 1

    @property
    def completed(self) -> bool:
        """Whether its result may be reused."""
        return self.status is BatchStatus.COMPLETED


@frozen
class Overridden:
    """What a listener of a step or a job made into something else."""

    status: BatchStatus
    exit_code: str
    failure: Failure | None


@frozen(kw_only=True)
class StepResult:
    """What came of running a step."""

    status: BatchStatus
    """COMPLETED, FAILED, STOPPED or UNKNOWN."""
    exit_code: str
    failure: Failure | None = None
    context: str | None = None
    """The state to be committed; None keeps what the row has."""
    write: EnlistedWrite | None = None
    overridden: Overridden | None = None
    """What came of the work itself, when listeners made something else of it."""


@frozen
class StepReport:
    """A step as this attempt saw it: run, or reused from an earlier attempt."""

    row: LatestRow
    failure: Failure | None = None
    reused: bool = False
    overridden: Overridden | None = None
    """What came of the work itself, when listeners made something else of it."""

    @property
    def node(self) -> str:
        """Id of the node."""
        return self.row.node

    @property
    def visit(self) -> int:
        """Which visit of the node, from 1; more than one only in a loop."""
        return self.row.visit

    @property
    def step_id(self) -> int:
        """Of the step execution."""
        return self.row.step_id

    @property
    def status(self) -> BatchStatus:
        """How the step ended."""
        return self.row.status

    @property
    def exit_code(self) -> str:
        """What its transition was selected by."""
        return self.row.exit_code

    @property
    def counts(self) -> Counts:
        """What it did to its items, over all attempts."""
        return self.row.counts

    def brief(self) -> "StepReport":
        """Leave the state of a later visit out: a loop may have many."""
        if self.visit == 1 or self.row.context is None:
            return self
        return evolve(self, row=evolve(self.row, context=None))


@frozen
class RunStep:
    """Run a step whose row is durable."""

    step: OpenStep


@frozen(kw_only=True)
class LineResult:
    """What came of a branch, or of a partition's worker."""

    status: BatchStatus
    """COMPLETED, FAILED, STOPPED or UNKNOWN."""
    exit_code: str
    failure: Failure | None = None
    steps: tuple[StepReport, ...] = ()
    """What it came by, in order."""
    partitions: tuple["PartitionReport", ...] = ()
    """Of the partitioned steps that it came by, each in the order of its keys."""


@frozen(kw_only=True)
class SplitResult:
    """What came of a split as a whole."""

    status: BatchStatus
    exit_code: str
    failure: Failure | None
    digest: bytes
    """Of all that it was made from."""
    branches: tuple[LineResult, ...]
    """In the order of declaration."""


@frozen(kw_only=True)
class PartitionReport:
    """A partition as this attempt saw it."""

    node: str
    """Of the partitioned step."""
    visit: int = 1
    key: str
    ordinal: int
    """1, 2, ... in the order of the plan."""
    status: BatchStatus
    exit_code: str
    counts: Counts
    failure: Failure | None = None
    reused: bool = False
    """Completed in an earlier attempt."""
    began: bool = True
    """False: no worker was started for it, it is still pending."""


@frozen
class PlanPartitions:
    """Ask the planner of a partitioned step; everything that led to it is durable."""

    node: PartitionedNode
    visit: int = 1


@frozen
class RunPartitions:
    """Run the workers of a partitioned step whose plan is durable."""

    node: PartitionedNode
    partitions: tuple["PartitionTraversal", ...]
    """Engines of those that are not completed, in the order of the plan."""
    manager_id: int
    """The step execution of the partitioned step."""
    total: int
    """How many partitions there are."""
    counts: Counts
    """Of those that earlier attempts have completed."""
    spent: int
    """As of the manager's `OpenStep`."""
    visit: int = 1


@frozen
class Decide:
    """Ask a decider; everything that led to it is durable."""

    node: DecisionNode
    preceding: LatestRow | None
    """The step before; None when there was none."""
    split: SplitResult | None = None
    """The split before, when no step came after it."""
    visit: int = 1


@frozen
class RunSplit:
    """Run the branches of a split; everything that led to it is durable."""

    node: SplitNode
    branches: tuple["BranchTraversal", ...]
    """Engines, in the order of declaration."""


@frozen
class Conclude:
    """Call the job's after-listeners; the results of all its steps are durable."""

    status: BatchStatus
    exit_code: str
    failure: Failure | None


@frozen
class Commit:
    """Have the command carried out and feed back its reply."""

    command: Advance


@frozen
class Finished:
    """The job's end is durable."""

    status: BatchStatus
    exit_code: str
    failure: Failure | None
    counts: Counts
    overridden: Overridden | None = None
    """What came of the steps, when a job listener made something else of it."""


@frozen
class Ended:
    """A branch or a partition's worker has ended, and all that it did is durable."""

    result: LineResult


Action: TypeAlias = (
    RunStep
    | Decide
    | RunSplit
    | PlanPartitions
    | RunPartitions
    | Conclude
    | Commit
    | Finished
    | Ended
)
