"""The runtime: launches and stops jobs on one store, and serves launch requests."""

from collections.abc import Callable, Iterable, Mapping

import trio
from attrs import evolve, frozen

from ..storage.commands import STOP_CHANNEL
from ..storage.commands.requesting import LAUNCH_CHANNEL
from .job.enqueuing import merged
from .job.launch import LaunchSettings, ShuttingDown, launch_of
from .job.launches import Launches
from .job.options import check_type
from .job.report import LaunchReport
from .job.requests import Requester
from .job.restarting import restart_of
from .job.served_jobs import served_jobs
from .job.serving import MAX_RUNNING, ServedRequest, Serving
from .kernel.inspecting import Activity, ActorKind, ActorState
from .kernel.pool import StoragePool
from .plan.compile import CompiledJob, compiled
from .plan.definition import Job

SHUTDOWN_SECS = 30.0


@frozen(kw_only=True)
class ShutdownReport:
    """What a shutdown came to."""

    drained: bool
    """Whether every launch has ended."""
    left: tuple[ActorState, ...]
    """The jobs that have not ended, and what runs inside of them."""
    executions: tuple[int, ...]
    """Their numbers."""


class Runtime(Requester):
    """Launches jobs on one store, and does what operators ask; see `open_runtime`."""

    def __init__(
        self,
        nursery: trio.Nursery,
        pool: StoragePool,
        settings: LaunchSettings,
        poll: float,
    ) -> None:
        super().__init__(pool.control, settings.owner_id, settings.new_id)
        self._pool = pool
        self._closing = settings.closing
        self._poll = poll
        self._launches = Launches(nursery, pool, settings, poll)
        self._serving: set[Serving] = set()
        self._served = trio.Event()
        """Set whenever a serving has ended."""
        self._held: set[int] = set()
        self._claiming = trio.Lock()

    async def launch(
        self,
        job: Job | CompiledJob,
        parameters: Mapping[str, object] | None = None,
        /,
        *,
        anew: bool = False,
        continue_run: int | None = None,
        wait: bool = True,
        **named: object,
    ) -> LaunchReport:
        """Run a job to its end, continuing an earlier attempt if there was one.

        Args:
            job: The definition; compile it once with `compile_job` when it is
                launched often.
            parameters: Launch parameters; also the way to give those that are called
                ``anew``, ``continue_run`` or ``wait``.
            anew: Make a new instance by the next run number instead of continuing.
            continue_run: Continue the run of that number, which was launched anew.
            wait: Whether to wait for the lease of an earlier owner that may be dead.
            named: More launch parameters.

        Returns:
            The report, also of a job that failed or was stopped.

        Raises:
            DefinitionError: The definition has mistakes; all are listed.
            InvalidParameter: A parameter is unknown, missing, given twice or of the
                wrong type.
            InvalidValue: An argument is of the wrong type.
            InstanceComplete: The job has completed with these parameters.
            NotRestartable: An earlier attempt did not complete, and the job may be
                attempted only once.
            RunUnknown: There is no run of that number with these parameters.
            AlreadyRunning: Somebody who lives works on this instance.
            IncompatibleDefinition: The definition has changed since the attempt that
                would be continued.
            OutcomeUnresolved: An earlier attempt ended UNKNOWN.
            ShuttingDown: `stop` was called.
            AssemblyError: A factory of the job's raised, or made something else.
            ComponentsInUse: Another launch of this runtime that has not ended uses the
                same reader or writer objects.
            LeaseExpired: The lease could not be renewed for its whole length, so the
                job was cancelled before somebody else may take it over.
            RuntimeLeft: The block of `open_runtime` was left, by an error or a
                cancellation that did not reach this task, while the job ran.
            StoreError: The store failed; the class says what became of the job.

        Cancellation: The running step is cancelled, the execution is recorded as
            STOPPED, and `trio.Cancelled` goes on; the next launch continues.
        """
        if self._closing.is_set():
            raise ShuttingDown
        given = merged({} if parameters is None else parameters, named)
        return await self._launches.run(
            launch_of(compiled(job), given, anew=anew, run=continue_run, wait=wait)
        )

    async def restart(
        self,
        execution_id: int,
        job: Job | CompiledJob,
        overrides: Mapping[str, object] | None = None,
        /,
        *,
        wait: bool = True,
        **named: object,
    ) -> LaunchReport:
        """Run a job again with the parameters of one of its executions.

        Args:
            execution_id: Of the execution.
            job: Its definition.
            overrides: Values for parameters that are not identifying, and for secret
                ones, which have to be given again.
            wait: As for `launch`.
            named: More of them.

        Returns:
            The report; its `reused` names the parameters that were not given again.

        Raises:
            ExecutionNotFound: It is not in this store.
            InvalidValue: It is one of another job.
            OtherInstance: The parameters lead to another instance.
            TrioletError: Whatever `launch` raises.
        """
        known = compiled(job)
        detail = await self.show(execution_id)
        again = restart_of(detail, known, merged(overrides or {}, named))
        report = await self.launch(
            known, again.parameters, continue_run=again.run, wait=wait
        )
        return evolve(report, reused=again.reused)

    async def serve(
        self,
        jobs: Iterable[Job | CompiledJob | Callable[[], Job | CompiledJob]],
        *,
        max_running: int = MAX_RUNNING,
        until_idle: bool = False,
        ended: Callable[[ServedRequest], object] | None = None,
    ) -> None:
        """Launch what is requested, until this runtime is stopped or this is cancelled.

        Any number of processes may serve the same jobs on one store: each request is
        claimed by one of them, and by another one when its claimer died. A job that
        runs when the serving ends is stopped, and its request is given back.

        Args:
            jobs: Definitions, or functions that make one anew for each launch. A
                definition that holds readers or writers runs once at a time; jobs that
                functions make run side by side.
            max_running: How many jobs may run at the same time, 1 to 1,000.
            until_idle: Return when nothing is requested and nothing runs any more.
            ended: Called with each request that was worked on; must return at once.

        Raises:
            DefinitionError: A definition has mistakes; all are listed.
            InvalidValue: An argument is out of its bounds, or two jobs have one name.
            StoreError: The store cannot be used in this way. While it is merely
                unavailable, serving goes on.
        """
        serving = Serving(
            store=self._store,
            owner_id=self._owner_id,
            jobs=served_jobs(jobs),
            run_launch=self._launches.run,
            closing=self._closing,
            poll=self._poll,
            held=self._held,
            claiming=self._claiming,
            max_running=max_running,
            until_idle=until_idle,
            ended=ended,
        )
        self._serving.add(serving)
        try:
            await serving.run()
        finally:
            self._serving.discard(serving)
            self._served.set()

    @property
    def _heard(self) -> dict[str, Callable[[], None]]:
        """What is to be called when the store says something, by channel."""
        return {STOP_CHANNEL: self._launches.stops.wake, LAUNCH_CHANNEL: self.requested}

    def requested(self) -> None:
        """Look for launch requests at once."""
        for serving in self._serving:
            serving.wake()

    def stop(self, execution_id: int | None = None) -> None:
        """Ask running jobs of this runtime to stop; their launches will report STOPPED.

        Args:
            execution_id: Only this one; one that does not run here is left alone.
                None: all, and no more launches are taken.
        """
        if execution_id is None:
            self._closing.set()
            self.requested()
        self._launches.stop(execution_id)

    async def shutdown(self, deadline: float = SHUTDOWN_SECS) -> ShutdownReport:
        """Take no more launches, stop those that run, and wait for their ends.

        What has not ended by the deadline goes on; leaving the runtime waits for it,
        and cancelling the scope around the launches cancels it.

        Args:
            deadline: Seconds for all of it, at least 0.

        Returns:
            What has not come to its end by then.
        """
        check_type(deadline, (int, float), "the deadline of a shutdown")
        self.stop()
        with trio.move_on_after(max(deadline, 0)):
            await self._launches.wait_for_ends()
        return ShutdownReport(
            drained=self._launches.have_ended,
            left=self._launches.inspect(),
            executions=self.running,
        )

    async def _leave(self) -> None:
        """Wait for what tasks outside of the runtime's block still do with it.

        Cancellation: It is cancelled, too, and writes its last word.
        """
        try:
            await self._launches.wait_for_ends()
            await self._end_serving()
        except trio.Cancelled:
            await self._abandon()
            raise

    async def _abandon(self) -> None:
        """Cancel what still runs: nobody is going to renew its lease."""
        self._closing.set()
        await self._launches.cancel()
        with trio.CancelScope(shield=True):
            await self._end_serving()

    async def _end_serving(self) -> None:
        while self._serving:
            self._closing.set()
            self.requested()
            self._served = trio.Event()
            await self._served.wait()

    def inspect(self) -> ActorState:
        """Show the tree of actors as it is now: what runs, and what waits for whom."""
        closing = self._closing.is_set()
        return ActorState(
            kind=ActorKind.RUNTIME,
            name=f"owner {self._owner_id}",
            activity=Activity.STOPPING if closing else Activity.RUNNING,
            children=(
                *self._pool.inspect(),
                *(one.inspect() for one in self._serving),
                *self._launches.inspect(),
            ),
        )

    @property
    def running(self) -> tuple[int, ...]:
        """Executions that run here now."""
        return self._launches.running
