"""Loops: the way back, its limits, and how a restart goes round again."""

from typing import Any

import pytest

from tests.plan.definitions import problems_of, work
from tests.plan.driver import (
    FAILED,
    STOPPED,
    Attempt,
    Instance,
    command_of,
    completed,
    decision,
    running,
    step,
)
from triolet.actors.plan.actions import Decide, Finished, RunStep, StepResult
from triolet.actors.plan.changes import describe_changes
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    Decision,
    Job,
    Node,
    PartitionedStep,
    Split,
    Step,
    Stop,
)
from triolet.actors.plan.draft import DECISIONS_MAX
from triolet.actors.plan.manifest import read_manifest
from triolet.storage.model.digests import partition_worker
from triolet.storage.model.execution import Counts, End, NodeTarget
from triolet.storage.model.status import BatchStatus

COMPLETED = BatchStatus.COMPLETED


def round_and_round(limit: int = 3, **settings: Any) -> list[Node]:
    """A loop of two steps and the decision that leads out of it."""
    return [
        step("a", visit_limit=limit, **settings),
        step("b"),
        decision("d", {"AGAIN": "a", "OUT": "z"}),
        step("z"),
    ]


def turning(
    instance: Instance, laps: int, answers: dict[str, Any] | None = None
) -> tuple[Attempt, Finished]:
    """Go round so many times; *answers* are by node and visit: ``b 2``."""
    attempt, given = instance.attempt(), answers or {}
    action = attempt.engine.begin()
    while not isinstance(action, Finished):
        if isinstance(action, Decide):
            attempt.trail.append(f"ask d {action.visit}")
            code = "AGAIN" if action.visit < laps else "OUT"
            action = attempt.engine.decided(action.node, code)
            continue
        here: dict[str, Any] = {}
        for key, value in given.items():
            node, _, visit = key.partition(" ")
            if visit == str(attempt.engine.visit):
                here[node] = value
        action = attempt.perform(action, here)
    return attempt, action


def visits(instance: Instance) -> list[tuple[str, int, str]]:
    return [(one.node, one.visit, one.status.value) for one in instance.dump.steps]


# Going round


def test_every_visit_has_a_row_and_a_decision_of_its_own() -> None:
    instance = Instance(round_and_round())

    attempt, end = turning(instance, 2)

    assert end.status is COMPLETED
    assert visits(instance) == [
        ("a", 1, "COMPLETED"),
        ("b", 1, "COMPLETED"),
        ("a", 2, "COMPLETED"),
        ("b", 2, "COMPLETED"),
        ("z", 1, "COMPLETED"),
    ]
    asked = [one for one in instance.decisions(attempt) if one.source == "d"]
    assert [(one.visit, one.outcome) for one in asked] == [(1, "AGAIN"), (2, "OUT")]
    assert len({one.digest for one in asked}) == 2


def test_a_visit_too_many_fails_the_job() -> None:
    instance = Instance(round_and_round(limit=2))

    attempt, end = turning(instance, 99)

    assert end.status is BatchStatus.FAILED
    assert end.failure is not None
    assert (end.failure.code, end.failure.where) == ("visit_limit_reached", "a")
    assert end.failure.message == (
        "the flow has come to 'a' 2 times, which is its visit_limit, and leads there "
        "again: run the job anew with 'triolet run ... --new' (anew=True); a higher "
        "limit is a changed definition, which only a new instance takes"
    )
    assert attempt.trail[-2:] == ["run b", "ask d 2"]


def test_the_limit_holds_over_restarts() -> None:
    instance = Instance(round_and_round(limit=2))
    turning(instance, 99)

    second, end = turning(instance, 99)

    assert end.failure is not None
    assert end.failure.code == "visit_limit_reached"
    assert second.trail == []


def test_a_decision_alone_may_go_round() -> None:
    turn = Decision("d", work, then={"AGAIN": "d", "OUT": COMPLETE}, visit_limit=5)
    instance = Instance([turn])

    attempt, end = turning(instance, 4)

    assert end.status is COMPLETED
    digests = [one.digest for one in instance.decisions(attempt)]
    assert len(set(digests)) == len(digests) == 4


# Restarts


def test_a_restart_reuses_complete_visits_and_runs_the_rest() -> None:
    """C006."""
    instance = Instance(round_and_round())
    turning(instance, 3, {"b 2": FAILED})

    second, end = turning(instance, 3)

    assert end.status is COMPLETED
    assert second.trail == ["run b", "ask d 2", "run a", "run b", "ask d 3", "run z"]
    assert [(one.node, one.visit, one.reused) for one in second.engine.steps[:5]] == [
        ("a", 1, True),
        ("b", 1, True),
        ("a", 2, True),
        ("b", 2, False),
        ("a", 3, False),
    ]
    cited = [one.reused for one in instance.decisions(second)]
    assert [one is not None for one in cited[:5]] == [True] * 4 + [False]


@pytest.mark.parametrize("point", range(14))
def test_a_stop_at_every_point_is_continued(point: int) -> None:
    instance = Instance(round_and_round())
    attempt = instance.attempt()
    action = attempt.engine.begin()
    for _ in range(point):
        assert not isinstance(action, Finished)
        if isinstance(action, Decide):
            action = attempt.engine.decided(
                action.node, "AGAIN" if action.visit < 2 else "OUT"
            )
        else:
            action = attempt.perform(action, {})
    attempt.engine.stop()
    while not isinstance(action, Finished):
        if isinstance(action, Decide):
            action = attempt.engine.undecided()
        else:
            action = attempt.perform(action, dict.fromkeys("abz", STOPPED))
    if action.status is COMPLETED:
        return

    _, end = turning(instance, 2)

    assert end.status is COMPLETED
    done = [one for one in visits(instance) if one[2] == "COMPLETED"]
    assert [one[:2] for one in done] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
        ("z", 1),
    ]


def test_a_start_limit_is_for_each_visit() -> None:
    instance = Instance(round_and_round(start_limit=1))
    turning(instance, 3, {"b 2": FAILED})

    _, end = turning(instance, 3)

    assert end.status is COMPLETED


def test_a_step_that_runs_in_every_attempt_does_so_in_every_visit() -> None:
    instance = Instance(round_and_round(allow_start_if_complete=True))
    turning(instance, 2, {"z 1": FAILED})

    second, end = turning(instance, 2)

    assert end.status is COMPLETED
    assert second.trail == ["run a", "run a", "run z"]


def test_a_stop_may_lead_back() -> None:
    """Until then the work failed; the next launch prepares it anew."""
    nodes = [
        step("a", visit_limit=3),
        step("b", then={"FAILED": Stop(resume_at="a"), "*": COMPLETE}),
    ]
    instance = Instance(nodes)
    trails = []
    for answer in (FAILED, FAILED, completed()):
        attempt = instance.attempt()
        attempt.finish({"b": answer})
        trails.append(attempt.trail)

    assert trails == [["run a", "run b"]] * 3
    assert instance.ends == [BatchStatus.STOPPED] * 2 + [COMPLETED]
    assert [one[:2] for one in visits(instance)] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
        ("a", 3),
        ("b", 3),
    ]


def test_a_visit_is_taken_back_with_the_write_that_failed() -> None:
    nodes = [step("a", visit_limit=2, then={"FAILED": "a", "AGAIN": "a", "*": "z"})]
    instance = Instance([*nodes, step("z")])
    attempt = instance.attempt()
    action = attempt.engine.begin()
    running(action)
    action = attempt.engine.stepped(completed("AGAIN"))
    start = command_of(action).start
    assert start is not None
    assert start.visit == 2
    # The rows of the first visit cannot be written: it failed, and leads to the second.
    action = attempt.engine.unwritten(FAILED)
    start = command_of(action).start
    assert start is not None
    assert start.visit == 2

    assert attempt.finish({}, action).status is COMPLETED


# States and counts


def test_the_state_of_a_node_is_that_of_its_last_visit() -> None:
    instance = Instance(round_and_round())
    attempt = instance.attempt()
    seen: list[str | None] = []
    action = attempt.engine.begin()
    for lap in (1, 2):
        for node in "ab":
            action = attempt.until(RunStep, {}, action)
            row = running(action)
            assert (row.node.id, row.visit, row.context) == (node, lap, None)
            seen.append(attempt.engine.state_of("a"))
            result = StepResult(
                status=COMPLETED, exit_code="COMPLETED", context=f'"{node}{lap}"'
            )
            action = attempt.engine.stepped(result)
        action = attempt.until(Decide, {}, action)
        assert isinstance(action, Decide)
        action = attempt.engine.decided(action.node, "AGAIN" if lap == 1 else "OUT")

    assert seen == [None, '"a1"', '"a1"', '"a2"']


def test_the_counts_of_a_job_are_those_of_all_visits() -> None:
    instance = Instance(round_and_round())
    first = instance.attempt()
    _count(first, 2, fail="b 2")

    second = instance.attempt()
    end = _count(second, 3)

    assert end.counts == Counts(read=7)


def _count(attempt: Attempt, laps: int, fail: str = "") -> Finished:
    """Every visit of a step reads one item more."""
    action = attempt.engine.begin()
    while not isinstance(action, Finished):
        if isinstance(action, Decide):
            code = "AGAIN" if action.visit < laps else "OUT"
            action = attempt.engine.decided(action.node, code)
        elif isinstance(action, RunStep):
            row = running(action)
            row.counts = Counts(read=1)
            failed = fail == f"{row.node.id} {row.visit}"
            action = attempt.engine.stepped(FAILED if failed else completed())
        else:
            action = attempt.perform(action, {})
    return action


# What stands in a loop


def test_a_split_may_go_round() -> None:
    split = Split("p", [step("l"), step("r")], then={"*": "d", "FAILED": "d"})
    nodes: list[Node] = [
        step("a"),
        split,
        Decision("d", work, then={"AGAIN": "p", "OUT": COMPLETE}, visit_limit=3),
    ]
    instance = Instance(nodes)
    attempt, end = turning(instance, 2, {"r 2": FAILED})
    assert end.status is COMPLETED
    assert attempt.trail == [
        *("run a", "run l", "run r", "ask d 1"),
        *("run l", "run r", "ask d 2"),
    ]
    joins = [one for one in instance.dump.decisions if one.source == "p.join"]
    assert [(one.visit, one.outcome) for one in joins] == [
        (1, "COMPLETED"),
        (2, "FAILED"),
    ]


def test_a_split_goes_round_again_where_it_was_left() -> None:
    split = Split("p", [step("l"), step("r")], then={"*": "d"})
    nodes: list[Node] = [
        step("a"),
        split,
        Decision("d", work, then={"AGAIN": "p", "OUT": COMPLETE}, visit_limit=3),
    ]
    instance = Instance(nodes)
    turning(instance, 2, {"r 2": FAILED})

    second, end = turning(instance, 2)

    assert end.status is COMPLETED
    assert second.trail == ["run r", "ask d 2"]


def test_a_partitioned_step_may_go_round() -> None:
    parts = PartitionedStep("p", work, work, 2, then={"*": "d"}, visit_limit=2)
    nodes: list[Node] = [parts, decision("d", {"AGAIN": "p", "OUT": COMPLETE})]
    instance = Instance(nodes)
    worker = partition_worker("p", "1")
    turning(instance, 2, {f"{worker} 2": FAILED})
    plans = [(one.visit, one.ordinal) for one in instance.dump.partitions]
    assert plans == [(1, 1), (1, 2), (2, 1), (2, 2)]

    second, end = turning(instance, 2)

    assert end.status is COMPLETED
    assert second.trail == [f"run {worker}", "ask d 2"]
    assert [(one.visit, one.reused) for one in second.engine.partitions] == [
        (2, True),
        (2, False),
    ]


# Many visits


def test_a_restart_sends_many_visits_in_several_commands() -> None:
    laps = DECISIONS_MAX
    instance = Instance(round_and_round(limit=laps))
    turning(instance, laps, {"z 1": FAILED})

    second, end = turning(instance, laps)

    assert end.status is COMPLETED
    assert second.trail == ["run z"]
    sizes = [len(one.decisions) for one in second.commands]
    assert max(sizes) == DECISIONS_MAX
    assert sum(sizes) == 3 * laps


def test_decisions_alone_do_not_exhaust_the_stack() -> None:
    turn = Decision("d", work, then={"AGAIN": "d", "OUT": "z"}, visit_limit=5000)
    instance = Instance([turn, step("z")])
    turning(instance, 5000, {"z 1": FAILED})

    second, end = turning(instance, 5000)

    assert end.status is COMPLETED
    assert second.trail == ["run z"]


# The definition


def mistakes(*nodes: Node) -> list[str]:
    return problems_of(Job("j", nodes))


def test_a_loop_needs_a_limit_on_every_way_round() -> None:
    def nodes(**settings: Any) -> list[Node]:
        return [
            Step("a", work, **settings),
            Step("b", work, then={"BACK": "a", "*": "c"}),
            Step("c", work, then={"BACK": "b", "*": COMPLETE}),
        ]

    hint = "; give one of these nodes a visit_limit="
    assert mistakes(*nodes()) == [
        f"'a': leads back to itself without a limit: 'a' -> 'b' -> 'a'{hint}",
        f"'b': leads back to itself without a limit: 'b' -> 'c' -> 'b'{hint}",
    ]
    assert mistakes(*nodes(visit_limit=5)) == [
        f"'b': leads back to itself without a limit: 'b' -> 'c' -> 'b'{hint}"
    ]


@pytest.mark.parametrize("limit", [0, 100_001, True, "3"])
def test_a_limit_is_a_number_within_bounds(limit: Any) -> None:
    (reason,) = mistakes(Step("a", work, then={"*": "a"}, visit_limit=limit))
    assert reason.startswith("'a': the visit limit must be ")


def test_a_limit_has_no_place_inside_of_a_node() -> None:
    inner = Step("l", work, visit_limit=2)
    split = Split("p", [inner, Step("r", work)])
    assert mistakes(Step("a", work), split) == [
        "'l': visit_limit= has no effect inside of a split or a partitioned step: give "
        "it to that node"
    ]


def test_the_manifest_of_a_loop_is_durable() -> None:
    then: dict[str, str | End] = {
        "AGAIN": "d",
        "HOLD": Stop(resume_at="d"),
        "*": COMPLETE,
    }
    turn = Decision("d", work, then=then, visit_limit=5)
    assert compile_job(Job("j", [turn])).plan.manifest == (
        '{"entry":"d","format":4,"job":"j","nodes":[{"decision":{"input_version":1,'
        '"revision":"1"},"id":"d","kind":"decision","visit_limit":5}],"transitions":['
        '{"pattern":"AGAIN","source":"d","target":{"node":"d"}},'
        '{"pattern":"HOLD","source":"d","target":{"resume_at":"d"}},'
        '{"pattern":"*","source":"d","target":{"terminal":"complete"}}]}'
    )


def test_the_manifest_keeps_the_limits() -> None:
    nodes: list[Node] = [
        Step("a", work, visit_limit=2),
        Decision("d", work, then={"*": "p"}, visit_limit=3),
        Split("p", [Step("l", work), Step("r", work)], visit_limit=4),
        PartitionedStep("q", work, work, 2, visit_limit=5, then={"*": "a"}),
    ]
    plan = compile_job(Job("j", nodes)).plan

    assert plan.format == 4
    assert plan.manifest.count('"visit_limit":') == 4
    assert read_manifest(plan.manifest) == plan


def test_a_changed_limit_is_told() -> None:
    def manifest(limit: int | None) -> str:
        return compile_job(Job("j", [Step("a", work, visit_limit=limit)])).plan.manifest

    assert describe_changes(manifest(None), manifest(3)) == (
        "step 'a': visit limit none -> 3",
    )


def test_where_a_loop_leads_is_stored() -> None:
    instance = Instance(round_and_round())
    attempt, _ = turning(instance, 2)
    targets = [one.target for one in instance.decisions(attempt)]
    assert targets.count(NodeTarget("a")) == 1
