"""Running one step: listeners, the work between them, and what a stop does to it."""

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Protocol

import trio
from attrs import define, evolve, field, frozen

from ...storage.commands import Advance, Cursor, EnlistedWrite
from ...storage.envelope import CONTEXT_FORMAT, STATE_SCHEMA, canonical_json, seal
from ...storage.model.errors import InvalidValue, with_article
from ...storage.model.execution import ExitCode, Failure
from ...storage.model.json import JsonObject
from ...storage.model.status import BatchStatus, FailureCategory
from ..kernel.storage_actor import StorageActor
from ..plan.actions import OpenStep, Overridden, StepResult
from ..plan.definition import Chunk, Exit, OnStop, Step, StepListener
from ..plan.job_steps import ChildJob
from .boundary import Boundary, ComponentFailed, OutcomeUnknown, Where, is_async
from .context import JobContext, StepContext, StepOutcome, payload_of
from .events import Announcer, Event, EventKind
from .loop_watch import LoopWatch
from .nested import OpenChild
from .timing import too_long

log = logging.getLogger("triolet.job")

HEEDING_SECS = 1.0
"""How long work that was cancelled may take to end before anybody is told."""


@frozen(kw_only=True)
class Environment:
    """What a step runs in."""

    store: StorageActor
    stores: tuple[StorageActor, ...]
    """All that work side by side, this one among them."""
    owner_id: int
    context: JobContext
    boundary: Boundary
    announcer: Announcer
    watch: LoopWatch
    nursery: trio.Nursery
    """Of the runtime."""
    open_child: OpenChild
    patience: float
    """Seconds for which reading may keep the event loop."""
    over: set[tuple[str, int]] = field(factory=set)
    """Steps, by node and visit, whose children nothing can continue any more."""


class Work(Protocol):
    """The work of a step: a tasklet or a chunk loop."""

    async def run(self) -> StepResult:
        """Work to the end; a stop may cancel it."""

    def stop(self, scope: trio.CancelScope) -> None:
        """Bring the work, which runs in *scope*, to an end by the rules of its kind."""


@define(eq=False)
class TaskletRun:
    """One call of a tasklet."""

    step: Step
    ctx: StepContext
    boundary: Boundary

    async def run(self) -> StepResult:
        """Call the tasklet once."""
        assert not isinstance(self.step.work, Chunk | ChildJob)
        where = Where(self.step.id, "tasklet_failed")
        before = canonical_json(self.ctx.state) if self.ctx.state else "{}"
        returned = await self.boundary.call(where, self.step.work, self.ctx)
        exit_code = self._exit_code(where, returned)
        context = self._sealed_state(before)
        if self.ctx.stop.is_set():
            return StepResult(
                status=BatchStatus.STOPPED, exit_code=ExitCode.STOPPED, context=context
            )
        return StepResult(
            status=BatchStatus.COMPLETED,
            exit_code=exit_code,
            context=context,
            write=self._write(),
        )

    def stop(self, scope: trio.CancelScope) -> None:
        """Cancel the tasklet now, or after its grace if it cooperates."""
        if self.step.on_stop is OnStop.CANCEL:
            scope.cancel()
        else:
            scope.deadline = trio.current_time() + self.step.grace

    def _exit_code(self, where: Where, returned: object) -> str:
        if returned is None:
            return ExitCode.COMPLETED
        if isinstance(returned, Exit):
            return returned.code
        kind = with_article(type(returned).__name__)
        raise self.boundary.refusal(
            where,
            f"step {self.step.id!r} returned {kind}; return None or Exit(code)",
        )

    def _sealed_state(self, before: str) -> str | None:
        if not self.ctx.state and before == "{}":
            return None
        what = f"the state of {self.step.id!r}"
        try:
            if canonical_json(self.ctx.state, what) == before:
                return None
            return seal(CONTEXT_FORMAT, STATE_SCHEMA, self.ctx.state, what)
        except InvalidValue as exc:
            where = Where(self.step.id, exc.code, FailureCategory.SERIALIZATION)
            raise self.boundary.failed(where, exc) from exc

    def _write(self) -> EnlistedWrite | None:
        write = self.step.write
        return None if write is None else partial(_call_write, write, self.ctx)


def _call_write(
    write: Callable[[Cursor, StepContext], object], ctx: StepContext, cursor: Cursor
) -> None:
    write(cursor, ctx)


@define(eq=False)
class StepRun:
    """One step's life between its row and its result."""

    step: Step
    row: OpenStep
    work: Work
    ctx: StepContext
    environment: Environment
    scope: trio.CancelScope
    """Around the work; only a stop cancels it."""
    stopping: bool = field(default=False, init=False)
    """Whether the work was brought to its end, and `scope` was used for it."""
    _stoppable: bool = field(default=True, init=False)
    _expired: bool = field(default=False, init=False)
    _result: StepResult | None = field(default=None, init=False)

    async def run(self) -> StepResult:
        """Run listeners and work; user code never raises out of here.

        Raises:
            trio.Cancelled: By `scope`, or by a scope around the job.
            TrioletError: The store refused or failed.
        """
        if self.ctx.stop.is_set():
            return await self._stopped()
        result = await self._inner()
        if self._expired:
            result = self._in_time(result)
        self._stoppable = False
        return await self._concluded(result) if self.step.listeners else result

    async def interrupted(self) -> StepResult:
        """Give the result of a step that a stop has cancelled in `run`."""
        result = self._result or await self._stopped()
        self._stoppable = False
        return await self._concluded(result) if self.step.listeners else result

    def stop(self) -> None:
        """Bring the work to an end; listeners after it are not disturbed."""
        # It may have a token of its own, for which somebody waits.
        self.ctx.stop.set()
        if self._stoppable and not self.stopping:
            self.stopping = True
            self.work.stop(self.scope)

    def expire(self) -> bool:
        """Bring the work to an end because its time is over; a stop before that wins.

        Returns:
            Whether the work had not ended, nor been stopped.
        """
        if not self._stoppable or self.ctx.stop.is_set():
            return False
        self._expired = True
        event = Event(
            kind=EventKind.STEP_TIMED_OUT,
            node=self.step.id,
            step_id=self.row.step_id,
            seconds=self.step.timeout,
        )
        self.environment.announcer.tell(event)
        self.stop()
        return True

    async def outlast_stop(self) -> None:
        """Sleep until the work should have heeded a stop."""
        if self.scope.cancel_called:
            await trio.sleep(HEEDING_SECS)
        else:
            await trio.sleep_until(self.scope.deadline + HEEDING_SECS)

    async def _inner(self) -> StepResult:
        try:
            if self.row.status is BatchStatus.STARTING:
                await self._before()
            return await self.work.run()
        except ComponentFailed as exc:
            return failed(exc.failure)
        except OutcomeUnknown as exc:
            where = Where(
                self.step.id, "outcome_unknown", FailureCategory.UNKNOWN_COMMIT
            )
            return unknown(self.environment.boundary.failure(where, exc))

    async def _concluded(self, result: StepResult) -> StepResult:
        if self.row.status is not BatchStatus.STARTED:
            return result
        if self.scope.deadline != inf:
            self.scope.deadline = inf
        if self.scope.cancel_called:
            # Listeners run undisturbed: we come again, by `interrupted`.
            self._result = result
            await trio.lowlevel.checkpoint_if_cancelled()
        return await self._after(result)

    async def _stopped(self) -> StepResult:
        await self._begin_if_needed()
        return self._in_time(
            StepResult(status=BatchStatus.STOPPED, exit_code=ExitCode.STOPPED)
        )

    def _in_time(self, result: StepResult) -> StepResult:
        """Give the result; what was stopped because its time was over has failed."""
        if not self._expired or result.status is not BatchStatus.STOPPED:
            return result
        assert self.step.timeout is not None
        where = Where(self.step.id, "step_timed_out", FailureCategory.TIMEOUT)
        text = too_long(f"step {self.step.id!r}", self.step.timeout)
        failure = self.environment.boundary.refusal(where, text).failure
        return evolve(failed(failure), context=result.context)

    async def _before(self) -> None:
        for listener in self.step.listeners:
            if listener.before is not None:
                where = Where(listener.name, "before_step_listener_failed")
                call = self.environment.boundary.call
                await call(where, listener.before, self.ctx)
        await self._begin_if_needed()

    async def _begin_if_needed(self) -> None:
        if self.row.status is not BatchStatus.STARTING:
            return
        command = Advance(
            execution_id=self.environment.context.execution_id,
            owner_id=self.environment.owner_id,
            begin=self.row.step_id,
        )
        await self.environment.store.ask(command)
        self.row.status = BatchStatus.STARTED
        self.row.version += 1

    async def _after(self, result: StepResult) -> StepResult:
        first: Failure | None = None
        before = Overridden(result.status, result.exit_code, result.failure)
        for listener in reversed(self.step.listeners):
            if listener.after is None:
                continue
            try:
                result = await self._after_one(listener, result)
            except ComponentFailed as exc:
                first = first or exc.failure
            except OutcomeUnknown as exc:
                where = Where(listener.name, "after_step_listener_failed")
                first = first or self.environment.boundary.failure(where, exc)
        kept = result.status in (BatchStatus.STOPPED, BatchStatus.UNKNOWN)
        if first is not None and not kept:
            return evolve(failed(first), overridden=before)
        same = result.exit_code == before.exit_code
        return result if same else evolve(result, overridden=before)

    async def _after_one(
        self, listener: StepListener, result: StepResult
    ) -> StepResult:
        where = Where(listener.name, "after_step_listener_failed")
        message = None if result.failure is None else result.failure.message
        seen = StepOutcome(result.status, result.exit_code, message)
        assert listener.after is not None
        returned = await self.environment.boundary.call(
            where, listener.after, self.ctx, seen
        )
        match returned:
            case None:
                return result
            case Exit(code) if result.status is BatchStatus.COMPLETED:
                return evolve(result, exit_code=code)
            case Exit():
                return result
        kind = with_article(type(returned).__name__)
        raise self.environment.boundary.refusal(
            where, f"listener {listener.name!r} returned {kind}; return None or Exit"
        )


def still_running(node: str, work: object) -> Event:
    """Tell that the code of a node was cancelled and goes on nevertheless."""
    if isinstance(work, ChildJob):
        # A child is never cancelled by a stop, only what comes before it.
        work = work.parameters
    if is_async(work):
        why = "was cancelled and has not ended"
    else:
        why = "runs in a thread that cannot be cancelled"
    message = f"{node!r} {why}; waiting for it to return"
    return Event(kind=EventKind.STOP_WAITING, node=node, message=message)


def failed(failure: Failure) -> StepResult:
    """Make the result of a step that failed."""
    return StepResult(
        status=BatchStatus.FAILED, exit_code=ExitCode.FAILED, failure=failure
    )


def unknown(failure: Failure) -> StepResult:
    """Make the result of a step whose effect is not known."""
    return StepResult(
        status=BatchStatus.UNKNOWN, exit_code=ExitCode.UNKNOWN, failure=failure
    )


def state_for(row: OpenStep) -> JsonObject:
    """Give the state that an earlier attempt committed, for this one to go on with."""
    return payload_of(row.context, row.node.id)
