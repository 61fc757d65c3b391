"""Steps that run other jobs: what the compiler refuses, and what the manifest keeps."""

import json
from typing import Any

import pytest

from triolet.actors.plan.changes import describe_changes
from triolet.actors.plan.children import DEPTH_MAX
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    Chunk,
    Job,
    Node,
    Parameter,
    PartitionedStep,
    Split,
    Step,
)
from triolet.actors.plan.job_steps import FromParent, JobStep
from triolet.actors.plan.manifest import read_manifest
from triolet.actors.plan.plan import JobDeclaration, StepNode
from triolet.storage.envelope import canonical_json
from triolet.storage.model.errors import CorruptRecord, InvalidValue

from .definitions import Reader, Writer, problems_of, work

CHILD = Job("child", [Step("a", work)])
CHUNKS = Job("chunks", [Step("copy", Chunk(Reader(), Writer()))])
DECLARED = Job(
    "declared",
    [Step("a", work)],
    parameters=[Parameter("day", str), Parameter("token", str, secret=True)],
)


def found(*nodes: Node, **settings: Any) -> list[str]:
    return problems_of(Job("parent", nodes, **settings))


def nested(depth: int) -> Job:
    job = Job("job 1", [Step("a", work)])
    for number in range(2, depth + 1):
        job = Job(f"job {number}", [JobStep("run", job)])
    return job


def test_a_job_of_jobs_is_compiled_with_them() -> None:
    job = compile_job(Job("parent", [Step("x", work), JobStep("run", CHUNKS)]))
    child = job.children["run"]
    assert child.plan == compile_job(CHUNKS).plan
    assert job.components == child.components
    assert len(job.components) == 2
    node = job.plan.nodes["run"]
    assert isinstance(node, StepNode)
    assert node.declaration == JobDeclaration("chunks", child.plan.fingerprint, "1")


def test_the_manifest_is_of_format_4_and_is_read_back() -> None:
    exits = {"FAILED": "LATE", "COMPLETED": "DONE"}
    job = Job(
        "parent",
        [
            JobStep("run", CHILD, exits=exits, then={"*": "both"}, revision="7"),
            Split("both", [JobStep("left", CHILD), JobStep("right", CHILD)]),
        ],
    )
    plan = compile_job(job).plan
    assert plan.format == 4
    assert read_manifest(plan.manifest) == plan
    (written,) = (
        one for one in json.loads(plan.manifest)["nodes"] if one["id"] == "run"
    )
    assert written["step"] == {
        "declaration": {
            "component": "7",
            "exits": exits,
            "fingerprint": compile_job(CHILD).plan.fingerprint.hex(),
            "job": "child",
        },
        "kind": "job",
        "name": "run",
    }


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("fingerprint", "00"),
        ("fingerprint", "no"),
        ("fingerprint", None),
        ("exits", []),
        ("exits", {"FAILED": 5}),
        ("job", ""),
        ("component", "x" * 129),
    ],
)
def test_a_damaged_declaration_is_refused(member: str, value: object) -> None:
    document = json.loads(compile_job(Job("p", [JobStep("run", CHILD)])).plan.manifest)
    document["nodes"][0]["step"]["declaration"][member] = value
    with pytest.raises(CorruptRecord):
        read_manifest(canonical_json(document))


def test_a_changed_child_is_a_changed_parent() -> None:
    changed = Job("child", [Step("a", work, revision="2")])
    before, after = (
        compile_job(Job("parent", [JobStep("run", one)])).plan
        for one in (CHILD, changed)
    )
    assert before.fingerprint != after.fingerprint
    (change,) = describe_changes(before.manifest, after.manifest)
    assert change.startswith("step 'run': definition of the job ")


def test_another_child_and_other_codes_are_told_of() -> None:
    before, after = (
        compile_job(Job("parent", [one])).plan.manifest
        for one in (
            JobStep("run", CHILD),
            JobStep("run", CHUNKS, exits={"COMPLETED": "DONE"}, revision="2"),
        )
    )
    _, *changes = sorted(describe_changes(before, after))
    assert changes == [
        "step 'run': exits {} -> {'COMPLETED': 'DONE'}",
        "step 'run': job 'child' -> 'chunks'",
        "step 'run': revision '1' -> '2'",
    ]


def test_a_step_that_became_a_job_is_told_of() -> None:
    before, after = (
        compile_job(Job("parent", [one])).plan.manifest
        for one in (Step("run", work), JobStep("run", CHILD))
    )
    assert "step 'run': work tasklet -> job" in describe_changes(before, after)


def test_what_is_no_job_is_refused() -> None:
    given: Any = "child"
    assert found(JobStep("run", given)) == ["'run': its job must be a Job, not str"]


def test_a_job_as_the_work_of_a_step_is_refused_with_the_remedy() -> None:
    work: Any = CHILD
    reason = "'run': the work is a job: use JobStep instead of Step"
    assert found(Step("run", work)) == [reason]


def test_mistakes_of_the_child_are_reported_at_the_step() -> None:
    broken = Job("child", [Step("a", work, start_limit=0), Step("b", work, name="")])
    problems = found(JobStep("run", broken))
    assert len(problems) == 2
    assert problems[0] == (
        "'run': its job 'child' has a mistake: 'a': the start limit must be 1 to "
        "4294967295, not 0"
    )


def test_a_job_inside_of_itself_is_refused() -> None:
    reason = "'run': its job 'parent' is, or contains, the job that it is in"
    assert found(JobStep("run", Job("parent", [Step("a", work)]))) == [reason]
    between = Job("between", [JobStep("again", Job("parent", [Step("a", work)]))])
    assert found(JobStep("run", between)) == [reason.replace("parent", "between")]


def test_nesting_is_bounded() -> None:
    assert compile_job(nested(DEPTH_MAX)).children
    (problem,) = problems_of(nested(DEPTH_MAX + 1))
    assert problem == (
        "'run': its job 'job 8' has jobs inside of each other: with this one more than "
        "8, which is the most"
    )


@pytest.mark.parametrize(
    ("exits", "reason"),
    [
        ({"DONE": "X"}, "exits renames 'DONE', but only COMPLETED and FAILED lead"),
        ({"STOPPED": "X"}, "exits renames 'STOPPED', but only COMPLETED and FAILED"),
        ({"COMPLETED": ""}, "the exit code must not be empty"),
        ({"COMPLETED": 5}, "the exit code must be text"),
        ({"FAILED": "LATE"}, "exits renames FAILED, which leads to FAIL by default"),
    ],
)
def test_wrong_exits_are_refused(exits: Any, reason: str) -> None:
    (problem,) = found(JobStep("run", CHILD, exits=exits))
    assert problem.startswith(f"'run': {reason}"), problem


def test_exits_that_are_no_dict_are_refused_at_once() -> None:
    given: Any = ["FAILED"]
    with pytest.raises(InvalidValue, match="exits must be a dict, not list"):
        JobStep("run", CHILD, exits=given)


def test_a_renamed_failure_needs_a_way_also_in_a_branch() -> None:
    late = JobStep("run", CHILD, exits={"FAILED": "LATE"})
    first = Step("first", work)
    (problem,) = found(first, Split("both", [late, Step("b", work)]))
    assert "say with then= of 'both' where the new code leads" in problem
    then = {"LATE": COMPLETE, "FAILED": FAIL, "COMPLETED": COMPLETE}
    assert not found(first, Split("both", [late, Step("b", work)], then=then))
    routed = JobStep("run", CHILD, exits={"FAILED": "LATE"}, then=then)
    assert not found(first, Split("both", [routed, Step("b", work)]))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (5, "the parameters must be a dict or a function, not int"),
        ({}, "what it gives to job 'declared' does not fit: parameter 'day' is req"),
        ({"day": 5, "token": ""}, "what it gives to job 'declared' does not fit: par"),
        ({"dy": "x"}, "what it gives to job 'declared' does not fit: parameter 'dy'"),
        (
            {"day": FromParent("date"), "token": FromParent("token")},
            "FromParent('date'): the job declares no such parameter",
        ),
        (
            {"day": FromParent("number"), "token": FromParent("token")},
            "parameter 'number' is int, but 'day' of its job is str",
        ),
        (
            {"day": FromParent("token"), "token": FromParent("token")},
            "parameter 'token' is secret here, but would not be in its job",
        ),
    ],
)
def test_parameters_that_do_not_fit_are_refused(given: Any, reason: str) -> None:
    offered = [Parameter("number", int), Parameter("token", str, secret=True)]
    (problem,) = found(JobStep("run", DECLARED, parameters=given), parameters=offered)
    assert problem.startswith(f"'run': {reason}"), problem


def test_what_an_undeclared_parent_will_have_is_not_known() -> None:
    day = FromParent("anything")
    step = JobStep("run", DECLARED, parameters={"day": day, "token": "x"})
    assert not found(step)


def test_a_reader_is_not_shared_by_branches_that_run_side_by_side() -> None:
    split = Split("both", [JobStep("left", CHUNKS), JobStep("right", CHUNKS)])
    problems = found(Step("first", work), split)
    assert len(problems) == 2
    assert problems[0].startswith("'both': 'left' and 'right' share a reader or writer")


def test_a_partition_is_not_done_by_a_job() -> None:
    node = PartitionedStep("parts", JobStep("run", CHILD), work, 2)
    assert found(node) == ["'parts': its worker may not run a job"]
