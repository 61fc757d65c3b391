"""Rows of the memory store and the indexes that find them.

Rows may change and never leave the package: `questions` makes records of them. Every
look-up of the hot path is one access to a dict, whatever the store holds; ids count
from 1, so a dict by id is in the order of its keys.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from attrs import define, evolve, field

from ..commands import ExecutionNotFound, Folded, NextStep, OwnerUnknown, StepStarted
from ..commands.upgrading import RegisterUpgrade
from ..dump import StoredDefinition, StoredInstance, StoredOwner
from ..model.execution import (
    NO_COUNTS,
    Counts,
    Decision,
    ExitCode,
    Failure,
    JobExecution,
)
from ..model.launch_request import LaunchRequest
from ..model.operation import Operation, RecoveryDecision, StopRequest
from ..model.partition import (
    CopiedPlan,
    NewPartition,
    PartitionExecution,
    PartitionRef,
)
from ..model.status import BatchStatus
from .business import Business

Edge: TypeAlias = tuple[int, int]
NodeKey: TypeAlias = tuple[str, int]
"""A node path and a visit."""


@define(eq=False)
class InstanceRow:
    """An instance and what its attempts have behind them."""

    stored: StoredInstance
    executions: list["ExecutionRow"] = field(factory=list)
    """Oldest first."""
    latest: dict[NodeKey, "StepRow"] = field(factory=dict)
    starts: dict[NodeKey, int] = field(factory=dict)
    """How many rows were ever created."""


@define(eq=False)
class ExecutionRow:
    """An execution with its steps and decisions."""

    record: JobExecution
    instance: InstanceRow
    steps: dict[NodeKey, "StepRow"] = field(factory=dict)
    decisions: dict[int, Decision] = field(factory=dict)
    """Those with a row of their own, by sequence."""
    folded: set[int] = field(factory=set)
    """Sequences of those that are kept in step rows."""


@define(eq=False)
class StepRow:
    """A step execution."""

    id: int
    execution: ExecutionRow
    node: str
    visit: int
    name: str
    status: BatchStatus
    counts: Counts
    checkpoint: str | None
    context: str | None
    created_at: int
    started_at: int | None
    version: int
    exit_code: str = ExitCode.UNKNOWN
    failure: Failure | None = None
    ended_at: int | None = None
    decision: Folded | None = None

    def no_earlier(self, now: int) -> int:
        """Clamp an instant: the clock may have stepped back since the row began."""
        began = self.created_at if self.started_at is None else self.started_at
        return max(now, began)


@define(eq=False)
class PartitionRow:
    """A partition of one attempt's plan."""

    manager: StepRow
    ordinal: int
    key: str
    context: str
    status: BatchStatus = BatchStatus.STARTING
    exit_code: str = ExitCode.UNKNOWN
    counts: Counts = NO_COUNTS
    worker_id: int | None = None
    version: int = 0

    def record(self) -> PartitionExecution:
        """Give it as it is now."""
        return PartitionExecution(
            manager_id=self.manager.id,
            node=self.manager.node,
            visit=self.manager.visit,
            ordinal=self.ordinal,
            key=self.key,
            context=self.context,
            status=self.status,
            exit_code=self.exit_code,
            counts=self.counts,
            worker_id=self.worker_id,
            version=self.version,
        )


@define(eq=False)
class Tables:
    """The whole store."""

    clock: Callable[[], int]
    """Microseconds since 1970."""
    owners: dict[int, StoredOwner] = field(factory=dict)
    definitions: dict[tuple[str, bytes], StoredDefinition] = field(factory=dict)
    """By job and fingerprint, oldest first."""
    revisions: dict[tuple[str, str], StoredDefinition] = field(factory=dict)
    """By job and revision label."""
    upgrades: dict[Edge, RegisterUpgrade] = field(factory=dict)
    """By the ids of the definitions that they lead from and to."""
    instances: dict[tuple[str, bytes], InstanceRow] = field(factory=dict)
    """By job and key, oldest first."""
    runs: dict[str, int] = field(factory=dict)
    """The highest run number of each job."""
    executions: dict[int, ExecutionRow] = field(factory=dict)
    steps: dict[int, StepRow] = field(factory=dict)
    stops: dict[int, StopRequest] = field(factory=dict)
    """By execution."""
    recoveries: list[RecoveryDecision] = field(factory=list)
    operations: dict[str, Operation] = field(factory=dict)
    """By operation id, oldest first."""
    requests: dict[int, LaunchRequest] = field(factory=dict)
    partitions: dict[int, dict[int, PartitionRow]] = field(factory=dict)
    """By manager and ordinal."""
    business: Business = field(factory=Business)

    def owner(self, owner_id: int) -> StoredOwner:
        """Find an owner.

        Raises:
            OwnerUnknown: When there is no such owner.
        """
        owner = self.owners.get(owner_id)
        if owner is None:
            raise OwnerUnknown(owner_id)
        return owner

    def execution(self, execution_id: int) -> ExecutionRow:
        """Find an execution.

        Raises:
            ExecutionNotFound: When there is no such execution.
        """
        execution = self.executions.get(execution_id)
        if execution is None:
            raise ExecutionNotFound(execution_id)
        return execution

    def insert_step(
        self, execution: ExecutionRow, step: NextStep, now: int
    ) -> StepStarted:
        """Create a step's row, fresh or continuing an earlier attempt."""
        earlier = None if step.inherit is None else self.steps[step.inherit]
        row = StepRow(
            len(self.steps) + 1,
            execution,
            step.node,
            step.visit,
            step.name,
            BatchStatus.STARTING if step.starting else BatchStatus.STARTED,
            NO_COUNTS if earlier is None else earlier.counts,
            None if earlier is None else earlier.checkpoint,
            None if earlier is None else earlier.context,
            now,
            None if step.starting else now,
            0 if step.starting else 1,
        )
        key = (step.node, step.visit)
        instance = execution.instance
        self.steps[row.id] = execution.steps[key] = instance.latest[key] = row
        instance.starts[key] = instance.starts.get(key, 0) + 1
        if step.partition is not None:
            self._assign(step.partition, row.id)
        if step.plan is not None:
            self._insert_plan(row, step.plan)
        return StepStarted(row.id, now)

    def _assign(self, ref: PartitionRef, worker_id: int) -> None:
        one = self.partitions[ref.manager_id][ref.ordinal]
        one.status = BatchStatus.STARTED
        one.worker_id = worker_id
        one.version += 1

    def _insert_plan(
        self, manager: StepRow, plan: Sequence[NewPartition] | CopiedPlan
    ) -> None:
        if isinstance(plan, CopiedPlan):
            made = [
                evolve(one, manager=manager, version=0)
                if one.status is BatchStatus.COMPLETED
                else PartitionRow(manager, one.ordinal, one.key, one.context)
                for one in self.partitions[plan.manager_id].values()
            ]
        else:
            made = [
                PartitionRow(manager, ordinal, one.key, one.context)
                for ordinal, one in enumerate(plan, 1)
            ]
        self.partitions[manager.id] = {one.ordinal: one for one in made}
