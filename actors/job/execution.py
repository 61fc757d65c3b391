"""The job execution actor: one attempt at one instance, from its first node to its end."""

import trio
from attrs import evolve

from ...storage.commands import Opened
from ...storage.model.execution import Failure
from ...storage.model.lineage import lineage_of
from ...storage.model.parameters import ParameterSet
from ...storage.model.status import FailureCategory
from ..plan.actions import Action, Commit, Conclude, Ended, Finished
from ..plan.compile import CompiledJob
from ..plan.job_traversal import JobTraversal
from . import logs
from .boundary import Where
from .events import Event, EventKind
from .finality import is_over
from .flow import Flow
from .job_listening import JobListening
from .report import LaunchReport
from .step import Environment
from .timing import deadline_of, time_limit, too_long


class JobExecution(Flow):
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
        engine: JobTraversal,
        environment: Environment,
        parameters: ParameterSet,
    ) -> None:
        super().__init__(job, engine, environment)
        self._journey = engine
        self._opened = opened
        self._parameters = parameters
        self._listening = JobListening(
            job.listeners, environment.context, environment.boundary
        )

    @property
    def title(self) -> str:
        """Name the actor for people."""
        return f"{self._job.plan.job} (execution {self.execution_id})"

    @property
    def execution_id(self) -> int:
        """Of the attempt."""
        return self._opened.execution_id

    @property
    def is_child(self) -> bool:
        """Whether it runs inside of a step of another execution."""
        return lineage_of(self._parameters) is not None

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
        return super()._called or self._listening.calling

    async def take_in_stop(self) -> None:
        """Come to an end; see `listen`."""
        self._tell(Event(kind=EventKind.STOP_REQUESTED))
        await super().take_in_stop()

    def _ran_out(self) -> bool:
        """Come to an end because the job's time is over; a stop that came first wins."""
        if self.stop_token.is_set():
            return False
        timeout = self._job.timeout
        assert timeout is not None
        self._tell(Event(kind=EventKind.JOB_TIMED_OUT, seconds=timeout))
        where = Where(self._job.plan.job, "job_timed_out", FailureCategory.TIMEOUT)
        text = too_long(f"job {self._job.plan.job!r}", timeout)
        failure = self._environment.boundary.refusal(where, text).failure
        self._journey.expire(failure)
        self.stop_token.set()
        return True

    async def _to_the_end(self) -> Finished | Ended:
        limit = time_limit(
            self._environment.nursery,
            deadline_of(self._job.timeout, trio.current_time(), self._journey.spent),
            self._ran_out,
            self._bring_to_end,
        )
        with limit:
            end = await self._through_nodes()
        if isinstance(end, Conclude):
            # In no scope that a stop cancels: nothing disturbs these listeners.
            failure = await self._listening.after(end)
            await self._asyncio.close()
            end = await self._follow(self._journey.concluded(failure))
        assert not isinstance(end, Conclude)
        return end

    async def _through_nodes(self) -> Finished | Ended | Conclude:
        failure: Failure | None = None
        action = await self._up_to_code() if self._job.plan.one_step else None
        with trio.CancelScope() as self._scope:
            failure = await self._listening.before()
        await self._asyncio.close()
        self._heed()
        if failure is not None:
            action = self._journey.refused(failure)
        elif action is None:
            action = self._journey.begin()
        return await self._follow(action)

    async def _up_to_code(self) -> Action:
        """Write the row of a job of one step, which comes before the listeners."""
        self._heed()
        action = self._journey.begin()
        while isinstance(action, Commit):
            action = await self._commits.carry_out(action.command)
        return action

    def _report(self, end: Finished) -> LaunchReport:
        opened = self._opened
        report = LaunchReport(
            job=self._job.plan.job,
            instance_id=opened.instance_id,
            execution_id=opened.execution_id,
            attempt=opened.attempt,
            status=end.status,
            exit_code=end.exit_code,
            counts=end.counts,
            failure=end.failure,
            steps=tuple(self._engine.steps),
            partitions=tuple(self._journey.partitions),
            parameters=self._parameters,
            run=opened.run,
            restart_of=opened.restart_of,
            took_over=opened.took_over,
            overridden=end.overridden,
        )
        return evolve(report, over=is_over(self._job, report, self._environment.over))
