"""Serving: launching what is requested, as one of any number of processes.

What became of a request is never guessed: the transaction that begins an execution
notes it in the request, so whoever claims the request after a crash continues exactly
that execution, or finds that it has ended.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

import trio
from attrs import define, field, frozen

from ...storage.commands import (
    AlreadyRunning,
    InstanceComplete,
    LeaseLost,
    ListOperations,
    ShowExecution,
)
from ...storage.commands.requesting import (
    ClaimLaunches,
    EndLaunch,
    FindLaunches,
    LaunchLost,
)
from ...storage.model.bounds import check_whole
from ...storage.model.errors import (
    CommitOutcomeUnknown,
    StoreError,
    StoreUnavailable,
    TrioletError,
)
from ...storage.model.execution import JobExecution
from ...storage.model.launch_request import (
    LaunchRefusal,
    LaunchRequest,
    RequestStatus,
)
from ...storage.model.status import BatchStatus, FailureCategory
from ..kernel.inspecting import Activity, ActorKind, ActorState
from ..kernel.liveness import is_alive
from ..kernel.stop import StopToken
from ..kernel.storage_actor import StorageActor
from .launch import (
    ComponentsInUse,
    Launch,
    LeaseExpired,
    ShuttingDown,
    launch_of,
)
from .report import LaunchReport
from .served_jobs import ServedJob
from .unheeded_stops import close_stopped

log = logging.getLogger("triolet.serving")

MAX_RUNNING = 4
MAX_RUNNING_MAX = 1000
MESSAGE_CHARS_MAX = 1024


@frozen(kw_only=True)
class ServedRequest:
    """What came of a request that this process worked on."""

    request: LaunchRequest
    """As it was claimed."""
    status: RequestStatus
    """REQUESTED when it was given back."""
    report: LaunchReport | None = None
    """Of the job, when it ran here."""
    refusal: LaunchRefusal | None = None


@define(eq=False, kw_only=True)
class Serving:
    """An actor that claims requests, launches their jobs, and says what came of them.

    It is woken by messages that say only "look": what there is to do stands in the
    store.
    """

    store: StorageActor
    owner_id: int
    jobs: Mapping[str, ServedJob]
    run_launch: Callable[[Launch], Awaitable[LaunchReport]]
    closing: StopToken
    poll: float
    """Seconds between two looks when nobody wakes it."""
    held: set[int]
    """Requests that this runtime works on; changed under *claiming*."""
    claiming: trio.Lock
    """Of all who serve on this runtime: a claim knows what the others hold."""
    max_running: int
    until_idle: bool
    ended: Callable[[ServedRequest], object] | None
    _running: list[str] = field(factory=list)
    """The job of each launch that is under way."""
    _woken: trio.Event = field(factory=trio.Event)

    def __attrs_post_init__(self) -> None:
        check_whole("max_running", self.max_running, 1, MAX_RUNNING_MAX)

    def inspect(self) -> ActorState:
        """Show the actor as it is now."""
        return ActorState(
            kind=ActorKind.SERVING,
            name=", ".join(sorted(self.jobs)),
            activity=Activity.RUNNING if self._running else Activity.IDLE,
        )

    def wake(self) -> None:
        """Look at once instead of at the end of the period."""
        self._woken.set()

    async def run(self) -> None:
        """Serve until the runtime closes, or until nothing is left to do."""
        async with trio.open_nursery() as nursery:
            while not self.closing.is_set():
                self._woken = trio.Event()
                async with self.claiming:
                    more = await self._claim(nursery)
                if more:
                    continue
                if self.until_idle and not self._running:
                    break
                with trio.move_on_after(self.poll):
                    await self._woken.wait()

    async def _claim(self, nursery: trio.Nursery) -> bool:
        """Claim what fits; tell whether there may be more at once."""
        free = self.max_running - len(self._running)
        jobs = tuple(
            name
            for name, job in self.jobs.items()
            if not job.alone or name not in self._running
        )
        if free <= 0 or not jobs:
            return False
        limit = 1 if any(self.jobs[name].alone for name in jobs) else free
        held = tuple(sorted(self.held))
        try:
            found = await self.store.ask(
                FindLaunches(owner_id=self.owner_id, jobs=jobs, held=held)
            )
            dead = tuple(
                one.owner_id for one in found.holders if is_alive(one.facts) is False
            )
            if not found.waiting and not dead:
                return False
            claimed = await self.store.ask(
                ClaimLaunches(
                    owner_id=self.owner_id,
                    jobs=jobs,
                    limit=limit,
                    held=held,
                    dead_owners=dead,
                )
            )
        except (StoreUnavailable, CommitOutcomeUnknown) as exc:
            # What was claimed without our knowing it, is claimed again.
            log.warning("launch requests could not be looked for: %s", exc)
            return False
        for request in claimed.requests:
            self.held.add(request.id)
            self._running.append(request.job)
            nursery.start_soon(self._work, request)
        return bool(claimed.requests)

    async def _work(self, request: LaunchRequest) -> None:
        served = ServedRequest(request=request, status=RequestStatus.REQUESTED)
        try:
            served = await self._served(request)
        except (StoreUnavailable, CommitOutcomeUnknown, LeaseExpired) as exc:
            log.warning("launch request %d was interrupted: %s", request.id, exc)
        finally:
            # An ask is carried out also while this is being cancelled.
            await self._end(served)
            self.held.discard(request.id)
            self._running.remove(request.job)
            self.wake()

    async def _end(self, served: ServedRequest) -> None:
        request_id = served.request.id
        command = EndLaunch(
            request_id=request_id,
            owner_id=self.owner_id,
            status=served.status,
            refusal=served.refusal,
        )
        try:
            await self.store.ask(command)
        except LaunchLost as exc:
            log.warning("%s", exc)
        except StoreError as exc:
            log.warning("launch request %d could not be ended: %s", request_id, exc)
        else:
            if self.ended is not None:
                self.ended(served)

    async def _served(self, request: LaunchRequest) -> ServedRequest:
        done = ServedRequest(request=request, status=RequestStatus.DONE)
        back = ServedRequest(request=request, status=RequestStatus.REQUESTED)
        run = None
        if request.execution_id is not None:
            begun = await self.store.ask(ShowExecution(request.execution_id))
            run = begun.instance.run
            if _is_over(begun.execution):
                return done
            if await self._was_stopped(begun.execution.id):
                if not begun.execution.status.active or await close_stopped(
                    self.store, self.owner_id, begun.execution.id, request.id
                ):
                    return done
                await self._pause()
                return back
        try:
            launch = launch_of(
                self.jobs[request.job].make(),
                {one.name: one.value for one in request.parameters},
                anew=request.anew and run is None,
                run=run,
                request_id=request.id,
            )
            report = await self.run_launch(launch)
        except ShuttingDown:
            return back
        except InstanceComplete as exc:
            # Somebody else has continued and completed what this request began.
            return done if request.execution_id is not None else _refused(request, exc)
        except StoreError:
            raise
        except (AlreadyRunning, ComponentsInUse) as exc:
            # It will not be for ever: somebody asks again when the period has passed.
            log.info("launch request %d has to wait: %s", request.id, exc)
            await self._pause()
            return back
        except (LaunchLost, LeaseLost) as exc:
            # Somebody else has taken it over: the next look finds what came of it.
            log.warning("%s", exc)
            return back
        except TrioletError as exc:
            return back if self.closing.is_set() else _refused(request, exc)
        stopped = report.status is BatchStatus.STOPPED and self.closing.is_set()
        if stopped and not await self._was_stopped(report.execution_id):
            return ServedRequest(
                request=request, status=RequestStatus.REQUESTED, report=report
            )
        return ServedRequest(request=request, status=RequestStatus.DONE, report=report)

    async def _pause(self) -> None:
        """Wait until it is worth while to look again."""
        with trio.move_on_after(self.poll):
            await self.closing.wait()

    async def _was_stopped(self, execution_id: int) -> bool:
        """Tell whether an operator asked for the stop: then it is not continued."""
        history = await self.store.ask(ListOperations(execution_id))
        return history.stop is not None


def _refused(request: LaunchRequest, exc: TrioletError) -> ServedRequest:
    refusal = LaunchRefusal(exc.code, str(exc)[:MESSAGE_CHARS_MAX])
    return ServedRequest(request=request, status=RequestStatus.REFUSED, refusal=refusal)


def _is_over(execution: JobExecution) -> bool:
    """Tell whether a launch has ended by itself, not with the process that ran it."""
    failure = execution.failure
    died = failure is not None and failure.category is FailureCategory.STALE_RECOVERED
    match execution.status:
        case BatchStatus.COMPLETED | BatchStatus.ABANDONED:
            return True
        case BatchStatus.FAILED:
            return not died
        case _:
            return False
