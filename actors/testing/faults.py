"""A backend that counts commits and fails at some of them.

What it injects is what a process cannot defend itself against: its own death right
before or right after a commit, and a commit whose answer does not arrive.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

from attrs import define, evolve, field, frozen

from ...storage.backend import AnswerLost, Backend, Descriptor, Settlement, Waits
from ...storage.commands import Command, Question
from .transcript import describe


class Variant(StrEnum):
    """What happens at a commit."""

    DIE_BEFORE = "die before it"
    DIE_AFTER = "die after it"
    LOSE_ANSWER_APPLIED = "lose the answer of one that took effect"
    LOSE_ANSWER_UNAPPLIED = "lose the answer of one that took no effect"

    @property
    def deadly(self) -> bool:
        """Whether the process dies of it."""
        return self in (Variant.DIE_BEFORE, Variant.DIE_AFTER)

    @property
    def applied(self) -> bool:
        """Whether the commit takes effect nevertheless."""
        return self in (Variant.DIE_AFTER, Variant.LOSE_ANSWER_APPLIED)


@frozen
class Fault:
    """One thing that goes wrong in a run.

    Args:
        commit: The number of the commit, from 1, counted over all launches of the run.
        variant: What happens there.
    """

    commit: int
    variant: Variant

    def __str__(self) -> str:
        return f"at commit {self.commit}, {self.variant}"

    @property
    def number(self) -> int:
        """Where it happens."""
        return self.commit

    def moved(self, number: int) -> "Fault":
        """Give the same at another commit."""
        return evolve(self, commit=number)


class Crashed(BaseException):
    """The process has died: nothing can be written any more.

    No exception that anybody catches, just as nobody catches a SIGKILL.
    """


@define(eq=False)
class Wire:
    """What the backends of one run share: the faults, and the commits so far.

    Args:
        faults: What goes wrong, and where; each commit has one fault at most.
        reached: Told of each of them when it happens.
    """

    faults: Sequence[Fault] = ()
    reached: Callable[[Fault], object] = lambda fault: None
    commits: list[str] = field(factory=list, init=False)
    """Each commit in words, as far as it was sent."""

    def send(self, batch: Sequence[Command[Any]]) -> Variant | None:
        """Note one more commit; tell what happens to it."""
        self.commits.append(describe(batch))
        number = len(self.commits)
        for fault in self.faults:
            if fault.commit == number:
                self.reached(fault)
                return fault.variant
        return None


@define(eq=False)
class FaultyBackend:
    """A process's connection to a store, which fails where the wire says so.

    Once the process has died, nothing gets through any more: no clean-up on the way
    out can write.

    Args:
        inner: The real connection.
        wire: Counts the commits of this process and of those before it.
    """

    inner: Backend
    wire: Wire
    dead: bool = field(default=False, init=False)
    """Whether the process has died."""

    @property
    def descriptor(self) -> Descriptor:
        """Say what the backend is."""
        return self.inner.descriptor

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Carry out *batch*, or fail; see `Backend.apply`."""
        self._refuse_the_dead()
        if all(isinstance(command, Question) for command in batch):
            return (yield from self.inner.apply(batch_id, batch))
        variant = self.wire.send(batch)
        if variant is None:
            return (yield from self.inner.apply(batch_id, batch))
        if variant.applied:
            yield from self.inner.apply(batch_id, batch)
        if not variant.deadly:
            raise AnswerLost(variant)
        self.dead = True
        raise Crashed(variant)

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        """Find out what became of a batch; see `Backend.settle`."""
        self._refuse_the_dead()
        return (yield from self.inner.settle(batch_id, batch))

    def close(self) -> None:
        """Give up the real connection."""
        self.inner.close()

    def _refuse_the_dead(self) -> None:
        if self.dead:
            raise Crashed
