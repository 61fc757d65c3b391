"""Stops that say where the next launch goes on."""

from typing import Any

import pytest

from tests.plan.definitions import problems_of, work
from tests.plan.driver import FAILED, Instance, decision, step
from triolet.actors.plan.changes import describe_changes
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    Job,
    Node,
    PartitionedStep,
    Split,
    Step,
    Stop,
)
from triolet.actors.plan.manifest import read_manifest
from triolet.storage.model.execution import NodeTarget
from triolet.storage.model.status import BatchStatus

COMPLETED, STOPPED = BatchStatus.COMPLETED, BatchStatus.STOPPED
AT_Z = Stop(resume_at="z")
Z = step("z")


def split(then: dict[str, Any]) -> Split:
    return Split("p", [step("l"), step("r")], then=then)


# Where it leads


def test_a_decision_that_stopped_is_not_asked_again() -> None:
    instance = Instance([step("a"), decision("d", {"GO": AT_Z}), Z])
    first, second = instance.attempt(), None

    end = first.finish({"d": "GO"})
    second = instance.attempt()
    second.finish({})

    assert (end.status, end.exit_code) == (STOPPED, "STOPPED")
    assert instance.ends == [STOPPED, COMPLETED]
    assert second.trail == ["run z"]
    assert instance.made(first)[-1] == ("d", "DECIDER", "GO", AT_Z)
    assert instance.made(second)[1] == ("d", "DECIDER", "GO", NodeTarget("z"))


def test_a_step_that_stopped_is_not_run_again() -> None:
    instance = Instance([step("a", then={"PART": AT_Z, "*": COMPLETE}), Z])
    instance.attempt().finish({"a": "PART"})

    second = instance.attempt()
    second.finish({})

    assert second.trail == ["run z"]
    assert instance.made(second)[0] == (
        "a",
        "COMPLETED_STEP_REUSE",
        "PART",
        NodeTarget("z"),
    )


@pytest.mark.parametrize(
    "settings", [{}, {"restartable": False}, {"start_limit": 1}, {"listeners": ()}]
)
def test_a_step_that_failed_and_stopped_is_passed_by(settings: dict[str, Any]) -> None:
    failing = step("a", then={"FAILED": AT_Z, "*": COMPLETE}, **settings)
    instance = Instance([failing, Z])
    instance.attempt().finish({"a": FAILED})

    second = instance.attempt()
    second.finish({})

    assert instance.ends == [STOPPED, COMPLETED]
    assert second.trail == ["run z"]
    assert [(one.node, one.reused) for one in second.engine.steps] == [
        ("a", True),
        ("z", False),
    ]


def test_a_failure_behind_the_stop_is_continued_there() -> None:
    instance = Instance([decision("d", {"GO": AT_Z}), Z])
    instance.attempt().finish({"d": "GO"})
    instance.attempt().finish({"z": FAILED})

    third = instance.attempt()
    third.finish({})

    assert instance.ends == [STOPPED, BatchStatus.FAILED, COMPLETED]
    assert third.trail == ["run z"]


def test_a_step_that_runs_in_every_attempt_does_not_move_the_stop() -> None:
    """Its new row is another input of the decision, which is not asked nevertheless."""
    always = step("a", allow_start_if_complete=True)
    instance = Instance([always, decision("d", {"GO": AT_Z}), Z])
    instance.attempt().finish({"d": "GO"})
    instance.attempt().finish({"z": FAILED})

    third = instance.attempt()
    third.finish({})

    assert third.trail == ["run a", "run z"]


def test_what_stopped_is_not_run_again_even_if_it_runs_in_every_attempt() -> None:
    always = step("a", allow_start_if_complete=True, then={"*": AT_Z})
    instance = Instance([always, Z])
    instance.attempt().finish({})

    second = instance.attempt()
    second.finish({})

    assert second.trail == ["run z"]


@pytest.mark.parametrize("left", ["COMPLETED", FAILED])
def test_a_split_that_stopped_is_not_forked_again(left: Any) -> None:
    then = {"FAILED": AT_Z, "*": AT_Z}
    instance = Instance([step("a"), split(then), Z])
    first = instance.attempt()
    first.finish({"l": left})

    second = instance.attempt()
    second.finish({})

    assert instance.ends == [STOPPED, COMPLETED]
    assert second.trail == ["run z"]
    made = [one for one in instance.dump.decisions if one.source == "p.join"]
    assert made[0].digest == made[1].digest
    assert made[1].target == NodeTarget("z")
    assert [one.node for one in second.engine.steps] == ["a", "l", "r", "z"]


def test_a_decider_after_such_a_split_sees_what_came_of_it() -> None:
    stopping = split({"*": Stop(resume_at="d")})
    instance = Instance([step("a"), stopping, decision("d", {"GO": "z"}), Z])
    instance.attempt().finish({"l": "PART"})

    second = instance.attempt()
    second.finish({"d": "GO"})

    assert second.trail == ["ask d", "run z"]


def test_a_partitioned_step_may_stop() -> None:
    parts = PartitionedStep("p", work, work, 2, then={"*": AT_Z})
    instance = Instance([parts, Z])
    instance.attempt().finish({})

    second = instance.attempt()
    second.finish({})

    assert second.trail == ["run z"]


def test_one_instance_may_stop_twice() -> None:
    stops = {"GO": Stop(resume_at="b")}
    instance = Instance(
        [decision("d", stops), step("b"), decision("e", {"GO": AT_Z}), Z]
    )
    trails = []
    for _ in range(3):
        attempt = instance.attempt()
        attempt.finish({"d": "GO", "e": "GO"})
        trails.append(attempt.trail)

    assert instance.ends == [STOPPED, STOPPED, COMPLETED]
    assert trails == [["ask d"], ["run b", "ask e"], ["run z"]]


# The definition


def mistakes(target: Any, *others: Node) -> list[str]:
    return problems_of(Job("j", [Step("a", work, then={"*": target}), *others]))


def test_where_a_stop_leads_must_be_a_node() -> None:
    assert mistakes(Stop("lod"), Step("load", work)) == [
        "'a': '*' resumes at 'lod', which is no node of this job: did you mean 'load'?"
    ]
    assert mistakes(Stop("COMPLETE")) == [
        "'a': '*' resumes at 'COMPLETE', which is no node of this job"
    ]
    assert mistakes(Stop(5)) == [  # type: ignore[arg-type]  # as a user may
        "'a': resume_at= of '*' must be a node id, not int"
    ]


def test_a_stop_cannot_lead_into_a_split() -> None:
    found = mistakes(Stop("l"), Split("p", [Step("l", work), Step("r", work)]))
    assert found == ["'a': '*' resumes at 'l', which is inside 'p': resume at 'p'"]


def test_where_a_stop_leads_is_reached() -> None:
    assert mistakes(AT_Z, Step("z", work)) == []


def test_a_stop_does_not_lead_back() -> None:
    (reason,) = mistakes(Stop("a"))
    assert "leads back to itself" in reason


def test_the_manifest_says_where_a_stop_leads() -> None:
    nodes = [Step("a", work, then={"*": AT_Z}), Step("z", work)]
    plan = compile_job(Job("j", nodes)).plan

    assert plan.format == 4
    assert '{"pattern":"*","source":"a","target":{"resume_at":"z"}}' in plan.manifest
    assert read_manifest(plan.manifest) == plan


def test_a_changed_stop_is_told() -> None:
    def manifest(target: Any) -> str:
        step = Step("a", work, then={"NO": target, "*": "z"})
        return compile_job(Job("j", [step, Step("z", work)])).plan.manifest

    assert describe_changes(manifest(FAIL), manifest(AT_Z)) == (
        "step 'a': 'NO' goes to Stop(resume_at='z') instead of FAIL",
    )
