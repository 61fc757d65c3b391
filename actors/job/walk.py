"""What every actor that runs steps does: it performs the actions of its engine.

It owns one engine. It looks for cancellation in two places only: inside user code, and
between a reply and the next step's code. On its way out it asks the engine for the last
command, so that the store never says that nobody works on it.
"""

from contextlib import AbstractContextManager
from functools import partial

import trio
from attrs import frozen

from ...storage.commands import LeaseLost
from ...storage.model.errors import (
    CommitOutcomeUnknown,
    InternalError,
    StoreError,
    StoreUnavailable,
)
from ...storage.model.execution import Failure
from ...storage.model.status import BatchStatus, FailureCategory
from ..kernel.asyncio_calls import SharedAsyncio
from ..kernel.inspecting import Activity, ActorKind, ActorState
from ..kernel.mailbox import Inbox
from ..kernel.stop import StopToken
from ..plan.actions import (
    Action,
    Commit,
    Conclude,
    Ended,
    Finished,
    OpenStep,
    RunStep,
)
from ..plan.compile import CompiledJob
from ..plan.definition import Step
from ..plan.stepping import Stepping
from . import logs
from .boundary import ComponentFailed, Where
from .child import ChildRun
from .committing import Commits
from .context import Partition
from .events import Event, EventKind
from .loop_watch import blocked
from .preparing import prepared
from .progress import Progress
from .step import Environment, StepRun, failed, still_running
from .timing import NO_LIMIT, deadline_of, time_limit

_ENDS = (Finished, Ended, Conclude)


@frozen
class Stop:
    """Tells an actor to come to an end."""


class Walk:
    """Performs what an engine asks for, one action after the other.

    Args:
        job: The compiled job.
        engine: Knows what comes next.
        environment: Store, boundary and context that the steps run in.
    """

    def __init__(
        self, job: CompiledJob, engine: Stepping, environment: Environment
    ) -> None:
        self._job = job
        self._engine = engine
        self._environment = environment
        self._running: StepRun | None = None
        self._commits = Commits(engine, environment)
        self._scope = trio.CancelScope()
        self._spent = False
        """Whether that scope was used to bring something to its end."""
        self._asyncio = SharedAsyncio(environment.nursery)
        self._progress = Progress(self._tell)

    @property
    def stop_token(self) -> StopToken:
        """Keeps further code from beginning, once it is set."""
        return self._environment.context.stop

    def inspect(self, kind: ActorKind, name: str, waiting: int) -> ActorState:
        """Show the actor as it is now."""
        stopping = self.stop_token.is_set()
        return ActorState(
            kind=kind,
            name=name,
            activity=Activity.STOPPING if stopping else Activity.RUNNING,
            waiting=waiting,
            children=self._inside(),
        )

    def _inside(self) -> tuple[ActorState, ...]:
        """Show what runs inside of this actor."""
        running = self._running
        if running is None:
            return ()
        stopping = running.scope.cancel_called
        activity = Activity.STOPPING if stopping else Activity.RUNNING
        name = running.step.id
        children = running.work.inside() if isinstance(running.work, ChildRun) else ()
        return (
            ActorState(
                kind=ActorKind.STEP, name=name, activity=activity, children=children
            ),
        )

    async def listen(self, inbox: Inbox[Stop]) -> None:
        """Take in a stop, and tell when the step does not heed it.

        A second stop would say nothing new.
        """
        await inbox.receive()
        await self.take_in_stop()

    async def take_in_stop(self) -> None:
        """Come to an end; see `listen`."""
        self.stop_token.set()
        self._engine.stop()
        await self._bring_to_end()

    async def _bring_to_end(self) -> None:
        """Stop whatever runs now."""
        running = self._running
        if running is not None:
            running.stop()
            await self._outlast(running)

    async def _outlast(self, running: StepRun) -> None:
        """Tell when a step goes on that has been brought to its end."""
        await running.outlast_stop()
        if self._running is running:
            self._tell(still_running(running.step.id, running.step.work))

    async def _walk(self) -> Finished | Ended:
        """Go to the end.

        Raises:
            StoreError: The store failed; what is open is closed as FAILED if it answers
                again.
            LeaseLost: Somebody else has taken the execution over.
            trio.Cancelled: The scope around was cancelled; the store says STOPPED.
        """
        try:
            with self._asyncio.offered():
                try:
                    return await self._to_the_end()
                finally:
                    await self._asyncio.close()
        except (trio.Cancelled, KeyboardInterrupt):
            await self._commits.last_word(BatchStatus.STOPPED, None)
            raise
        except CommitOutcomeUnknown as exc:
            failure = self._escaped(exc, exc.code, FailureCategory.UNKNOWN_COMMIT)
            await self._commits.last_word(BatchStatus.UNKNOWN, failure)
            raise
        except StoreError as exc:
            category = (
                FailureCategory.TRANSIENT_INFRASTRUCTURE
                if isinstance(exc, StoreUnavailable)
                else FailureCategory.PERMANENT_INFRASTRUCTURE
            )
            failure = self._escaped(exc, exc.code, category)
            await self._commits.last_word(BatchStatus.FAILED, failure)
            raise
        except LeaseLost:
            raise
        except BaseException as exc:
            failure = self._escaped(exc, "escaped", FailureCategory.INVARIANT)
            await self._commits.last_word(BatchStatus.FAILED, failure)
            raise

    def _escaped(
        self, exc: BaseException, code: str, category: FailureCategory
    ) -> Failure:
        where = Where(self._job.plan.job, code, category)
        return self._environment.boundary.failure(where, exc)

    async def _to_the_end(self) -> Finished | Ended:
        self._heed()
        end = await self._follow(self._engine.begin())
        assert not isinstance(end, Conclude)
        return end

    async def _follow(self, action: Action) -> Finished | Ended | Conclude:
        """Perform one action after the other, until nothing of the nodes is left."""
        while True:
            # One scope serves step after step, until one of them is brought to its end.
            self._spent = False
            with trio.CancelScope() as self._scope:
                while not self._spent:
                    if isinstance(action, Commit):
                        action = await self._commits.carry_out(action.command)
                    elif isinstance(action, RunStep):
                        await trio.lowlevel.checkpoint_if_cancelled()
                        action = await self._run_step(action.step)
                    elif isinstance(action, _ENDS):
                        return action
                    else:
                        action = await self._perform(action)
                    if self._asyncio.is_open:
                        await self._asyncio.close()
                continue
            action = await self._interrupted()
            await self._asyncio.close()

    async def _interrupted(self) -> Action:
        """Go on after a stop has cancelled what ran."""
        running, self._running = self._running, None
        assert running is not None, "a stop cancelled nothing"
        with self._watched(running.step.id, running.row.step_id):
            result = await running.interrupted()
        return self._engine.stepped(result)

    def _heed(self) -> None:
        """Let the engine know of a stop whose message has not been read yet."""
        if self.stop_token.is_set():
            self._engine.stop()

    async def _perform(self, action: Action) -> Action:
        """Do what only some engines ask for."""
        raise InternalError(f"nobody performs {type(action).__name__} here")

    async def _run_step(self, row: OpenStep) -> Action:
        try:
            step = await self._step_of(row)
        except ComponentFailed as exc:
            return self._engine.stepped(failed(exc.failure))
        running = prepared(
            step,
            row,
            self._partition_of(),
            self._environment,
            self._scope,
            self._progress.report,
        )
        if self._environment.announcer.active:
            self._tell(
                Event(
                    kind=EventKind.STEP_STARTED,
                    node=step.id,
                    visit=row.visit,
                    step_id=row.step_id,
                    counts=row.counts,
                )
            )
        self._running, self._commits.step = running, step
        within = logs.step_id.set(row.step_id)
        try:
            with self._limited(running), self._watched(step.id, row.step_id):
                result = await running.run()
        finally:
            logs.step_id.reset(within)
            self._spent = running.stopping
        self._running = None
        self._heed()
        return self._engine.stepped(result)

    def _limited(self, running: StepRun) -> AbstractContextManager[None]:
        """Run a step in it, to bring it to its end when its time is over."""
        timeout = running.step.timeout
        if timeout is None:
            return NO_LIMIT
        return time_limit(
            self._environment.nursery,
            deadline_of(timeout, trio.current_time(), running.row.spent),
            running.expire,
            partial(self._outlast, running),
        )

    def _watched(
        self, node: str, step_id: int | None = None
    ) -> AbstractContextManager[None]:
        """Run a node's code in it, to tell when that blocks the event loop."""
        return self._environment.watch.code(partial(self._blocked, node, step_id))

    def _blocked(self, node: str, step_id: int | None, seconds: float) -> None:
        self._tell(blocked(node, step_id, seconds))

    async def _step_of(self, row: OpenStep) -> Step:
        """Give the user's code for a row.

        Raises:
            ComponentFailed: It could not be made.
        """
        return self._job.steps[row.node.id]

    def _partition_of(self) -> Partition | None:
        """Give the partition that this actor works on, if it does."""
        return None

    def _tell(self, event: Event) -> None:
        self._environment.announcer.tell(event)
