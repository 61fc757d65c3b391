"""The partition manager: an actor that runs the workers of one partitioned step."""

import trio
from attrs import evolve

from ...storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, unseal
from ...storage.model.errors import InvalidValue
from ...storage.model.execution import Failure
from ...storage.model.status import FailureCategory
from ..kernel.inspecting import ActorKind
from ..plan.actions import OpenStep, RunPartitions
from ..plan.bindings import step_reasons
from ..plan.compile import CompiledJob
from ..plan.definition import PartitionedStep, Step
from ..plan.lowering import step_node
from ..plan.made import made_step
from ..plan.partitioned import PartitionTraversal
from .boundary import Where
from .context import Partition
from .events import Event, EventKind
from .fan import Fan, Line
from .step import Environment
from .timing import deadline_of, too_long


class PartitionManager(Fan):
    """Runs a worker for each partition that is not completed.

    Args:
        action: The partitioned step and the engines of its partitions.
        job: The compiled job.
        environment: Of the job.
    """

    kind = ActorKind.PARTITION_MANAGER
    line_kind = ActorKind.PARTITION_WORKER

    def __init__(
        self, action: RunPartitions, job: CompiledJob, environment: Environment
    ) -> None:
        node = action.node
        self._definition = job.partitioned[node.id]
        super().__init__(
            node.id,
            action.partitions,
            self._definition.max_workers,
            node.failure_policy,
            environment,
        )
        self.expired: Failure | None = None
        """Why the step has failed, if its time was over."""
        self._action = action
        self._partitions = action.partitions
        self._job = job
        # Each partition keeps to one connection, so that its commands keep their order.
        self._places = [
            evolve(self._environment, store=store) for store in environment.stores
        ]

    @property
    def deadline(self) -> float:
        """When the time of the step is over that begins now."""
        now = trio.current_time()
        return deadline_of(self._definition.timeout, now, self._action.spent)

    def expire(self) -> bool:
        """Stop all workers because the step's time is over; a stop before that wins."""
        timeout = self._definition.timeout
        if timeout is None or self._token.is_set():
            return False
        node, environment = self._action.node.id, self._environment
        event = Event(
            kind=EventKind.STEP_TIMED_OUT,
            node=node,
            step_id=self._action.manager_id,
            seconds=timeout,
        )
        environment.announcer.tell(event)
        where = Where(node, "step_timed_out", FailureCategory.TIMEOUT)
        text = too_long(f"step {node!r}", timeout)
        self.expired = environment.boundary.refusal(where, text).failure
        self._stop_all()
        return True

    def _line(self, at: int) -> Line:
        environment = self._places[at % len(self._places)]
        return PartitionWorker(
            self._job, self._partitions[at], environment, self._definition
        )

    def _name_of(self, at: int) -> str:
        return f"partition {self._partitions[at].partition.ordinal}"


class PartitionWorker(Line):
    """Does the work of one partition."""

    def __init__(
        self,
        job: CompiledJob,
        engine: PartitionTraversal,
        environment: Environment,
        definition: PartitionedStep,
    ) -> None:
        one = engine.partition
        announcer = environment.announcer
        if announcer.active:
            announcer = evolve(announcer, node=engine.node, partition=one.key)
            environment = evolve(environment, announcer=announcer)
        super().__init__(job, engine, environment)
        self._definition = definition
        self._manager = engine.node
        what = f"the context of partition {one.ordinal} of {engine.node!r}"
        self._partition = Partition(
            key=one.key,
            ordinal=one.ordinal,
            context=unseal(CONTEXT_FORMAT, STATE_SCHEMA, one.context, what),
        )

    async def _step_of(self, row: OpenStep) -> Step:
        """Give the declared worker, or have the factory make that of this partition."""
        declared = self._definition.worker
        assert isinstance(declared, Step), "the worker has not been named"
        factory = self._definition.factory
        if factory is None:
            return declared
        boundary = self._environment.boundary
        where = Where(self._manager, "factory_failed")
        with self._watched(self._manager):
            made = await boundary.call(where, factory, self._partition)
        step = made_step(declared, made)
        wrong = next(step_reasons(step), None)
        if wrong is None and step_node(step) != step_node(declared):
            wrong = "it is another step than the declared worker"
        if wrong is not None:
            exc = InvalidValue(f"what the factory of {self._manager!r} made", wrong)
            raise boundary.failed(where, exc) from exc
        return step

    def _partition_of(self) -> Partition:
        return self._partition
