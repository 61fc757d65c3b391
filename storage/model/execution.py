"""The records of a job's life: instance, execution, step, decision.

Each is one durable row as a value. Times are microseconds of the store's clock since
1970, UTC. ``version`` counts a row's mutations, for optimistic locking.
"""

from enum import StrEnum

from attrs import field, frozen

from .parameters import ParameterSet
from .status import BatchStatus, FailureCategory

COUNT_MAX = (1 << 63) - 1


class ExitCode(StrEnum):
    """The exit codes that the framework gives; users may return others."""

    UNKNOWN = "UNKNOWN"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


@frozen
class Counts:
    """What a step did to its items, summed over all attempts of an instance."""

    read: int = 0
    processed: int = 0
    written: int = 0
    filtered: int = 0
    committed: int = 0
    """Chunks committed."""
    rolled_back: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        sums = (a + b for a, b in zip(self.all(), other.all(), strict=True))
        return Counts(*sums)

    def all(self) -> tuple[int, int, int, int, int, int]:
        """Give the six counts in the order of digests and columns."""
        return (
            self.read,
            self.processed,
            self.written,
            self.filtered,
            self.committed,
            self.rolled_back,
        )


NO_COUNTS = Counts()


@frozen
class Failure:
    """Why an execution failed. The text is for people and enters no digest."""

    category: FailureCategory
    id: int
    """Nonzero, drawn from the runtime's random source; also in the log."""
    code: str = "component_failed"
    where: str | None = None
    """Node id or listener name."""
    type: str | None = None
    """Name of the exception's class."""
    message: str | None = None
    """At most 1 KiB; secret values and control characters are replaced."""
    place: str | None = None
    """File, without its folder, and line of the user's code that raised."""


class TransitionKind(StrEnum):
    """What a decision was made from; the spellings are stored."""

    STEP_EXIT = "STEP_EXIT"
    DECIDER = "DECIDER"
    COMPLETED_STEP_REUSE = "COMPLETED_STEP_REUSE"
    SPLIT_AGGREGATE = "SPLIT_AGGREGATE"


ANSWERS = frozenset({TransitionKind.DECIDER, TransitionKind.SPLIT_AGGREGATE})
"""Kinds of decisions that a later attempt looks back on."""


class Terminal(StrEnum):
    """Where a flow may end; a target beside the node ids."""

    COMPLETE = "complete"
    FAIL = "fail"
    STOP = "stop"


@frozen
class NodeTarget:
    """The node that a transition leads to."""

    node: str


@frozen
class Stop:
    """Target of a transition: the job ends STOPPED, and is continued elsewhere.

    The next launch of the instance goes on at the node ``resume_at``. What led here is
    not run or asked again; steps before it are reused, or run, as in any restart.

    Args:
        resume_at: Id of a node.
    """

    resume_at: str


End = Terminal | Stop
Target = NodeTarget | End


@frozen
class DecisionRef:
    """The natural key of a decision: one execution, one sequence number."""

    execution_id: int
    sequence: int


@frozen(kw_only=True)
class Decision:
    """One durable transition of an execution."""

    execution_id: int
    sequence: int
    """1, 2, ... within the execution."""
    source: str
    visit: int = 1
    step_id: int | None
    kind: TransitionKind
    outcome: str
    target: Target
    digest: bytes = field(repr=False)
    """Digest of the input that the transition was selected upon."""
    fingerprint: bytes = field(repr=False)
    """Of the plan under which it was made."""
    reused: DecisionRef | None = None
    decided_at: int


@frozen(kw_only=True)
class StepExecution:
    """One attempt at one step of one job execution."""

    id: int
    execution_id: int
    node: str
    """Node path: the id of the node, below a nesting node with its path before it."""
    visit: int
    name: str
    status: BatchStatus
    exit_code: str
    counts: Counts
    checkpoint: str | None
    """Canonical envelope; None is the empty initial one."""
    context: str | None
    """Canonical envelope of the step's state; None is the empty initial one."""
    failure: Failure | None
    created_at: int
    started_at: int | None
    ended_at: int | None
    version: int
    decision: Decision | None
    """The transition that was committed together with the step's result."""


@frozen(kw_only=True)
class JobInstance:
    """One logical occurrence of a job: its name and identifying parameters."""

    id: int
    job: str
    key: bytes = field(repr=False)
    run: int | None
    """The number given by launching anew, if it was."""
    created_at: int


@frozen(kw_only=True)
class JobExecution:
    """One attempt at one instance."""

    id: int
    instance_id: int
    attempt: int
    restart_of: int | None
    status: BatchStatus
    exit_code: str
    counts: Counts
    failure: Failure | None
    owner_id: int
    created_at: int
    started_at: int | None
    ended_at: int | None
    version: int
    parameters: ParameterSet
    """Values of secret parameters are not stored: they are empty here."""
    revision: str
    fingerprint: bytes = field(repr=False)
