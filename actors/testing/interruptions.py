"""Interruptions: what comes to a launch from outside, at one of its task steps.

The state of a trio program changes inside task steps only, so trying every step of a
run is complete for the order in which its tasks were run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum

import trio
from attrs import define, evolve, field, frozen


class How(StrEnum):
    """What interrupts a launch."""

    CANCEL = "cancel the scope around the runtime"
    CANCEL_LAUNCH = "cancel the scope around the launch"
    STOP = "stop the runtime"
    SHUTDOWN = "shut the runtime down, with a deadline"


@frozen
class Interruption:
    """One thing that comes to a run from outside.

    Args:
        step: The number of the task step, from 1, counted over all launches of the run.
        how: What happens right before it.
    """

    step: int
    how: How

    def __str__(self) -> str:
        return f"at task step {self.step}, {self.how}"

    @property
    def number(self) -> int:
        """Where it happens."""
        return self.step

    def moved(self, number: int) -> "Interruption":
        """Give the same at another step."""
        return evolve(self, step=number)


@define(eq=False)
class Steps(trio.abc.Instrument):
    """Counts the task steps of a run, over its launches, and interrupts at some.

    Args:
        interruptions: What happens where.
        reached: Told of each of them when it happens.
    """

    interruptions: Sequence[Interruption] = ()
    reached: Callable[[Interruption], object] = lambda one: None
    names: list[str] = field(factory=list, init=False)
    """The task of each step."""
    _interrupt: Callable[[How], None] = field(init=False)
    _failed: BaseException | None = field(default=None, init=False)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count one more."""
        self.names.append(task.name)
        number = len(self.names)
        for one in self.interruptions:
            if one.step == number:
                self.reached(one)
                self._carry_out(one.how)

    def _carry_out(self, how: How) -> None:
        # Trio would log what an instrument raises, and switch the instrument off.
        try:
            self._interrupt(how)
        except BaseException as exc:
            self._failed = exc

    @contextmanager
    def counting(self, interrupt: Callable[[How], None]) -> Iterator[None]:
        """Count inside, and interrupt this launch."""
        self._interrupt = interrupt
        trio.lowlevel.add_instrument(self)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(self)
        if self._failed is not None:
            raise self._failed
