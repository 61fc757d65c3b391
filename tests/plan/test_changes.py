"""The difference of two definitions, as people read it."""

from typing import Any

from attrs import evolve
from hypothesis import given

from triolet.actors.plan.changes import describe_changes
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Chunk,
    Decision,
    Job,
    Node,
    PartitionedStep,
    Split,
    Step,
    StepListener,
)

from .definitions import ElsewhereWriter, Reader, Writer, jobs, work


def changes(before: Node, after: Node) -> tuple[str, ...]:
    return between([before], [after])


def between(before: list[Node], after: list[Node]) -> tuple[str, ...]:
    stored, proposed = (
        compile_job(Job("j", steps)).plan.manifest for steps in (before, after)
    )
    return describe_changes(stored, proposed)


@given(jobs(), jobs())
def test_only_equal_definitions_have_no_changes(one: Job, other: Job) -> None:
    left, right = compile_job(one).plan, compile_job(other).plan
    assert describe_changes(left.manifest, left.manifest) == ()
    found = describe_changes(left.manifest, right.manifest)
    assert bool(found) == (left.fingerprint != right.fingerprint)


def test_nodes_that_came_and_went_are_named() -> None:
    assert between(
        [Step("load", work), Step("report", work)],
        [Step("fetch", work), Step("load", work)],
    ) == (
        "the job begins with 'fetch' instead of 'load'",
        "node 'fetch' was added",
        "step 'load': '*' goes to COMPLETE instead of 'report'",
        "node 'report' was removed",
    )


def test_a_renamed_job_is_named() -> None:
    before, after = (
        compile_job(Job(name, [Step("a", work)])).plan.manifest for name in "jk"
    )
    assert describe_changes(before, after) == ("the job's name is 'k' instead of 'j'",)


def test_settings_of_a_step_are_compared() -> None:
    step = Step("a", work)
    listener = StepListener("audit", before=work, revision="2")
    settings: dict[str, tuple[Any, str]] = {
        "name": ("load", "name 'a' -> 'load'"),
        "revision": ("2", "revision '1' -> '2'"),
        "start_limit": (5, "start limit none -> 5"),
        "allow_start_if_complete": (True, "start if complete refused -> allowed"),
        "restartable": (False, "restart allowed -> refused"),
        "listeners": ([listener], "listener revisions [] -> ['2']"),
    }
    for setting, (value, sentence) in settings.items():
        changed = evolve(step, **{setting: value})
        assert changes(step, changed) == (f"step 'a': {sentence}",)


def test_settings_of_a_chunk_are_compared() -> None:
    chunk = Chunk(Reader(), Writer())
    settings: dict[str, tuple[Any, str]] = {
        "size": (500, "chunk size 1000 -> 500"),
        "in_flight": ("rollback_chunk", "in flight finish_chunk -> rollback_chunk"),
        "writer": (
            ElsewhereWriter(),
            "delivery atomic_same_resource -> at_least_once",
        ),
        "reader_revision": ("2", "reader revision '1' -> '2'"),
        "processor_revision": ("2", "processor revision '1' -> '2'"),
        "writer_revision": ("2", "writer revision '1' -> '2'"),
        "checkpoint_revision": ("2", "checkpoint revision '1' -> '2'"),
    }
    for setting, (value, sentence) in settings.items():
        changed = evolve(chunk, **{setting: value})
        found = changes(Step("a", chunk), Step("a", changed))
        assert found == (f"step 'a': {sentence}",)


def test_a_node_that_became_another_kind_is_named() -> None:
    chunk = Chunk(Reader(), Writer())
    assert changes(Step("a", work), Step("a", chunk)) == (
        "step 'a': work tasklet -> chunk",
    )
    choice = Decision("a", work, then={"*": COMPLETE, "FAILED": FAIL})
    assert changes(Step("a", work), choice) == ("decision 'a' was a step",)


def test_a_decision_and_its_routes_are_compared() -> None:
    before = Decision("a", work, then={"PART": STOP, "FULL": COMPLETE, "*": FAIL})
    after = Decision(
        "a",
        work,
        then={"PART": FAIL, "NONE": STOP, "*": FAIL},
        revision="2",
        input_version=2,
    )
    assert changes(before, after) == (
        "decision 'a': revision '1' -> '2'",
        "decision 'a': input version 1 -> 2",
        "decision 'a': 'FULL' no longer goes to COMPLETE",
        "decision 'a': 'PART' goes to FAIL instead of STOP",
        "decision 'a': 'NONE' goes to STOP, it had no target",
    )


FIRST = Step("a", work)
LEFT, RIGHT = Step("l", work), Step("r", work)


def test_a_split_and_the_steps_in_it_are_compared() -> None:
    split = Split("p", [LEFT, RIGHT])
    settings: dict[str, tuple[Any, tuple[str, ...]]] = {
        "branches": (
            [RIGHT, LEFT],
            ("split 'p': branches [['l'], ['r']] -> [['r'], ['l']]",),
        ),
        "join": (
            "met",
            (
                "node 'met' was added",
                "split 'p': join 'p.join' -> 'met'",
                "node 'p.join' was removed",
            ),
        ),
        "on_failure": (
            "drain_siblings",
            ("split 'p': on failure cancel_siblings -> drain_siblings",),
        ),
        "then": (
            {"*": STOP},
            ("join 'p.join': '*' goes to STOP instead of COMPLETE",),
        ),
        "max_parallel": (2, ()),
    }
    for setting, (value, sentences) in settings.items():
        changed = evolve(split, **{setting: value})
        assert between([FIRST, split], [FIRST, changed]) == sentences
    longer = Split("p", [[LEFT, Step("m", work)], evolve(RIGHT, revision="2")])
    assert between([FIRST, split], [FIRST, longer]) == (
        "node 'm' was added",
        "split 'p': branches [['l'], ['r']] -> [['l', 'm'], ['r']]",
        "step 'r': revision '1' -> '2'",
    )


def test_a_partitioned_step_is_compared() -> None:
    node = PartitionedStep("p", Step("w", work), work, 2)
    settings: dict[str, tuple[Any, str]] = {
        "worker": (Step("w", work, revision="2"), "step 'w': revision '1' -> '2'"),
        "partitions": (3, "partitioned step 'p': partitions 2 -> 3"),
        "name": ("all", "partitioned step 'p': name 'p' -> 'all'"),
        "start_limit": (5, "partitioned step 'p': start limit none -> 5"),
        "allow_start_if_complete": (
            True,
            "partitioned step 'p': start if complete refused -> allowed",
        ),
        "planner_revision": ("2", "partitioned step 'p': planner revision '1' -> '2'"),
        "aggregation_revision": (
            "sum",
            "partitioned step 'p': aggregation revision 'status-and-counts-v1' -> "
            "'sum'",
        ),
        "on_failure": (
            "drain_siblings",
            "partitioned step 'p': on failure cancel_siblings -> drain_siblings",
        ),
    }
    for setting, (value, sentence) in settings.items():
        assert changes(node, evolve(node, **{setting: value})) == (sentence,)
    assert changes(node, evolve(node, max_workers=9)) == ()
    assert changes(node, evolve(node, worker=work)) == (
        "partitioned step 'p': worker 'w' -> 'p.worker'",
        "node 'p.worker' was added",
        "node 'w' was removed",
    )


def test_a_step_that_was_moved_into_a_branch_is_told_of() -> None:
    assert between([FIRST, LEFT, RIGHT], [FIRST, Split("p", [LEFT, RIGHT])]) == (
        "step 'a': '*' goes to 'p' instead of 'l'",
        "step 'l': 'FAILED' no longer goes to FAIL",
        "step 'l': '*' no longer goes to 'r'",
        "node 'p' was added",
        "node 'p.join' was added",
        "step 'r': 'FAILED' no longer goes to FAIL",
        "step 'r': '*' no longer goes to COMPLETE",
    )
    assert changes(FIRST, PartitionedStep("a", work, work, 2)) == (
        "partitioned step 'a' was a step",
        "node 'a.worker' was added",
    )


def test_a_stored_manifest_that_cannot_be_read_is_said_to_be_so() -> None:
    proposed = compile_job(Job("j", [Step("a", work)])).plan.manifest
    assert describe_changes('{"format":5}', proposed) == (
        "the stored definition cannot be compared: "
        "this release reads formats 1 to 4, it has another one",
    )
