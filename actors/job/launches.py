"""The launches of one runtime that are under way, from what they claim to their ends."""

import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import trio
from attrs import evolve

from ...storage.commands import Advance, LeaseLost
from ...storage.model.errors import StoreError, TrioletError
from ..kernel.inspecting import ActorState
from ..kernel.pool import StoragePool
from ..kernel.stop_watch import StopWatch
from ..plan.compile import CompiledJob
from .launch import (
    ComponentsInUse,
    Launch,
    LaunchSettings,
    LeaseExpired,
    RuntimeLeft,
    ShuttingDown,
    open_execution,
)
from .nested import Child, ChildLaunch
from .nesting import RunningChild
from .report import LaunchReport
from .running import RunningJob

log = logging.getLogger("triolet.job")


class Launches:
    """Runs launches, and keeps book of them: what they use, and which executions run.

    Args:
        nursery: Outlives all launches.
        pool: Of the runtime.
        settings: Of the runtime; their token of closing is read, never set.
        poll: Seconds between two looks for stops that operators ask for.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        pool: StoragePool,
        settings: LaunchSettings,
        poll: float,
    ) -> None:
        self._nursery = nursery
        self._pool = pool
        self._settings = evolve(
            settings, is_running=self._is_running, open_child=self._open_child
        )
        self.stops = StopWatch(
            pool.control, settings.owner_id, poll, self._untold, self.stop
        )
        """Sees the stops that operators ask for."""
        nursery.start_soon(self.stops.run)
        self._running: dict[int, RunningJob] = {}
        self._claims: set[int] = set()
        self._launching: Counter[tuple[str, bytes]] = Counter()
        self._ended = trio.Event()
        """Set whenever a launch has ended."""
        self._left = False
        self._lost: dict[int, LeaseLost] = {}
        """Of executions that somebody else has taken over, what the store said."""

    async def run(self, launch: Launch) -> LaunchReport:
        """Begin an attempt and go through the job to its end.

        Raises:
            ShuttingDown: No more launches are taken.
            ComponentsInUse: Another launch uses the same reader or writer objects.
            LeaseExpired: The lease ran out, because it could not be renewed.
            LeaseLost: Somebody else has taken it over.
            RuntimeLeft: The runtime was left in a hurry.
            TrioletError: Whatever `open_execution` and `JobExecution.run` raise.
        """
        if self._settings.closing.is_set():
            raise ShuttingDown
        with self._claimed(launch.job), self._under_way(launch):
            settings = evolve(self._settings, store=self._pool.take())
            job = RunningJob(await open_execution(settings, launch))
            with self._settings.watch.job(), self._listening(job), job.authority:
                return await job.execution.run()
            raise self._why_cancelled(job.execution.execution_id)

    async def _open_child(self, child: ChildLaunch) -> Child:
        launch = Launch(
            job=child.job, parameters=child.parameters, wait=False, above=child.stop
        )
        settings = evolve(self._settings, store=child.store)
        job = RunningJob(await open_execution(settings, launch))
        return RunningChild(job, self._listening)

    @contextmanager
    def _claimed(self, job: CompiledJob) -> Iterator[None]:
        """Keep the job's readers and writers from a second launch at the same time."""
        claimed = {id(component) for component in job.components}
        if not self._claims.isdisjoint(claimed):
            raise ComponentsInUse(job.plan.job)
        self._claims |= claimed
        try:
            yield
        finally:
            self._claims -= claimed

    @contextmanager
    def _under_way(self, launch: Launch) -> Iterator[None]:
        self._launching[launch.instance] += 1
        try:
            yield
        finally:
            self._launching[launch.instance] -= 1
            if not self._launching[launch.instance]:
                del self._launching[launch.instance]
            self._ended.set()

    def _is_running(self, execution_id: int, launch: Launch) -> bool:
        here = self._launching[launch.instance] > 1
        return here or execution_id in self._running

    @contextmanager
    def _listening(self, job: RunningJob) -> Iterator[None]:
        scope = trio.CancelScope()
        execution_id = job.execution.execution_id
        self._running[execution_id] = job
        self.stops.job_began()
        self._nursery.start_soon(job.listen, scope)
        if self._settings.closing.is_set():
            job.stop()
        try:
            yield
        finally:
            del self._running[execution_id]
            scope.cancel()

    def stop(self, execution_id: int | None = None) -> None:
        """Ask what runs to stop; None: all, else only that execution if it runs here."""
        for known, job in self._running.items():
            if execution_id in (None, known):
                job.stop()

    def fence(self) -> None:
        """Cancel what runs, because the lease has run out: somebody may take it over.

        What is open is closed as STOPPED, if the store answers and nobody has done so.
        """
        for job in self._running.values():
            job.authority.cancel()

    def check_owner(self) -> None:
        """Look whether what runs is still ours, and cancel what somebody took over."""
        for execution_id, job in self._running.items():
            if not job.execution.is_child:
                self._nursery.start_soon(self._check_owner, execution_id, job)

    async def _check_owner(self, execution_id: int, job: RunningJob) -> None:
        nothing = Advance(execution_id=execution_id, owner_id=self._settings.owner_id)
        try:
            await self._pool.control.ask(nothing)
        except LeaseLost as lost:
            if execution_id in self._running:
                self._lost[execution_id] = lost
                job.authority.cancel()
        except StoreError as exc:
            log.warning("execution %d may be somebody else's: %s", execution_id, exc)

    def _why_cancelled(self, execution_id: int) -> TrioletError:
        lost = self._lost.pop(execution_id, None)
        if lost is not None:
            return lost
        return (RuntimeLeft if self._left else LeaseExpired)(execution_id)

    async def cancel(self) -> None:
        """Cancel what runs, and wait until its last word is written."""
        self._left = True
        self.fence()
        with trio.CancelScope(shield=True):
            await self.wait_for_ends()

    def _untold(self) -> Collection[int]:
        """Give the executions that run here and have not been told to stop."""
        running = self._running.items()
        return [
            known for known, job in running if not job.execution.stop_token.is_set()
        ]

    @property
    def have_ended(self) -> bool:
        """Whether no launch is under way."""
        return not self._launching

    async def wait_for_ends(self) -> None:
        """Wait until no launch is under way."""
        while self._launching:
            self._ended = trio.Event()
            await self._ended.wait()

    @property
    def running(self) -> tuple[int, ...]:
        """The executions that run now, children too."""
        return tuple(self._running)

    def inspect(self) -> tuple[ActorState, ...]:
        """Show the jobs as they are now; children are inside of their parents."""
        return tuple(
            job.inspect()
            for job in self._running.values()
            if not job.execution.is_child
        )
