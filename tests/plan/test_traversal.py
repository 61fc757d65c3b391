"""The traversal engine alone: what it asks for, and what is durable by then."""

from typing import Any

import pytest
from attrs import evolve

from tests.plan.driver import (
    BOOM,
    FAILED,
    Instance,
    command_of,
    completed,
    decision,
    line,
    running,
    step,
)
from triolet.actors.plan.actions import Commit, Decide, RunStep
from triolet.actors.plan.definition import COMPLETE, FAIL, STOP, Node, Split
from triolet.storage.commands import Advanced, StartLimitReached
from triolet.storage.model.digests import decider_input
from triolet.storage.model.execution import (
    NO_COUNTS,
    Counts,
    DecisionRef,
    ExitCode,
    NodeTarget,
)
from triolet.storage.model.parameters import ParameterSet
from triolet.storage.model.status import BatchStatus, FailureCategory

ITEMS = Counts(read=7, processed=7, written=6, filtered=1, committed=2)


def fork(**then: Any) -> Instance:
    """A step, a decision about it, and two steps that it may lead to."""
    rules = {"LEFT": "left", "RIGHT": "right", **then}
    return Instance([step("a"), decision("d", rules), step("left"), step("right")])


# Commits


@pytest.mark.parametrize("size", [1, 2, 7])
def test_n_plain_steps_take_n_plus_one_commits(size: int) -> None:
    instance = line(*"abcdefg"[:size])

    attempt = instance.attempt()
    attempt.finish({})

    # The first commit opened the attempt, together with its first step.
    assert 1 + len(attempt.commands) == size + 1
    assert instance.ends == [BatchStatus.COMPLETED]


def test_every_transition_is_durable_before_its_target_runs() -> None:
    instance = fork()
    first = instance.attempt()
    led: list[object] = []
    first.before = lambda _: led.append([one[3] for one in instance.made(first)])

    first.finish({"d": "LEFT"})

    d, left, right = NodeTarget("d"), NodeTarget("left"), NodeTarget("right")
    assert first.trail == ["run a", "ask d", "run left", "run right"]
    assert led == [[], [d], [d, left], [d, left, right]]


def test_replayed_transitions_are_durable_before_the_step_that_runs() -> None:
    instance = fork()
    instance.attempt().finish({"d": "RIGHT", "right": FAILED})
    second = instance.attempt()
    made: list[object] = []
    second.before = lambda _: made.extend(instance.made(second))

    second.finish({})

    assert second.trail == ["run right"]
    assert made == [
        ("a", "COMPLETED_STEP_REUSE", "COMPLETED", NodeTarget("d")),
        ("d", "DECIDER", "RIGHT", NodeTarget("right")),
    ]


def test_transitions_of_reused_steps_travel_with_the_next_start() -> None:
    instance = line("a", "b", "c")
    instance.attempt().finish({"c": FAILED})
    second = instance.attempt()

    second.finish({})

    start, end = second.commands
    assert [one.source for one in start.decisions] == ["a", "b"]
    assert start.start is not None
    assert start.start.node == "c"
    assert end.end is not None


def test_a_reused_step_cites_the_transition_that_was_made_upon_it() -> None:
    instance = line("a", "b")
    first = instance.attempt()
    first.finish({"b": FAILED})

    second = instance.attempt()
    second.finish({})

    cited = DecisionRef(first.opened.execution_id, 1)
    assert instance.decisions(second)[0].reused == cited


def test_an_attempt_that_reuses_every_step_is_one_commit() -> None:
    instance = Instance([step("a", then={"*": "b"}), step("b", then={"*": STOP})])
    instance.attempt().finish({})
    second = instance.attempt()

    end = second.finish({})

    assert end.status is BatchStatus.STOPPED
    assert [len(one.decisions) for one in second.commands] == [2]
    assert [one.reused for one in second.engine.steps] == [True, True]


# Deciders


def test_a_decision_that_led_to_stop_is_asked_again() -> None:
    instance = fork(WAIT=STOP)
    instance.attempt().finish({"d": "WAIT"})
    second = instance.attempt()
    second.finish({"d": "WAIT"})
    third = instance.attempt()
    third.finish({"d": "RIGHT"})

    assert second.trail == ["ask d"]
    assert third.trail == ["ask d", "run right"]
    stopped = BatchStatus.STOPPED
    assert instance.ends == [stopped, stopped, BatchStatus.COMPLETED]


def test_an_answer_is_replayed_after_a_restart_and_cites_the_newest_one() -> None:
    instance = fork()
    instance.attempt().finish({"d": "RIGHT", "right": FAILED})
    second = instance.attempt()
    second.finish({"right": FAILED})
    third = instance.attempt()

    third.finish({})

    assert third.trail == ["run right"]
    newest = instance.decisions(third)[1]
    assert newest.reused == DecisionRef(second.opened.execution_id, 2)


def test_a_decider_is_asked_again_when_the_step_before_it_ran_again() -> None:
    instance = Instance(
        [
            step("a", allow_start_if_complete=True),
            decision("d", {"*": "b"}),
            step("b"),
        ]
    )
    instance.attempt().finish({"d": "ONE", "b": FAILED})
    second = instance.attempt()

    second.finish({"d": "TWO"})

    assert second.trail == ["run a", "ask d", "run b"]


@pytest.mark.parametrize("again", [False, True])
def test_a_decider_behind_a_split_is_asked_again_when_a_branch_ran_again(
    again: bool,
) -> None:
    """What it depends on is the aggregate of all branches: decision 17."""
    branches = [step("l", allow_start_if_complete=again), step("r")]
    nodes: list[Node] = [
        step("a"),
        Split("s", branches),
        decision("d", {"*": "b"}),
        step("b"),
    ]
    instance = Instance(nodes)
    first = instance.attempt()
    first.finish({"d": "ONE", "b": FAILED})
    second = instance.attempt()

    second.finish({"d": "TWO"})

    assert second.trail == (["run l", "ask d", "run b"] if again else ["run b"])
    for attempt in (first, second):
        made = {one.source: one for one in instance.decisions(attempt)}
        assert made["d"].digest == decider_input(
            made["d"].fingerprint,
            "d",
            "1",
            1,
            attempt.opened.instance_id,
            ParameterSet(()).projection(),
            made["s.join"].digest,
        )


def test_a_decider_sees_the_custom_exit_of_the_step_before_it() -> None:
    attempt = fork().attempt()

    asked = attempt.until(Decide, {"a": "HALF"})

    assert isinstance(asked, Decide)
    assert asked.preceding is not None
    assert asked.preceding.node == "a"
    assert asked.preceding.exit_code == "HALF"
    assert asked.preceding.status is BatchStatus.COMPLETED


def test_a_decider_sees_a_reused_step_as_it_ended() -> None:
    instance = fork(WAIT=STOP)
    instance.attempt().finish({"a": "HALF", "d": "WAIT"})

    asked = instance.attempt().until(Decide, {})

    assert isinstance(asked, Decide)
    assert asked.preceding is not None
    assert asked.preceding.exit_code == "HALF"


def test_a_decider_at_the_entry_sees_no_step() -> None:
    instance = Instance([decision("d", {"GO": COMPLETE})])

    asked = instance.attempt().until(Decide, {})

    assert isinstance(asked, Decide)
    assert asked.preceding is None


def test_a_decider_that_failed_fails_the_job_without_a_transition() -> None:
    instance = fork()
    attempt = instance.attempt()
    attempt.until(Decide, {})

    end = attempt.finish({}, attempt.engine.refused(BOOM))

    assert end.status is BatchStatus.FAILED
    assert end.failure == BOOM
    assert [one.source for one in instance.decisions(attempt)] == ["a"]


# Failures of the flow


def test_an_unmapped_exit_of_a_step_names_step_code_and_patterns() -> None:
    instance = Instance([step("a", then={"DONE": COMPLETE, "D*": STOP})])

    end = instance.attempt().finish({"a": "ODD"})

    assert end.failure is not None
    assert end.failure.category is FailureCategory.INVALID_DEFINITION
    assert end.failure.where == "a"
    assert end.failure.message == (
        "'a' ended with exit code 'ODD'; it has rules for 'FAILED', 'DONE' and 'D*'"
    )


def test_an_unmapped_exit_that_the_framework_gave_is_a_word_too() -> None:
    instance = Instance([step("a", then={"DONE": COMPLETE})])

    end = instance.attempt().finish({"a": ExitCode.COMPLETED})

    assert end.failure is not None
    assert end.failure.message is not None
    assert "exit code 'COMPLETED'; it has" in end.failure.message


def test_an_unmapped_answer_keeps_the_result_before_it_and_is_asked_again() -> None:
    instance = fork()
    first = instance.attempt()
    end = first.finish({"d": "UP"})
    second = instance.attempt()

    second.finish({"d": "RIGHT"})

    assert end.failure is not None
    assert end.failure.message is not None
    assert "'d' ended with exit code 'UP'" in end.failure.message
    assert [one.source for one in instance.decisions(first)] == ["a"]
    assert second.trail == ["ask d", "run right"]


def test_a_failed_step_may_be_routed_to_completion() -> None:
    instance = Instance([step("a", then={"FAILED": COMPLETE, "*": FAIL})])

    end = instance.attempt().finish({"a": FAILED})

    assert end.status is BatchStatus.COMPLETED
    assert end.failure is None


def test_fail_reports_the_failure_of_the_step_that_led_to_it() -> None:
    end = line("a").attempt().finish({"a": FAILED})

    assert end.failure == evolve(BOOM, id=100)


def test_fail_without_a_failed_step_says_who_led_to_it() -> None:
    instance = Instance([step("a", then={"*": FAIL})])

    end = instance.attempt().finish({"a": "BAD"})

    assert end.failure is not None
    assert end.failure.code == "fail_terminal"
    assert end.failure.where == "a"


# Start limits


def test_a_limit_of_one_lets_the_first_attempt_run() -> None:
    instance = Instance([step("a", start_limit=1)])

    assert instance.attempt().finish({}).status is BatchStatus.COMPLETED


@pytest.mark.parametrize("limit", [1, 2])
def test_a_later_attempt_beyond_the_limit_fails_without_a_row(limit: int) -> None:
    instance = Instance([step("a"), step("b", start_limit=limit)])
    for _ in range(limit):
        instance.attempt().finish({"b": FAILED})

    attempt = instance.attempt()
    end = attempt.finish({})

    assert end.failure is not None
    assert end.failure.code == "start_limit_reached"
    assert end.failure.category is FailureCategory.ILLEGAL_TRANSITION
    assert [one.start for one in attempt.commands] == [None]
    assert instance.steps.count(("b", BatchStatus.FAILED)) == limit


def test_a_start_that_the_store_refuses_keeps_the_result_beside_it() -> None:
    instance = Instance([step("a"), step("b", start_limit=3)])
    attempt = instance.attempt()
    command = command_of(attempt.until(Commit, {}))
    attempt.apply(evolve(command, start=None))

    refused = Advanced(0, StartLimitReached("b", 3))
    end = attempt.finish({}, attempt.engine.committed(refused))

    assert end.status is BatchStatus.FAILED
    assert end.failure is not None
    assert end.failure.where == "b"
    assert instance.steps == [("a", BatchStatus.COMPLETED)]


def test_the_store_refuses_a_start_beyond_the_limit_and_keeps_the_result() -> None:
    instance = Instance([step("a"), step("b", start_limit=1)])
    instance.attempt().finish({"a": FAILED})
    attempt = instance.attempt()
    command = command_of(attempt.until(Commit, {"a": "COMPLETED"}))
    command = command_of(attempt.until(Commit, {}, attempt.commit(command)))
    assert command.start is not None

    reply = attempt.apply(evolve(command, start=evolve(command.start, limit=0)))

    assert isinstance(reply.start, StartLimitReached)
    assert instance.steps[-1] == ("a", BatchStatus.COMPLETED)


# Counts


def test_job_counts_are_the_sum_over_the_latest_rows_of_all_nodes() -> None:
    instance = line("a", "b")
    first = instance.attempt()
    running(first.until(RunStep, {})).counts = ITEMS
    action = first.commit(command_of(first.engine.stepped(completed())))
    running(action).counts = Counts(read=3)
    first.finish({}, first.engine.stepped(FAILED))

    second = instance.attempt()
    continued = running(second.until(RunStep, {}))
    seen = continued.counts
    continued.counts = Counts(read=5)
    end = second.finish({}, second.engine.stepped(completed()))

    assert seen == Counts(read=3)
    assert end.counts == ITEMS + Counts(read=5)
    assert [one.counts for one in instance.dump.executions] == [
        ITEMS + Counts(read=3),
        end.counts,
    ]


def test_a_completed_step_that_runs_again_counts_from_nothing() -> None:
    instance = Instance([step("a", allow_start_if_complete=True), step("b")])
    first = instance.attempt()
    running(first.until(RunStep, {})).counts = ITEMS
    first.finish({"b": FAILED}, first.engine.stepped(completed()))

    second = instance.attempt()
    again = running(second.until(RunStep, {}))

    assert again.counts == NO_COUNTS
    assert again.attempt == 2
