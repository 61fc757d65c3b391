"""The job execution actor: one attempt at one instance, from its first node to its end."""

import trio

from ...storage.commands import Opened
from ...storage.model.errors import InvalidName, InvalidValue, with_article
from ...storage.model.execution import Failure
from ...storage.model.parameters import ParameterSet
from ..kernel.inspecting import ActorState
from ..plan.actions import (
    Action,
    Commit,
    Conclude,
    Decide,
    Ended,
    Finished,
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
from ..plan.traversal import Traversal
from . import logs
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
from .fan import Fan
from .job_listening import JobListening
from .partitions import PartitionManager
from .report import LaunchReport
from .split import Split
from .step import HEEDING_SECS, Environment, still_running
from .walk import Stop, Walk


class JobExecution(Walk):
    """One attempt at one instance.

    Args:
        job: The compiled job.
        opened: The reply that began the attempt.
        engine: Knows what comes next.
        environment: Store, boundary and context that the steps run in.
        parameters: As launched.
    """

    def __init__(
        self,
        job: CompiledJob,
        opened: Opened,
        engine: Traversal,
        environment: Environment,
        parameters: ParameterSet,
    ) -> None:
        super().__init__(job, engine, environment)
        self._traversal = engine
        self._opened = opened
        self._parameters = parameters
        self._asking: tuple[str, object] | None = None
        """The decider or planner that is being called, with its node."""
        self._listening = JobListening(
            job.listeners, environment.context, environment.boundary
        )
        self._fan: Fan | None = None
        """The split or partition manager that is running."""

    @property
    def title(self) -> str:
        """Name the actor for people."""
        return f"{self._job.plan.job} (execution {self.execution_id})"

    @property
    def execution_id(self) -> int:
        """Of the attempt."""
        return self._opened.execution_id

    async def run(self) -> LaunchReport:
        """Go through the job to its end and report.

        Raises:
            StoreError: The store failed; the execution is closed as FAILED if it
                answers again, else it stays open until its lease runs out.
            LeaseLost: Somebody else has taken the execution over.
            trio.Cancelled: The scope around was cancelled; the store says STOPPED.
        """
        self._tell(Event(kind=EventKind.JOB_STARTED, at=self._opened.at))
        within = logs.execution_id.set(self._opened.execution_id)
        try:
            end = await self._walk()
        finally:
            logs.execution_id.reset(within)
        assert isinstance(end, Finished)
        self._tell(
            Event(kind=EventKind.JOB_ENDED, status=end.status, counts=end.counts)
        )
        return self._report(end)

    @property
    def _called(self) -> tuple[str, object] | None:
        """The code outside of steps that is being called and a stop cancels."""
        return self._asking or self._listening.calling

    def _inside(self) -> tuple[ActorState, ...]:
        return super()._inside() if self._fan is None else (self._fan.inspect(),)

    async def _bring_to_end(self) -> None:
        self._tell(Event(kind=EventKind.STOP_REQUESTED))
        asking = self._called
        if self._fan is not None:
            self._fan.mailbox.offer(Stop())
        elif asking is not None:
            self._scope.cancel()
            await trio.sleep(HEEDING_SECS)
            if self._called is asking:
                self._tell(still_running(*asking))
        else:
            await super()._bring_to_end()

    async def _to_the_end(self) -> Finished | Ended:
        failure: Failure | None = None
        action = await self._up_to_code() if self._job.plan.one_step else None
        with trio.CancelScope() as self._scope:
            failure = await self._listening.before()
        await self._asyncio.close()
        self._heed()
        if failure is not None:
            action = self._traversal.refused(failure)
        elif action is None:
            action = self._traversal.begin()
        end = await self._follow(action)
        if isinstance(end, Conclude):
            # In no scope that a stop cancels: nothing disturbs these listeners.
            failure = await self._listening.after(end)
            await self._asyncio.close()
            end = await self._follow(self._traversal.concluded(failure))
        assert not isinstance(end, Conclude)
        return end

    async def _up_to_code(self) -> Action:
        """Write the row of a job of one step, which comes before the listeners."""
        self._heed()
        action = self._traversal.begin()
        while isinstance(action, Commit):
            action = await self._perform(action)
        return action

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
                manager = PartitionManager(action, self._job, self._environment)
                return self._traversal.partitioned(await self._side_by_side(manager))
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

    async def _plan(self, action: PlanPartitions) -> Action:
        node = action.node
        planner = self._job.partitioned[node.id].planner
        boundary = self._environment.boundary
        where = Where(node.id, "planner_failed")
        ctx = PlannerContext(
            execution=self._environment.context,
            node=node.id,
            partitions=node.partition_count,
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

    def _report(self, end: Finished) -> LaunchReport:
        opened = self._opened
        return LaunchReport(
            job=self._job.plan.job,
            instance_id=opened.instance_id,
            execution_id=opened.execution_id,
            attempt=opened.attempt,
            status=end.status,
            exit_code=end.exit_code,
            counts=end.counts,
            failure=end.failure,
            steps=tuple(self._engine.steps),
            partitions=tuple(self._traversal.partitions),
            parameters=self._parameters,
            run=opened.run,
            restart_of=opened.restart_of,
            took_over=opened.took_over,
            overridden=end.overridden,
        )


def _planned(action: RunPartitions) -> Event:
    return Event(
        kind=EventKind.PARTITIONS_PLANNED,
        node=action.node.id,
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
