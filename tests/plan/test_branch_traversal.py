"""The engine of a branch with rules: what it runs, commits and comes to."""

from collections.abc import Sequence

import pytest

from triolet.actors.plan.actions import Decide, RunSplit, RunStep
from triolet.actors.plan.branch_traversal import BranchTraversal
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Node,
    PartitionedStep,
    Split,
)
from triolet.storage.model.execution import NodeTarget, Terminal
from triolet.storage.model.status import BatchStatus

from .driver import (
    FAILED,
    STOPPED,
    UNKNOWN,
    Answers,
    Attempt,
    Instance,
    completed,
    decision,
    step,
)


def instance(
    branch: Sequence[Node], other: Sequence[Node] = (), **settings: object
) -> Instance:
    """Give a job with a split of two branches, whose join leads to the step z."""
    split = Split("s", [branch, other or [step("o")]], **settings)  # type: ignore[arg-type]  # as the caller says
    return Instance([step("a"), split, step("z")])


DECIDING: list[Node] = [
    step("b"),
    decision("d", {"BIG": "c", "SMALL": COMPLETE, "ODD": FAIL, "LATE": STOP}),
    step("c", then={"*": COMPLETE}),
]


def run(one: Instance, **answers: object) -> Attempt:
    attempt = one.attempt()
    attempt.finish(answers)  # type: ignore[arg-type]  # as the caller says
    return attempt


def test_a_decision_routes_within_its_branch() -> None:
    one = instance(DECIDING)
    attempt = run(one, d="BIG")
    assert attempt.trail == ["run a", "run b", "ask d", "run c", "run o", "run z"]
    assert one.ends == [BatchStatus.COMPLETED]
    assert one.made(attempt) == [
        ("a", "STEP_EXIT", "COMPLETED", NodeTarget("s")),
        ("b", "STEP_EXIT", "COMPLETED", NodeTarget("d")),
        ("d", "DECIDER", "BIG", NodeTarget("c")),
        ("c", "STEP_EXIT", "COMPLETED", COMPLETE),
        ("s.join", "SPLIT_AGGREGATE", "COMPLETED", NodeTarget("z")),
        ("z", "STEP_EXIT", "COMPLETED", COMPLETE),
    ]


def ended(*branch: Node, **answers: object) -> tuple[str, str, str | None]:
    """Give status, exit code and failure code of a branch."""
    attempt = instance(branch).attempt()
    action = attempt.until(RunSplit, {})
    assert isinstance(action, RunSplit)
    result = attempt.line(action.branches[0], answers)  # type: ignore[arg-type]  # as the caller says
    failure = result.failure
    return result.status, result.exit_code, None if failure is None else failure.code


def test_terminals_end_the_branch_with_their_status() -> None:
    assert ended(*DECIDING, d="SMALL") == ("COMPLETED", "SMALL", None)
    assert ended(*DECIDING, d="ODD") == ("FAILED", "FAILED", "fail_terminal")
    assert ended(*DECIDING, d="LATE") == ("STOPPED", "STOPPED", None)
    assert ended(*DECIDING, d="else") == ("FAILED", "FAILED", "unmapped_exit")
    assert ended(*DECIDING, d="BIG") == ("COMPLETED", "COMPLETED", None)
    assert ended(*DECIDING, d="BIG", c="PART") == ("COMPLETED", "PART", None)


def test_a_failure_ends_the_branch_unless_it_is_routed() -> None:
    assert ended(*DECIDING, b=FAILED) == ("FAILED", "FAILED", "tasklet_failed")
    routed: list[Node] = [step("b", then={"FAILED": "c", "*": COMPLETE}), step("c")]
    assert ended(*routed, b=FAILED) == ("COMPLETED", "COMPLETED", None)
    assert ended(*routed, b=FAILED, c=FAILED) == ("FAILED", "FAILED", "tasklet_failed")
    forgiven = step("b", then={"*": COMPLETE, "FAILED": COMPLETE})
    assert ended(forgiven, b=FAILED) == ("COMPLETED", "COMPLETED", None)
    refused = step("b", then={"*": FAIL})
    assert ended(refused) == ("FAILED", "FAILED", "fail_terminal")


def test_a_stop_or_an_unknown_outcome_ends_the_branch_whatever_its_rules() -> None:
    all_on = [step("b", then={"*": "c"}), step("c")]
    assert ended(*all_on, b=STOPPED) == ("STOPPED", "STOPPED", None)
    assert ended(*all_on, b=UNKNOWN) == ("UNKNOWN", "UNKNOWN", "tasklet_failed")


def test_a_restart_goes_on_within_the_branch() -> None:
    one = instance(DECIDING)
    first = run(one, d="BIG", c=FAILED)
    assert one.ends == [BatchStatus.FAILED]
    second = run(one)
    assert second.trail == ["run c", "run z"]
    kinds = [(source, kind) for source, kind, _, _ in one.made(second)]
    assert kinds == [
        ("a", "COMPLETED_STEP_REUSE"),
        ("b", "COMPLETED_STEP_REUSE"),
        ("d", "DECIDER"),
        ("c", "STEP_EXIT"),
        ("s.join", "SPLIT_AGGREGATE"),
        ("z", "STEP_EXIT"),
    ]
    cited = [made.reused for made in one.decisions(second)]
    kept = [made.sequence for made in one.decisions(first)][:3]
    assert [ref and ref.sequence for ref in cited] == [*kept, None, None, None]


def test_a_decision_to_stop_is_asked_again() -> None:
    one = instance(DECIDING)
    run(one, d="LATE")
    assert one.ends == [BatchStatus.STOPPED]
    again = run(one, d="SMALL")
    assert again.trail == ["ask d", "run z"]
    assert one.ends[-1] is BatchStatus.COMPLETED


def test_a_decision_at_the_beginning_looks_back_on_what_was_before_the_split() -> None:
    one = instance([decision("d", {"*": COMPLETE})])
    attempt = one.attempt()
    action = attempt.until(RunSplit, {})
    assert isinstance(action, RunSplit)
    asked = action.branches[0].begin()
    assert isinstance(asked, Decide)
    assert asked.preceding is not None
    assert asked.preceding.node == "a"


def test_transitions_are_numbered_by_declaration_not_by_time() -> None:
    branches: list[list[Node]] = [
        [step(f"{name}1"), decision(f"{name}2", {"*": COMPLETE})] for name in "bc"
    ]

    def numbered(backwards: bool) -> list[tuple[int, str]]:
        one = instance(*branches)
        attempt = one.attempt()
        action = attempt.until(RunSplit, {})
        assert isinstance(action, RunSplit)
        answers: Answers = {"b2": "X", "c2": "Y"}
        engines = action.branches[::-1] if backwards else action.branches
        results = [attempt.line(engine, answers) for engine in engines]
        rejoined = results[::-1] if backwards else results
        attempt.finish({}, attempt.engine.joined(rejoined))
        return [(made.sequence, made.source) for made in one.decisions(attempt)]

    assert numbered(backwards=False) == numbered(backwards=True)
    assert numbered(backwards=False) == [
        *enumerate(["a", "b1", "b2", "c1", "c2", "s.join", "z"], 1)
    ]


def engine_of(attempt: Attempt) -> BranchTraversal:
    action = attempt.until(RunSplit, {})
    assert isinstance(action, RunSplit)
    return action.branches[0]


def test_results_are_durable_before_the_decider_is_asked() -> None:
    one = instance(DECIDING)
    attempt = one.attempt()

    def look(happening: str) -> None:
        if happening == "ask d":
            assert one.dump.steps[-1].status is BatchStatus.COMPLETED
            assert one.dump.steps[-1].decision is not None

    attempt.before = look
    attempt.finish({"d": "BIG"})
    assert "ask d" in attempt.trail


def test_a_stop_before_the_decider_is_asked_ends_the_branch() -> None:
    attempt = instance(DECIDING).attempt()
    engine = engine_of(attempt)
    action = attempt.perform(engine.begin(), {}, engine)
    assert isinstance(action, RunStep)
    action = attempt.perform(action, {}, engine)
    engine.stop()
    action = attempt.perform(action, {}, engine)  # the result of b, and its rule
    assert action.result.status is BatchStatus.STOPPED  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [BatchStatus.STOPPED, BatchStatus.FAILED])
def test_the_last_word_of_a_branch_closes_its_step(status: BatchStatus) -> None:
    one = instance(DECIDING)
    attempt = one.attempt()
    engine = engine_of(attempt)
    attempt.perform(engine.begin(), {}, engine)
    command = engine.abort(status, None)
    assert command is not None
    attempt.apply(command)
    assert one.steps[-1] == ("b", status)
    assert command.end is None
    assert engine.abort(status, None) is None


def test_a_branch_that_was_stopped_before_it_began_has_no_rows() -> None:
    attempt = instance(DECIDING).attempt()
    engine = engine_of(attempt)
    engine.stop()
    result = attempt.line(engine, {})
    assert (result.status, result.steps) == (BatchStatus.STOPPED, ())


def test_a_line_ends_by_status_and_a_flow_by_exit_code() -> None:
    odd = completed("FAILED")
    assert ended(step("b"), b=odd) == ("COMPLETED", "FAILED", None)
    flow = step("b", then={"*": COMPLETE})
    assert ended(flow, b=odd) == ("FAILED", "FAILED", "fail_terminal")


def test_the_join_routes_by_what_a_decision_answered() -> None:
    big: list[Node] = [step("b"), decision("d", {"BIG": COMPLETE, "*": FAIL})]
    one = instance(big, then={"BIG": "z", "*": Terminal.FAIL})
    assert run(one, d="BIG").trail[-1] == "run z"


# Splits in branches


def nested(**settings: object) -> Instance:
    inner = Split("i", [step("i1"), [step("i2"), step("i3")]], **settings)  # type: ignore[arg-type]  # as the caller says
    return instance([step("b"), inner, step("c")])


def test_an_inner_split_goes_on_within_the_branch() -> None:
    one = nested()
    attempt = run(one)
    assert " ".join(attempt.trail) == (
        "run a run b run i1 run i2 run i3 run c run o run z"
    )
    assert one.made(attempt) == [
        ("a", "STEP_EXIT", "COMPLETED", NodeTarget("s")),
        ("b", "STEP_EXIT", "COMPLETED", NodeTarget("i")),
        ("i.join", "SPLIT_AGGREGATE", "COMPLETED", NodeTarget("c")),
        ("c", "STEP_EXIT", "COMPLETED", COMPLETE),
        ("s.join", "SPLIT_AGGREGATE", "COMPLETED", NodeTarget("z")),
        ("z", "STEP_EXIT", "COMPLETED", COMPLETE),
    ]


def test_the_failure_of_an_inner_split_is_routed_by_its_join() -> None:
    one = nested()
    attempt = run(one, i3=FAILED)
    assert attempt.trail[-2:] == ["run i3", "run o"]
    assert one.ends == [BatchStatus.FAILED]
    again = run(one)
    assert again.trail == ["run i3", "run c", "run z"]

    one = nested(then={"FAILED": "c", "*": "c"})
    assert run(one, i3=FAILED).trail[-3:] == ["run c", "run o", "run z"]
    assert one.ends == [BatchStatus.COMPLETED]


def test_what_stops_an_inner_split_stops_the_whole() -> None:
    one = nested()
    run(one, i2=STOPPED)
    assert one.ends == [BatchStatus.STOPPED]
    run(one, i2=UNKNOWN)
    assert one.ends[-1] is BatchStatus.UNKNOWN


def test_a_decision_behind_an_inner_split_sees_its_branches() -> None:
    inner = Split("i", [step("i1"), step("i2")])
    nodes: list[Node] = [inner, decision("d", {"*": COMPLETE})]
    attempt = instance(nodes).attempt()
    engine = engine_of(attempt)
    action = engine.begin()
    while not isinstance(action, Decide):
        action = attempt.perform(action, {}, engine)
    assert action.preceding is None
    assert action.split is not None
    assert [branch.steps[0].node for branch in action.split.branches] == ["i1", "i2"]
    assert run(instance(nodes), d="X").trail[-1] == "run z"


def test_numbers_are_reserved_for_branches_at_any_depth() -> None:
    inner = Split("i", [[step("i1", then={"*": COMPLETE})], step("i2")])
    one = instance([step("b"), inner, step("c")], [step("o", then={"*": COMPLETE})])
    attempt = run(one, i1=FAILED)
    made = [(made.sequence, made.source) for made in one.decisions(attempt)]
    # 5 belongs to c, which was not reached.
    assert made == [
        (1, "a"),
        (2, "b"),
        (3, "i1"),
        (4, "i.join"),
        (6, "o"),
        (7, "s.join"),
    ]


# Partitioned steps in branches


def test_a_partitioned_step_in_a_branch_is_planned_once() -> None:
    parts = PartitionedStep("p", lambda ctx: None, lambda ctx: [], 2)
    one = instance([parts, step("b")])
    attempt = run(one, b=FAILED)
    assert attempt.trail[1] == "plan p"
    assert [report.key for report in attempt.engine.partitions] == ["0", "1"]
    again = run(one)
    assert again.trail == ["run b", "run z"]
    reused = [made.reused for made in one.decisions(again) if made.source == "p"]
    assert [ref is not None for ref in reused] == [True]
