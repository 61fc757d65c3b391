"""What user code is given: the context of a step, and the input of a decider."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from logging import Logger, LoggerAdapter, getLogger
from math import isfinite
from typing import TypeAlias

from attrs import define, field, frozen

from ...storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, unseal
from ...storage.model.errors import InvalidValue
from ...storage.model.execution import Counts
from ...storage.model.json import JsonObject
from ...storage.model.parameters import ParameterValue
from ...storage.model.status import BatchStatus
from ..kernel.stop import StopToken

Log: TypeAlias = "LoggerAdapter[Logger]"


def payload_of(envelope: str | None, node: str) -> JsonObject:
    """Read the state that a node committed; empty when it committed none."""
    if envelope is None:
        return {}
    return unseal(CONTEXT_FORMAT, STATE_SCHEMA, envelope, f"the state of {node!r}")


@frozen(kw_only=True)
class JobContext:
    """What all user code of one execution shares; job listeners are given no more."""

    job: str
    instance_id: int
    instance_key: bytes = field(repr=False)
    execution_id: int
    attempt: int
    """Which attempt at the instance this is, from 1."""
    parameters: Mapping[str, ParameterValue] = field(repr=False)
    """The launch parameters, defaults filled in."""
    stop: StopToken = field(repr=False)
    """Set when the job should come to an end."""
    _state_of: Callable[[str], str | None] = field(repr=False)

    @property
    def log(self) -> Log:
        """Logs with the ids of the execution."""
        return log_of(self, node="")

    def state_of(self, node: str) -> JsonObject:
        """Read the state that *node* committed last in this instance.

        Returns:
            A copy of its ``ctx.state``; empty when the node has committed none. In a
            loop that of its last visit, which may have committed none.
        """
        return payload_of(self._state_of(node), node)

    def idempotency_key(self, node: str, visit: int = 1) -> str:
        """Name one visit of a step: equal over all attempts, unlike any other."""
        key = f"{self.instance_key.hex()}:{self.instance_id}:{node}:{visit}"
        return sha256(key.encode()).hexdigest()[:32]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value)


def log_of(execution: JobContext, node: str) -> Log:
    """Make the logger that user code writes to."""
    extra = {"job": execution.job, "node": node}
    return LoggerAdapter(getLogger("triolet.user"), extra)


class NodeContext:
    """What the code of every node can see."""

    __slots__ = ()

    execution: JobContext
    node: str

    @property
    def parameters(self) -> Mapping[str, ParameterValue]:
        """The launch parameters, defaults filled in."""
        return self.execution.parameters

    @property
    def attempt(self) -> int:
        """Which attempt at the instance this is, from 1."""
        return self.execution.attempt

    @property
    def log(self) -> Log:
        """Logs with the ids of the execution and the node."""
        return log_of(self.execution, self.node)

    def state_of(self, node: str) -> JsonObject:
        """Read what a step committed as its state; empty when it has none."""
        return self.execution.state_of(node)


@frozen(kw_only=True)
class Partition:
    """The share of a partitioned step's work that a worker does."""

    key: str = field(repr=False)
    """Unique within the step."""
    ordinal: int
    """1, 2, ... in the order of the plan."""
    context: JsonObject = field(repr=False)
    """What the planner gave to it."""


@define(eq=False, kw_only=True)
class StepContext(NodeContext):
    """What a tasklet and its listeners are given."""

    execution: JobContext = field(repr=False)
    node: str
    path: str = field(repr=False)
    """Names the step's rows: the node, or the worker of one partition."""
    partition: Partition | None = None
    """In a worker: its share of the work."""
    step_id: int
    step_attempt: int
    """Which start of this step, and visit, in the instance it is, from 1."""
    visit: int = 1
    """How often the flow has come to the step, this time included; see `Step`."""
    state: JsonObject
    """The step's own state: JSON that is committed when the step returns, restored on
    restart, and readable by later steps and deciders (`state_of`). Every visit begins
    with an empty one; ``ctx.state_of(ctx.node)`` is that of the visit before."""
    _progress: Callable[[int, int | None], None] = field(repr=False)

    @property
    def stop(self) -> StopToken:
        """Set when the step should come to an end; may be read from any thread."""
        return self.execution.stop

    @property
    def execution_id(self) -> int:
        """The job execution."""
        return self.execution.execution_id

    @property
    def instance_id(self) -> int:
        """The job instance."""
        return self.execution.instance_id

    @property
    def idempotency_key(self) -> str:
        """Hand it to outside systems: equal whenever this step is repeated."""
        return self.execution.idempotency_key(self.path, self.visit)

    def progress(self, done: int, total: int | None = None) -> None:
        """Report progress to whoever watches; nothing of it is stored.

        Args:
            done: Units of work that are done.
            total: All units, when known.

        Raises:
            InvalidValue: One of the two is not a number.
        """
        for what, number in (("done", done), ("total", total)):
            if not (_is_number(number) or (number is None and what == "total")):
                kind = type(number).__name__
                raise InvalidValue(
                    f"{what} of ctx.progress", f"must be an int, not {kind}"
                )
        self._progress(done, total)


@frozen(kw_only=True)
class PlannerContext(NodeContext):
    """What the planner of a partitioned step is given."""

    execution: JobContext = field(repr=False)
    node: str
    partitions: int | None
    """How many there have to be; None: 0 to 1,024."""
    visit: int = 1
    """How often the flow has come to the node, this time included."""


@frozen(kw_only=True)
class Observation:
    """The finished step that a decider looks back on."""

    node: str
    step_id: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    state: JsonObject


@frozen(kw_only=True)
class BranchObservation:
    """A branch of the split that a decider looks back on."""

    status: BatchStatus
    exit_code: str
    steps: tuple[Observation, ...]
    """Those that ran or were reused, in order."""


@frozen(kw_only=True)
class SplitObservation:
    """The finished split that a decider looks back on."""

    status: BatchStatus
    exit_code: str
    branches: tuple[BranchObservation, ...]
    """In the order of declaration."""


@frozen(kw_only=True)
class DeciderContext(NodeContext):
    """What a decider is given; its answer must depend on nothing else."""

    execution: JobContext = field(repr=False)
    node: str
    preceding: Observation | None
    """The last step before the decision; None when there was none, or a split came
    after it."""
    split: SplitObservation | None = None
    """The split before the decision, when no step came after it."""
    visit: int = 1
    """How often the flow has come to the decision, this time included."""


@frozen
class JobOutcome:
    """What an after-job listener sees."""

    status: BatchStatus
    exit_code: str
    message: str | None = None
    """Why the job failed, if it did."""


@frozen
class StepOutcome:
    """What an after-step listener sees."""

    status: BatchStatus
    exit_code: str
    message: str | None = None
    """Why the step failed, if it did."""
