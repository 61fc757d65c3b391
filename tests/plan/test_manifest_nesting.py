"""Manifests with splits and partitioned steps: formats 3 and 4."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import Chunk, Job, PartitionedStep, Split, Step
from triolet.actors.plan.manifest import read_manifest
from triolet.storage.envelope import canonical_json
from triolet.storage.model.errors import CorruptRecord

from .definitions import Reader, Writer, work

FINGERPRINT_B = "f5ee7c2d6923411c8c068b6c2770b95575256833bddaed1be9c3893324c541a9"


def tasklet(name: str) -> Step:
    return Step(name, work, revision=f"{name}-v1")


def local_scale(max_parallel: int = 1, max_workers: int = 4) -> Job:
    return Job(
        "bounded_local_scale",
        [
            tasklet("prepare"),
            Split(
                "parallel_import",
                [
                    [tasklet("load_accounts"), tasklet("index_accounts")],
                    tasklet("load_orders"),
                ],
                join="parallel_join",
                max_parallel=max_parallel,
            ),
            PartitionedStep(
                "partition_customers",
                tasklet("customer_worker"),
                work,
                10,
                planner_revision="customer-partitioner-v1",
                max_workers=max_workers,
            ),
        ],
    )


MANIFEST_B = compile_job(local_scale()).plan.manifest


@pytest.mark.parametrize("budgets", [(1, 4), (2, 64)])
def test_golden_vector_b(budgets: tuple[int, int]) -> None:
    plan = compile_job(local_scale(*budgets)).plan
    assert plan.format == 3
    assert plan.fingerprint.hex() == FINGERPRINT_B
    assert read_manifest(plan.manifest) == plan


def test_a_manifest_names_what_is_inside_in_declared_order() -> None:
    nodes = {node["id"]: node for node in json.loads(MANIFEST_B)["nodes"]}
    assert [*nodes] == [
        "parallel_import",
        "parallel_join",
        "partition_customers",
        "prepare",
    ]
    split = nodes["parallel_import"]
    assert [[step["id"] for step in branch] for branch in split["branches"]] == [
        ["load_accounts", "index_accounts"],
        ["load_orders"],
    ]
    assert nodes["parallel_join"] == {"id": "parallel_join", "kind": "join"}


@pytest.mark.parametrize(
    ("job", "version"),
    [
        (Job("j", [tasklet("a"), Step("b", Chunk(Reader(), Writer()))]), 2),
        (Job("j", [tasklet("a"), Split("p", [tasklet("l"), tasklet("r")])]), 3),
        (Job("j", [PartitionedStep("p", work, work, 2)]), 3),
        (
            Job(
                "j",
                [
                    Step("a", Chunk(Reader(), Writer())),
                    PartitionedStep("p", work, work, 2),
                ],
            ),
            3,
        ),
        (
            Job(
                "j",
                [
                    PartitionedStep(
                        "p", Chunk(Reader(), Writer()), work, 2, factory=work
                    )
                ],
            ),
            4,
        ),
        (
            Job(
                "j",
                [
                    tasklet("a"),
                    Split("p", [tasklet("l"), Step("r", Chunk(Reader(), Writer()))]),
                ],
            ),
            4,
        ),
        (Job("j", [Step("a", work, restartable=False)]), 4),
        (
            Job(
                "j",
                [
                    tasklet("a"),
                    Split("p", [tasklet("l"), Step("r", work, restartable=False)]),
                ],
            ),
            4,
        ),
        (Job("j", [tasklet("a")], restartable=False), 2),
    ],
)
def test_the_format_is_the_oldest_that_can_say_it(job: Job, version: int) -> None:
    plan = compile_job(job).plan
    assert plan.format == json.loads(plan.manifest)["format"] == version
    assert read_manifest(plan.manifest) == plan


Change = Callable[[dict[str, Any]], object]


def reason_for(change: Change) -> str:
    document = json.loads(MANIFEST_B)
    change(document)
    with pytest.raises(CorruptRecord) as caught:
        read_manifest(canonical_json(document))
    return caught.value.reason


def split(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["nodes"][0]
    return found


def partitioned(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["nodes"][2]
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(format=2),
        lambda document: document.update(format=4),
        lambda document: split(document).update(budget=1),
        lambda document: document["nodes"][1].update(split="parallel_import"),
        lambda document: partitioned(document).update(listeners=[]),
        lambda document: partitioned(document)["worker"].update(kind="worker"),
    ],
)
def test_another_form_of_the_same_plan_is_refused(change: Change) -> None:
    assert reason_for(change) == "it is not in canonical form"


@pytest.mark.parametrize(
    "change",
    [
        lambda document: split(document).pop("join"),
        lambda document: split(document).update(branches={}),
        lambda document: split(document).update(branches=[{}, []]),
        lambda document: split(document).update(failure_policy="wait"),
        lambda document: split(document)["branches"].append(["load"]),
        lambda document: partitioned(document).pop("worker"),
        lambda document: partitioned(document).update(worker=[]),
        lambda document: partitioned(document).update(partition_count=True),
        lambda document: partitioned(document).update(partition_count="10"),
        lambda document: partitioned(document)["start"].pop("start_limit"),
    ],
)
def test_missing_and_mistyped_members_are_refused(change: Change) -> None:
    assert reason_for(change) == "a member is missing or of the wrong type"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda document: split(document)["branches"].pop(),
            "'parallel_import': the number of branches must be 2 to 8, not 1",
        ),
        (
            lambda document: split(document).update(join="prepare"),
            "'parallel_import': its join 'prepare' is no join",
        ),
        (
            lambda document: partitioned(document).update(partition_count=0),
            "'partition_customers': the number of partitions must be 1 to 1024, not 0",
        ),
        (
            lambda document: partitioned(document)["worker"].update(id="prepare"),
            "'prepare': is the id of another node, and of a step inside "
            "'partition_customers'",
        ),
        (
            lambda document: document.update(entry="parallel_import"),
            "'parallel_import': is the entry, but a job cannot begin with a split: "
            "put a step before",
        ),
    ],
)
def test_a_manifest_that_is_no_sound_plan_is_refused(
    change: Change, reason: str
) -> None:
    assert reason_for(change) == reason
