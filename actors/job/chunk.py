"""The chunk loop: read, process, write, commit; again until the input ends.

Items travel in lists: one call reads a chunk, one tight loop processes it, one call
writes it, and its rows, counts and checkpoint are one transaction. Reading and
processing happen outside of that transaction.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio
from attrs import define, evolve, field

from ...storage.commands import CommitChunk, Cursor, Enlist, EnlistedWrite, WriteFailed
from ...storage.envelope import CHECKPOINT_FORMAT, POSITION_SCHEMA, seal, unseal
from ...storage.model.errors import (
    CommitOutcomeUnknown,
    CorruptRecord,
    InvalidValue,
)
from ...storage.model.execution import Counts, ExitCode
from ...storage.model.status import BatchStatus, FailureCategory
from ..items.protocols import ChunkKey, Delivery
from ..plan.actions import OpenStep, StepResult
from ..plan.definition import Chunk, InFlight, Step
from .boundary import ComponentFailed, OutcomeUnknown, Where
from .chunk_filling import ChunkFilling, Filled
from .context import StepContext
from .events import Event, EventKind
from .step import Environment, failed, unknown

log = logging.getLogger("triolet.job")

CLOSE_SECS = 5.0
"""How long a component may take to close once it is being cancelled."""

_STOPPED = StepResult(status=BatchStatus.STOPPED, exit_code=ExitCode.STOPPED)


@define(eq=False)
class ChunkRun:
    """One run of a chunk step."""

    step: Step
    chunk: Chunk
    row: OpenStep
    ctx: StepContext
    environment: Environment
    _opened: list[tuple[str, Callable[[], Any]]] = field(factory=list, init=False)
    _hung: bool = field(default=False, init=False)
    """Whether a component did not close in its time."""
    _filling: ChunkFilling = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._filling = ChunkFilling(self.step, self.chunk, self.row, self.environment)

    async def run(self) -> StepResult:
        """Run the loop to the end of the input, a stop, or a failure."""
        try:
            result = await self._outcome()
        except BaseException:
            await self._close(_STOPPED)
            raise
        result = await self._close(result)
        if self._hung:
            await trio.lowlevel.checkpoint_if_cancelled()
        return result

    def stop(self, scope: trio.CancelScope) -> None:
        """Give up the chunk in flight, or leave it its grace to finish."""
        if self.chunk.in_flight is InFlight.ROLLBACK_CHUNK:
            scope.cancel()
        else:
            scope.deadline = trio.current_time() + self.step.grace

    async def _outcome(self) -> StepResult:
        try:
            await self._open()
            done = await self._loop()
        except ComponentFailed as exc:
            return failed(exc.failure)
        except CommitOutcomeUnknown as exc:
            where = self._where("commit", FailureCategory.UNKNOWN_COMMIT)
            return unknown(self.environment.boundary.failure(where, exc))
        if done:
            return StepResult(
                status=BatchStatus.COMPLETED, exit_code=ExitCode.COMPLETED
            )
        return _STOPPED

    async def _loop(self) -> bool:
        """Commit chunk after chunk; tell whether the input has ended."""
        while not self.ctx.stop.is_set():
            try:
                filled = await self._filling.fill()
                if filled.ended:
                    return True
                await trio.lowlevel.checkpoint_if_cancelled()
                await self._commit(filled)
            except ComponentFailed:
                counts = self.row.counts
                self.row.counts = evolve(counts, rolled_back=counts.rolled_back + 1)
                raise
        return await self._filling.has_ended()

    # Opening and closing

    async def _open(self) -> None:
        reader, writer = self.chunk.reader, self.chunk.writer
        position = self._position()
        self._opened.append(("reader_close", reader.close))
        await self._call("reader_open", reader.open, position)
        self._opened.append(("writer_close", writer.close))
        if self._atomic:
            await self._enlist(writer.open)
        else:
            await self._call("writer_open", writer.open, None)

    def _position(self) -> dict[str, Any] | None:
        what = f"the checkpoint of {self.step.id!r}"
        if self.row.checkpoint is None:
            return None
        try:
            return unseal(CHECKPOINT_FORMAT, POSITION_SCHEMA, self.row.checkpoint, what)
        except CorruptRecord as exc:
            where = self._where("checkpoint", FailureCategory.SERIALIZATION)
            raise self.environment.boundary.failed(where, exc) from exc

    async def _enlist(self, write: EnlistedWrite) -> None:
        context = self.environment.context
        command = Enlist(context.execution_id, self.environment.owner_id, write)
        try:
            await self.environment.store.ask(command)
        except WriteFailed as exc:
            where = self._where("writer_open")
            raise self.environment.boundary.failed(where, exc.cause) from exc

    async def _close(self, result: StepResult) -> StepResult:
        """Close what was opened, last first; no failure prevents the other closes."""
        for role, close in reversed(self._opened):
            match await self._close_one(role, close):
                case ComponentFailed(failure=failure):
                    if result.status is BatchStatus.COMPLETED:
                        result = failed(failure)
                case OutcomeUnknown() as exc:
                    where = self._where(role, FailureCategory.UNKNOWN_COMMIT)
                    result = unknown(self.environment.boundary.failure(where, exc))
                case BaseException() as exc:
                    raise exc
        return result

    async def _close_one(
        self, role: str, close: Callable[[], Any]
    ) -> BaseException | None:
        """Close a component; from a cancellation on, it has `CLOSE_SECS` left."""
        raised: BaseException | None = None
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope(shield=True)
            nursery.start_soon(_limit, scope)
            with scope:
                try:
                    await self._call(role, close)
                except trio.Cancelled:
                    raise
                except BaseException as exc:
                    raised = exc
            self._hung |= scope.cancelled_caught
            nursery.cancel_scope.cancel()
        return raised

    # One chunk

    async def _commit(self, filled: Filled) -> None:
        key = ChunkKey(
            instance_id=self.ctx.instance_id,
            node=self.row.node.id,
            visit=self.row.visit,
            ordinal=self.row.counts.read,
        )
        write: EnlistedWrite | None = None
        if self._atomic:
            write = partial(_write, self.chunk.writer, filled.rows, key)
        elif filled.rows:
            await self._call("writer", self.chunk.writer.write, None, filled.rows, key)
        written = len(filled.rows)
        counts = self.row.counts + Counts(
            read=filled.read,
            processed=written,
            written=written,
            filtered=filled.read - written,
            committed=1,
        )
        checkpoint = self._sealed(filled.state)
        command = CommitChunk(
            execution_id=self.environment.context.execution_id,
            owner_id=self.environment.owner_id,
            step_id=self.row.step_id,
            version=self.row.version,
            counts=counts,
            checkpoint=checkpoint,
            write=write,
        )
        try:
            await self.environment.store.ask(command)
        except WriteFailed as exc:
            where = self._where("writer")
            raise self.environment.boundary.failed(where, exc.cause) from exc
        self.row.version += 1
        self.row.counts = counts
        self.row.checkpoint = checkpoint
        self._announce()
        await trio.lowlevel.checkpoint_if_cancelled()

    def _sealed(self, state: object) -> str:
        what = f"the checkpoint of {self.step.id!r}"
        try:
            return seal(CHECKPOINT_FORMAT, POSITION_SCHEMA, state, what)
        except InvalidValue as exc:
            where = self._where("checkpoint", FailureCategory.SERIALIZATION)
            raise self.environment.boundary.failed(where, exc) from exc

    def _announce(self) -> None:
        if not self.environment.announcer.active:
            return
        self.environment.announcer.tell(
            Event(
                kind=EventKind.CHUNK_COMMITTED,
                node=self.step.id,
                step_id=self.row.step_id,
                counts=self.row.counts,
                fraction=self._fraction(),
            )
        )

    def _fraction(self) -> float | None:
        fraction = getattr(self.chunk.reader, "fraction", None)
        try:
            return None if fraction is None else fraction()
        except Exception:
            log.exception("the reader of %r cannot tell its fraction", self.step.id)
            return None

    # Calling components

    @property
    def _atomic(self) -> bool:
        return bool(self.chunk.writer.delivery.value == Delivery.ATOMIC.value)

    def _where(
        self, role: str, category: FailureCategory = FailureCategory.USER_COMPONENT
    ) -> Where:
        return Where(self.step.id, f"{role}_failed", category)

    async def _call(
        self, role: str, function: Callable[..., Any], *arguments: object
    ) -> Any:  # noqa: ANN401  # what user code returns is its own affair
        call = self.environment.boundary.call
        return await call(self._where(role), function, *arguments)


async def _limit(scope: trio.CancelScope) -> None:
    try:
        await trio.sleep_forever()
    except trio.Cancelled:
        # Not raised again: the caller's own next checkpoint tells of it.
        scope.deadline = trio.current_time() + CLOSE_SECS


def _write(writer: Any, rows: Sequence[Any], key: ChunkKey, cursor: Cursor) -> None:  # noqa: ANN401
    if rows:
        writer.write(cursor, rows, key)
