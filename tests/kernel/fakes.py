"""A backend that does what its script says, and the nursery that its actor lives in.

It keeps the port's contract (one outcome per command, a settlement for each lost
answer), so whatever a test sees is the actor's doing.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeAlias
from uuid import UUID

import trio
from attrs import define, field, frozen

from triolet.actors.kernel.storage_actor import StorageActor
from triolet.storage.backend import (
    AnswerLost,
    Backend,
    Committed,
    Descriptor,
    NotCommitted,
    Pause,
    Settlement,
    Waits,
)
from triolet.storage.commands import Command
from triolet.storage.model.errors import Rejection, error

PATIENCE = 0.01


@frozen
class Note(Command[str]):
    """A command whose reply repeats its text."""

    text: str
    alone: bool = False
    refused: bool = False

    @property
    def enlisted(self) -> bool:
        return self.alone


@error
class Refused(Rejection):
    """The fake said no."""

    code = "refused"
    text: str


class Crash(BaseException):
    """What kills an actor: nobody may swallow it."""


@frozen
class Lose:
    """Lose the answer to a batch, after it took effect or before."""

    committed: bool


Step: TypeAlias = Pause | Lose | BaseException | Callable[[], object] | None
"""What one call does before it answers: wait, lose, raise, run; None: nothing."""


def _steps(steps: Iterable[Step]) -> deque[Step]:
    return deque(steps)


@define(eq=False)
class ScriptedBackend:
    """Plays one step of its script for each batch, then answers plainly for ever."""

    script: deque[Step] = field(default=(), converter=_steps)
    settling: deque[Step] = field(default=(), converter=_steps)
    """Steps for `settle`."""
    sent: list[tuple[UUID, list[str]]] = field(factory=list)
    """Every batch that arrived, with the texts of its commands."""
    settled: list[UUID] = field(factory=list)
    committed: list[str] = field(factory=list)
    """Texts of the commands that took effect, in order."""
    _effects: dict[UUID, tuple[object, ...]] = field(factory=dict)

    @property
    def descriptor(self) -> Descriptor:
        return Descriptor("scripted", 0, capacity=1, inline=True)

    @property
    def batches(self) -> list[list[str]]:
        return [texts for _, texts in self.sent]

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        notes = [note for note in batch if isinstance(note, Note)]
        self.sent.append((batch_id, [note.text for note in notes]))
        step = self.script.popleft() if self.script else None
        yield from _play(step)
        lost = step if isinstance(step, Lose) else None
        if lost is not None and not lost.committed:
            raise AnswerLost("the wire was cut")
        outcomes = tuple(
            Refused(note.text) if note.refused else f"re: {note.text}" for note in notes
        )
        self._effects[batch_id] = outcomes
        self.committed += [note.text for note in notes if not note.refused]
        if lost is not None:
            raise AnswerLost("the wire was cut")
        return outcomes

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        self.settled.append(batch_id)
        yield from _play(self.settling.popleft() if self.settling else None)
        if batch_id in self._effects:
            return Committed(self._effects[batch_id])
        return NotCommitted()

    def close(self) -> None:
        """Hold nothing."""


def _play(step: Step) -> Waits[None]:
    if isinstance(step, Pause):
        yield step
    elif isinstance(step, BaseException):
        raise step
    elif step is not None and not isinstance(step, Lose):
        step()


def make_actor(
    backend: Backend,
    *,
    deadline: float = 30.0,
    adaptive: bool = False,
    apart: bool = False,
    on_retry: Callable[[str], None] = lambda reason: None,
) -> StorageActor:
    """Make an actor whose batch ids count from 1 and whose patience is `PATIENCE`."""
    ids = count(1)
    return StorageActor(
        backend,
        new_id=lambda: UUID(int=next(ids)),
        deadline=deadline,
        adaptive=adaptive,
        apart=apart,
        patience=PATIENCE,
        on_retry=on_retry,
    )


@asynccontextmanager
async def serving(actor: StorageActor) -> AsyncIterator[trio.Nursery]:
    """Run *actor* as a runtime does; the nursery inside is for those who ask."""
    async with trio.open_nursery() as outer:
        outer.start_soon(actor.run)
        try:
            async with trio.open_nursery() as askers:
                yield askers
        finally:
            actor.life.cancel()


@define(eq=False)
class Asker:
    """Asks once, in a task of its own, and notes what came of it."""

    actor: StorageActor
    note: Note
    answers: list[object] = field(factory=list)
    """Exactly one when the actor keeps its promise."""
    cancelled_after: bool = False

    async def __call__(self) -> None:
        try:
            self.answers.append(await self.actor.ask(self.note))
        except Exception as exc:
            self.answers.append(exc)
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            self.cancelled_after = True
            raise


def askers_of(actor: StorageActor, *notes: Note) -> list[Asker]:
    return [Asker(actor, note) for note in notes]


async def ask_in_order(nursery: trio.Nursery, askers: Sequence[Asker]) -> None:
    """Start askers so that their commands stand in the mailbox in this order."""
    for asker in askers:
        before = asker.actor.depth
        nursery.start_soon(asker)
        while asker.actor.depth == before and not asker.answers:
            await trio.lowlevel.checkpoint()
