"""Cancelling or stopping a scenario at every task step of trio.

The state of a trio program changes inside task steps only, so trying every step of a
run is complete for the order in which its tasks were run.
"""

from collections.abc import Callable
from contextlib import nullcontext
from enum import StrEnum
from functools import partial

import trio
from attrs import define, field, frozen

from triolet.actors import BatchStatus, LaunchReport, RuntimeOptions, open_runtime
from triolet.actors.testing import Ending, Fault, Scenario
from triolet.actors.testing.equivalence import differences
from triolet.actors.testing.faults import Wire
from triolet.actors.testing.scenario import ProcessDied, Stage, open_stage
from triolet.storage.backend import Backend
from triolet.storage.commands import InstanceComplete


class How(StrEnum):
    """What disturbs the run."""

    CANCEL_LAUNCH = "cancel the scope around the launch"
    CANCEL_RUNTIME = "cancel the scope around the runtime"
    STOP = "stop the runtime's jobs"


@define(eq=False)
class At(trio.abc.Instrument):
    """Counts task steps over all launches of a run, and acts at one of them."""

    number: int | None
    act: Callable[[], object] = field(default=lambda: None, init=False)
    steps: list[str] = field(factory=list, init=False)
    """The task of each step."""

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps.append(task.name)
        if len(self.steps) == self.number:
            self.act()

    @property
    def fired(self) -> bool:
        return self.number is not None and len(self.steps) >= self.number


@frozen(kw_only=True)
class Played:
    """One run: what it came to, and the task steps on the way."""

    ending: Ending
    steps: tuple[str, ...]
    statuses: tuple[BatchStatus | None, ...]
    """What each launch reported that nothing disturbed."""
    between: tuple[Ending, int] | None
    """What the disturbed launch came to, and how many launches were before it."""


async def _launch(
    stage: Stage, at: At, how: How, backend: Backend, options: RuntimeOptions
) -> LaunchReport | None:
    scope = trio.CancelScope()
    outside = scope if how is How.CANCEL_RUNTIME else nullcontext()
    inside = scope if how is How.CANCEL_LAUNCH else nullcontext()
    report = None
    trio.lowlevel.add_instrument(at)
    try:
        with outside:
            at.act = scope.cancel
            async with open_runtime(backend, options) as runtime:
                if how is How.STOP:
                    at.act = runtime.stop
                with inside:
                    parameters = stage.scenario.parameters
                    report = await runtime.launch(stage.job(), parameters)
    finally:
        trio.lowlevel.remove_instrument(at)
    return report


def play(
    scenario: Scenario, how: How, number: int | None = None, *faults: Fault
) -> Played:
    """Play a story, disturbed at one task step; a disturbed launch is repeated."""
    at = At(number)
    statuses: list[BatchStatus | None] = []
    between = None
    with open_stage(scenario, Wire(faults)) as stage:
        while (
            len(statuses) < scenario.launches and BatchStatus.COMPLETED not in statuses
        ):
            fresh = not at.fired
            try:
                report = stage.process(partial(_launch, stage, at, how))
            except InstanceComplete:
                break
            except ProcessDied:
                continue
            if fresh and at.fired:
                between = stage.ending(), len(statuses)
            else:
                statuses.append(None if report is None else report.status)
        ending = stage.ending()
    return Played(
        ending=ending,
        steps=tuple(at.steps),
        statuses=tuple(statuses),
        between=between,
    )


def sweep(scenario: Scenario, how: How, stride: int = 1) -> int:
    """Disturb every step, and compare each run with the undisturbed one.

    Args:
        scenario: What is run.
        how: What disturbs it.
        stride: Try every n-th step only.

    Returns:
        The number of points tried.
    """
    undisturbed = play(scenario, how)
    numbers = range(1, len(undisturbed.steps) + 1, stride)
    for number in numbers:
        played = play(scenario, how, number)
        where = f"{how} at step {number} of {scenario}"
        assert played.steps[:number] == undisturbed.steps[:number], where
        assert list(differences(undisturbed.ending, played.ending)) == [], where
        assert played.between is not None, where
        after, launch = played.between
        assert after.unresolved == (), where
        whole = undisturbed.statuses[launch]
        assert after.status in (whole, *_stopped(undisturbed, launch)), where
    return len(numbers)


def _stopped(undisturbed: Played, launch: int) -> tuple[BatchStatus | None, ...]:
    """Give what a launch may leave that was stopped: before its own row, the last."""
    before = undisturbed.statuses[launch - 1] if launch else None
    return BatchStatus.STOPPED, before
