"""The job execution actor: performs what the traversal engine asks for.

It owns one engine, one attempt. It looks for cancellation in two places only: inside
user code, and between a reply and the next step's code. On its way out it asks the
engine for the last command, so that the store never says that nobody works on it.
"""

import logging
from functools import partial
from threading import get_ident

import trio
from attrs import evolve, frozen

from ...storage.commands import (
    Advance,
    Advanced,
    LeaseLost,
    Opened,
    StaleVersion,
    WriteFailed,
)
from ...storage.model.errors import (
    CommitOutcomeUnknown,
    InternalError,
    InvalidName,
    Rejection,
    StoreError,
    StoreUnavailable,
)
from ...storage.model.execution import Failure
from ...storage.model.parameters import ParameterSet
from ...storage.model.status import BatchStatus, FailureCategory
from ..kernel.mailbox import Inbox
from ..kernel.stop import StopToken
from ..plan.actions import (
    Action,
    Commit,
    Decide,
    Finished,
    OpenStep,
    RunStep,
    StepResult,
)
from ..plan.compile import CompiledJob
from ..plan.definition import Chunk, Decision, Exit
from ..plan.traversal import Traversal
from . import logs
from .boundary import ComponentFailed, OutcomeUnknown, Where
from .chunk import ChunkRun
from .context import DeciderContext, Observation, StepContext, payload_of
from .events import Event, EventKind
from .narration import narrate
from .report import LaunchReport
from .step import (
    HEEDING_SECS,
    Environment,
    StepRun,
    TaskletRun,
    Work,
    failed,
    state_for,
    still_running,
    unknown,
)

log = logging.getLogger("triolet.job")


@frozen
class Stop:
    """Tells a job execution to come to an end."""

    reason: str = "requested"


class JobExecution:
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
        self._job = job
        self._opened = opened
        self._engine = engine
        self._environment = environment
        self._parameters = parameters
        self._running: StepRun | None = None
        self._deciding: Decision | None = None
        self._scope = trio.CancelScope()
        self._loop = get_ident()
        self._trio = trio.lowlevel.current_trio_token()

    @property
    def execution_id(self) -> int:
        """Of the attempt."""
        return self._opened.execution_id

    @property
    def stop_token(self) -> StopToken:
        """Keeps further code from beginning, once it is set."""
        return self._environment.context.stop

    async def listen(self, inbox: Inbox[Stop]) -> None:
        """Take in a stop, and tell when the step does not heed it.

        A second stop would say nothing new.
        """
        await inbox.receive()
        self.stop_token.set()
        self._engine.stop()
        self._tell(Event(kind=EventKind.STOP_REQUESTED))
        running, decision = self._running, self._deciding
        if running is not None:
            running.stop()
            await running.outlast_stop()
            if self._running is running:
                self._tell(still_running(running.step.id, running.step.work))
        elif decision is not None:
            self._scope.cancel()
            await trio.sleep(HEEDING_SECS)
            if self._deciding is decision:
                self._tell(still_running(decision.id, decision.decider))

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
            end = await self._traverse()
        except (trio.Cancelled, KeyboardInterrupt):
            await self._last_word(BatchStatus.STOPPED, None)
            raise
        except CommitOutcomeUnknown as exc:
            where = Where(self._job.plan.job, exc.code, FailureCategory.UNKNOWN_COMMIT)
            failure = self._environment.boundary.failure(where, exc)
            await self._last_word(BatchStatus.UNKNOWN, failure)
            raise
        except StoreError as exc:
            await self._last_word(BatchStatus.FAILED, self._infrastructure(exc))
            raise
        except LeaseLost:
            raise
        except BaseException as exc:
            where = Where(self._job.plan.job, "escaped", FailureCategory.INVARIANT)
            failure = self._environment.boundary.failure(where, exc)
            await self._last_word(BatchStatus.FAILED, failure)
            raise
        finally:
            logs.execution_id.reset(within)
        self._tell(
            Event(kind=EventKind.JOB_ENDED, status=end.status, counts=end.counts)
        )
        return self._report(end)

    async def _traverse(self) -> Finished:
        self._heed()
        action = self._engine.begin()
        while True:
            # One scope serves step after step: only a stop cancels it, and what it does.
            with trio.CancelScope() as self._scope:
                while not isinstance(action, Finished):
                    action = await self._perform(action)
                return action
            running, self._running = self._running, None
            if running is None:
                action = self._engine.undecided()
            else:
                action = self._engine.stepped(await running.interrupted())

    def _heed(self) -> None:
        """Let the engine know of a stop whose message has not been read yet."""
        if self.stop_token.is_set():
            self._engine.stop()

    async def _perform(self, action: Action) -> Action:
        match action:
            case Commit(command):
                return await self._commit(command)
            case RunStep(row):
                await trio.lowlevel.checkpoint_if_cancelled()
                return await self._run_step(row)
            case Decide():
                await trio.lowlevel.checkpoint_if_cancelled()
                return await self._decide(action)
            case Finished():
                raise InternalError("a finished job was to go on")

    async def _commit(self, command: Advance) -> Action:
        try:
            reply = await self._environment.store.ask(command)
        except WriteFailed as exc:
            return self._engine.unwritten(self._unwritten(command, exc))
        except StaleVersion:
            if (
                command.finish is None
                or command.finish.status is not BatchStatus.UNKNOWN
            ):
                raise
            # The chunk of unknown outcome is durable after all: its row has moved on.
            reply = await self._environment.store.ask(evolve(command, finish=None))
        self._narrate(command, reply)
        return self._engine.committed(reply)

    def _narrate(self, command: Advance, reply: Advanced) -> None:
        if self._environment.announcer.active:
            for event in narrate(command, reply, self._engine.steps):
                self._tell(event)

    def _unwritten(self, command: Advance, exc: WriteFailed) -> StepResult:
        assert command.finish is not None
        step_id = command.finish.step_id
        (node,) = (one.node for one in self._engine.steps if one.step_id == step_id)
        where = Where(node, "write_failed")
        boundary = self._environment.boundary
        match boundary.failed(where, exc.cause):
            case ComponentFailed(failure=failure):
                return failed(failure)
            case OutcomeUnknown() as open_end:
                return unknown(boundary.failure(where, open_end))
            case other:
                raise other from exc

    async def _run_step(self, row: OpenStep) -> Action:
        step = self._job.steps[row.node.id]
        ctx = StepContext(
            execution=self._environment.context,
            node=step.id,
            step_id=row.step_id,
            step_attempt=row.attempt,
            state=state_for(row),
            progress=partial(self._progressed, row),
        )
        work: Work
        if isinstance(step.work, Chunk):
            work = ChunkRun(step, step.work, row, ctx, self._environment)
        else:
            work = TaskletRun(step, ctx, self._environment.boundary)
        if self._environment.announcer.active:
            self._tell(
                Event(
                    kind=EventKind.STEP_STARTED,
                    node=step.id,
                    step_id=row.step_id,
                    counts=row.counts,
                )
            )
        running = StepRun(step, row, work, ctx, self._environment, self._scope)
        self._running = running
        within = logs.step_id.set(row.step_id)
        try:
            result = await running.run()
        finally:
            logs.step_id.reset(within)
        self._running = None
        self._heed()
        return self._engine.stepped(result)

    async def _decide(self, action: Decide) -> Action:
        decision = self._job.decisions[action.node.id]
        where = Where(decision.id, "decider_failed")
        seen = action.preceding
        observation = None
        if seen is not None:
            observation = Observation(
                node=seen.node,
                step_id=seen.step_id,
                status=seen.status,
                exit_code=seen.exit_code,
                counts=seen.counts,
                state=payload_of(seen.context, seen.node),
            )
        ctx = DeciderContext(
            execution=self._environment.context,
            node=decision.id,
            preceding=observation,
        )
        self._deciding = decision
        try:
            code = await self._answer(decision, where, ctx)
        except ComponentFailed as exc:
            return self._engine.refused(exc.failure)
        except OutcomeUnknown as exc:
            return self._engine.refused(self._environment.boundary.failure(where, exc))
        finally:
            self._deciding = None
        self._heed()
        return self._engine.decided(action.node, code)

    async def _answer(
        self, decision: Decision, where: Where, ctx: DeciderContext
    ) -> str:
        boundary = self._environment.boundary
        returned = await boundary.call(where, decision.decider, ctx)
        if isinstance(returned, Exit):
            return returned.code
        if isinstance(returned, str):
            try:
                return Exit(returned).code
            except InvalidName as exc:
                raise boundary.failed(where, exc) from exc
        kind = type(returned).__name__
        raise boundary.refusal(
            where,
            f"decider {decision.id!r} returned a {kind}; return an exit code or Exit",
        )

    async def _last_word(self, status: BatchStatus, failure: Failure | None) -> None:
        """Close the execution on the way out, if the store still lets us."""
        command = self._engine.abort(status, failure)
        if command is None:
            return
        try:
            reply = await self._environment.store.ask(command)
        except (StoreError, Rejection) as exc:
            log.warning(
                "execution %d could not be closed: %s", self._opened.execution_id, exc
            )
        else:
            self._narrate(command, reply)
            self._tell(Event(kind=EventKind.JOB_ENDED, status=status))

    def _infrastructure(self, exc: StoreError) -> Failure:
        if isinstance(exc, StoreUnavailable):
            category = FailureCategory.TRANSIENT_INFRASTRUCTURE
        else:
            category = FailureCategory.PERMANENT_INFRASTRUCTURE
        where = Where(self._job.plan.job, exc.code, category)
        return self._environment.boundary.failure(where, exc)

    def _progressed(self, row: OpenStep, done: int, total: int | None) -> None:
        event = Event(
            kind=EventKind.STEP_PROGRESSED,
            node=row.node.id,
            step_id=row.step_id,
            counts=evolve(row.counts, read=done),
            fraction=min(done / total, 1.0) if total else None,
        )
        if get_ident() == self._loop:
            self._tell(event)
        else:
            self._trio.run_sync_soon(self._tell, event)

    def _tell(self, event: Event) -> None:
        self._environment.announcer.tell(event)

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
            parameters=self._parameters,
            run=opened.run,
            restart_of=opened.restart_of,
            took_over=opened.took_over,
        )
