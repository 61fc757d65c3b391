"""The traversal engine and a stop: whatever is known is kept, nothing new begins."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.plan.definitions import work
from tests.plan.driver import (
    STOPPED,
    UNKNOWN,
    Attempt,
    Instance,
    command_of,
    completed,
    decision,
    line,
    step,
)
from triolet.actors.plan.actions import (
    Commit,
    Decide,
    Finished,
    PlanPartitions,
    RunPartitions,
    RunSplit,
    RunStep,
)
from triolet.actors.plan.definition import PartitionedStep, Split
from triolet.actors.plan.stepping import Stepping
from triolet.storage.model.status import BatchStatus


def stopped_at(instance: Instance, point: int, code: str) -> tuple[Attempt, int]:
    """Stop before the answer number *point*; give how many commands were made then."""
    attempt = instance.attempt()
    action = attempt.engine.begin()
    for _ in range(point):
        action = attempt.perform(action, {"d": code})
    made = len(attempt.commands) + isinstance(action, Commit)
    attempt.engine.stop()
    # As the actor does it, no user code begins after a stop.
    while not isinstance(action, Finished):
        if isinstance(action, Decide | PlanPartitions):
            action = attempt.engine.undecided()
            continue
        if isinstance(action, RunSplit):
            stop_all(action.branches)
        if isinstance(action, RunPartitions):
            stop_all(action.partitions)
        action = attempt.perform(action, dict.fromkeys("abc", STOPPED))
    return attempt, made


def stop_all(lines: Iterable[Stepping]) -> None:
    for one in lines:
        one.stop()


def simple() -> Instance:
    return Instance([step("a"), step("b"), decision("d", {"GO": "c"}), step("c")])


def divided() -> Instance:
    """Make an instance of steps that others come before."""
    parts = PartitionedStep("p", work, lambda ctx: [], 2)
    split = Split("s", [step("l"), step("r")])
    return Instance([step("a"), parts, split, decision("d", {"GO": "c"}), step("c")])


POINTS = [(simple, point) for point in range(7)]
POINTS += [(divided, point) for point in range(11)]


@pytest.mark.parametrize(("make", "point"), POINTS)
def test_a_stop_at_every_point_starts_nothing_and_ends_stopped(
    make: Callable[[], Instance], point: int
) -> None:
    instance = make()

    attempt, made = stopped_at(instance, point, "GO")

    assert instance.ends == [BatchStatus.STOPPED]
    assert all(one.start is None for one in attempt.commands[made:])
    assert not any(status.active for _, status in instance.steps)


@pytest.mark.parametrize(("make", "point"), POINTS)
def test_a_stop_at_every_point_is_continued_by_the_next_launch(
    make: Callable[[], Instance], point: int
) -> None:
    instance = make()
    stopped_at(instance, point, "GO")
    done = {name for name, status in instance.steps if status == "COMPLETED"}

    second = instance.attempt()
    second.finish({"d": "GO"})

    assert instance.ends[-1] is BatchStatus.COMPLETED
    assert not done & {one.removeprefix("run ") for one in second.trail}


def test_a_stop_beside_a_result_composes_finish_and_end() -> None:
    instance = line("a", "b")
    attempt = instance.attempt()
    attempt.until(RunStep, {})
    attempt.engine.stop()

    command = command_of(attempt.engine.stepped(completed()))

    assert command.finish is not None
    assert command.finish.decision is not None
    assert command.start is None
    assert command.end is not None
    assert command.end.status is BatchStatus.STOPPED


def test_a_stop_after_the_last_step_still_completes() -> None:
    instance = line("a")
    attempt = instance.attempt()
    action = attempt.until(RunStep, {})
    attempt.engine.stop()

    end = attempt.finish({}, action)

    assert end.status is BatchStatus.COMPLETED


def test_a_stop_before_the_entry_starts_nothing() -> None:
    instance = Instance([decision("d", {"GO": "a"}), step("a")])
    attempt = instance.attempt()
    attempt.engine.stop()

    end = attempt.finish({})

    assert end.status is BatchStatus.STOPPED
    assert attempt.trail == []
    assert instance.steps == []


def test_an_answer_given_before_a_stop_was_noticed_is_replayed() -> None:
    instance = simple()
    attempt = instance.attempt()
    action = attempt.until(Decide, {})
    attempt.engine.stop()
    attempt.finish({"d": "GO"}, action)
    second = instance.attempt()

    second.finish({})

    assert instance.ends == [BatchStatus.STOPPED, BatchStatus.COMPLETED]
    assert second.trail == ["run c"]


@pytest.mark.parametrize(
    ("result", "status"), [(STOPPED, "STOPPED"), (UNKNOWN, "UNKNOWN")]
)
def test_a_step_that_was_stopped_or_is_unknown_selects_no_transition(
    result: Any, status: str
) -> None:
    instance = line("a", "b")
    attempt = instance.attempt()

    end = attempt.finish({"a": result})

    assert end.status == end.exit_code == status
    assert instance.decisions(attempt) == []
