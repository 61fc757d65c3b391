"""What walks through a flow: the job itself and each branch of a split.

Besides the steps it calls deciders and planners, and has splits and partitions run.
"""

import trio

from ...storage.model.errors import InvalidName, InvalidValue, with_article
from ..kernel.inspecting import ActorKind, ActorState
from ..plan.actions import (
    Action,
    Decide,
    LatestRow,
    LineResult,
    PlanPartitions,
    RunPartitions,
    RunSplit,
    SplitResult,
)
from ..plan.compile import CompiledJob
from ..plan.definition import Decision, Exit
from ..plan.partitioning import check_partitions
from ..plan.plan import Graph
from ..plan.traversal import Traversal
from .boundary import ComponentFailed, OutcomeUnknown, Where
from .context import (
    BranchObservation,
    DeciderContext,
    Observation,
    PlannerContext,
    SplitObservation,
    payload_of,
)
from .events import Event, EventKind
from .fan import Fan, Line
from .partitions import PartitionManager
from .step import HEEDING_SECS, Environment, still_running
from .timing import time_limit
from .walk import Stop, Walk


class Flow(Walk):
    """Performs what a traversal asks for.

    Args:
        job: The compiled job.
        engine: Knows what comes next.
        environment: Store, boundary and context that the nodes run in.
    """

    def __init__(
        self, job: CompiledJob, engine: Traversal, environment: Environment
    ) -> None:
        super().__init__(job, engine, environment)
        self._traversal = engine
        self._asking: tuple[str, object] | None = None
        """The decider or planner that is being called, with its node."""
        self._fan: Fan | None = None
        """The split or partition manager that is running."""

    @property
    def _called(self) -> tuple[str, object] | None:
        """The code outside of steps that is being called and a stop cancels."""
        return self._asking

    def _inside(self) -> tuple[ActorState, ...]:
        return super()._inside() if self._fan is None else (self._fan.inspect(),)

    async def _bring_to_end(self) -> None:
        asking = self._called
        if self._fan is not None:
            self._fan.mailbox.offer(Stop())
        elif asking is not None:
            self._spent = True
            self._scope.cancel()
            await trio.sleep(HEEDING_SECS)
            if self._called is asking:
                self._tell(still_running(*asking))
        else:
            await super()._bring_to_end()

    async def _interrupted(self) -> Action:
        if self._running is None:
            return self._traversal.undecided()
        return await super()._interrupted()

    async def _perform(self, action: Action) -> Action:
        match action:
            case Decide():
                await trio.lowlevel.checkpoint_if_cancelled()
                return await self._decide(action)
            case RunSplit():
                await trio.lowlevel.checkpoint_if_cancelled()
                split = Split(action, self._job, self._environment)
                return self._traversal.joined(await self._side_by_side(split))
            case PlanPartitions():
                await trio.lowlevel.checkpoint_if_cancelled()
                return await self._plan(action)
            case RunPartitions():
                await trio.lowlevel.checkpoint_if_cancelled()
                self._tell(_planned(action))
                return await self._run_partitions(action)
            case _:
                return await super()._perform(action)

    async def _side_by_side(self, fan: Fan) -> tuple[LineResult, ...]:
        self._fan = fan
        try:
            results = await fan.run(fan.mailbox.inbox)
        finally:
            self._fan = None
        self._heed()
        return results

    async def _run_partitions(self, action: RunPartitions) -> Action:
        manager = PartitionManager(action, self._job, self._environment)
        limit = time_limit(
            self._environment.nursery,
            manager.deadline,
            manager.expire,
            trio.lowlevel.checkpoint,  # it tells by itself who goes on
        )
        with limit:
            results = await self._side_by_side(manager)
        return self._traversal.partitioned(results, manager.expired)

    async def _plan(self, action: PlanPartitions) -> Action:
        node = action.node
        planner = self._job.partitioned[node.id].planner
        boundary = self._environment.boundary
        where = Where(node.id, "planner_failed")
        ctx = PlannerContext(
            execution=self._environment.context,
            node=node.id,
            partitions=node.partition_count,
            visit=action.visit,
        )
        self._asking = (node.id, planner)
        try:
            with self._watched(node.id):
                returned = await boundary.call(where, planner, ctx)
            entries = check_partitions(returned, node.partition_count)
        except ComponentFailed as exc:
            return self._traversal.unplanned(exc.failure)
        except (OutcomeUnknown, InvalidValue) as exc:
            return self._traversal.unplanned(boundary.failure(where, exc))
        finally:
            self._asking = None
        self._heed()
        return self._traversal.planned(entries)

    async def _decide(self, action: Decide) -> Action:
        decision = self._job.decisions[action.node.id]
        where = Where(decision.id, "decider_failed")
        ctx = DeciderContext(
            execution=self._environment.context,
            node=decision.id,
            preceding=None if action.preceding is None else _seen(action.preceding),
            split=None if action.split is None else _joined(action.split),
            visit=action.visit,
        )
        self._asking = (decision.id, decision.decider)
        try:
            code = await self._answer(decision, where, ctx)
        except ComponentFailed as exc:
            return self._traversal.refused(exc.failure)
        except OutcomeUnknown as exc:
            return self._traversal.refused(
                self._environment.boundary.failure(where, exc)
            )
        finally:
            self._asking = None
        self._heed()
        return self._traversal.decided(action.node, code)

    async def _answer(
        self, decision: Decision, where: Where, ctx: DeciderContext
    ) -> str:
        boundary = self._environment.boundary
        with self._watched(decision.id):
            returned = await boundary.call(where, decision.decider, ctx)
        if isinstance(returned, Exit):
            return returned.code
        if isinstance(returned, str):
            try:
                return Exit(returned).code
            except InvalidName as exc:
                raise boundary.failed(where, exc) from exc
        kind = with_article(type(returned).__name__)
        raise boundary.refusal(
            where,
            f"decider {decision.id!r} returned {kind}; return an exit code or Exit",
        )


class Branch(Line, Flow):
    """A branch of a split."""


class Split(Fan):
    """Runs the branches of one split.

    Args:
        action: The split and the engines of its branches.
        job: The compiled job.
        environment: Of what the split is a part of.
    """

    kind = ActorKind.SPLIT
    line_kind = ActorKind.BRANCH

    def __init__(
        self, action: RunSplit, job: CompiledJob, environment: Environment
    ) -> None:
        node = action.node
        budget = job.splits[node.id].max_parallel
        super().__init__(
            node.id, action.branches, budget, node.failure_policy, environment
        )
        self._branches = action.branches
        self._node = node
        self._job = job

    def _line(self, at: int) -> Line:
        return Branch(self._job, self._branches[at], self._environment)

    def _name_of(self, at: int) -> str:
        branch = self._node.branches[at]
        return branch.entry if isinstance(branch, Graph) else branch[0].id


def _planned(action: RunPartitions) -> Event:
    return Event(
        kind=EventKind.PARTITIONS_PLANNED,
        node=action.node.id,
        visit=action.visit,
        step_id=action.manager_id,
        counts=action.counts,
        total=action.total,
        completed=action.total - len(action.partitions),
    )


def _seen(row: LatestRow) -> Observation:
    return Observation(
        node=row.node,
        step_id=row.step_id,
        status=row.status,
        exit_code=row.exit_code,
        counts=row.counts,
        state=payload_of(row.context, row.node),
    )


def _joined(split: SplitResult) -> SplitObservation:
    return SplitObservation(
        status=split.status,
        exit_code=split.exit_code,
        branches=tuple(
            BranchObservation(
                status=branch.status,
                exit_code=branch.exit_code,
                steps=tuple(_seen(step.row) for step in branch.steps),
            )
            for branch in split.branches
        ),
    )
