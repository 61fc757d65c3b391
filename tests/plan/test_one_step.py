"""Jobs of one step: manifest format 1 and its golden vectors, and what they may be."""

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from triolet.actors.plan.assembly import assemble
from triolet.actors.plan.assembly_errors import ManifestUnsupported
from triolet.actors.plan.changes import describe_changes
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    FAIL,
    STOP,
    Chunk,
    Decision,
    Job,
    Step,
    StepListener,
)
from triolet.actors.plan.manifest import read_manifest
from triolet.actors.plan.one_step import ChunkJob, TaskletJob
from triolet.actors.plan.one_step_manifest import LEGACY_MANIFEST
from triolet.actors.plan.plan import ChunkDeclaration, StepNode
from triolet.storage.envelope import canonical_json
from triolet.storage.model.errors import CorruptRecord

from .definitions import ElsewhereWriter, Reader, problems_of, work

VECTOR_E = (
    '{"component":{"tasklet":"fetch-v1"},"delivery_mode":"best_effort","format":1,'
    '"job":"orders_nightly","kind":"tasklet","restart_state":"none",'
    '"step":"fetch_orders","transaction_boundary":"tasklet_completion"}'
)
FINGERPRINT_E = "78e88cb773c3dd2bc389a5ee40362aed50e9280390412ed253d9dcb755f2389b"
FINGERPRINT_F = "1b6a802e60d288646da5fadc6835b3cdf990b322ef1e6b25f2c00000f8a6034e"

CHUNK_MANIFEST = (
    '{"checkpoint":{"schema":"triolet.position","version":1},"chunk_size":2,'
    '"components":{"checkpoint":"c-v1","processor":"p-v1","reader":"r-v1",'
    '"writer":"w-v1"},"context":{"schema":"triolet.state","version":1},'
    '"delivery_mode":"at_least_once","format":1,"job":"daily_import","kind":"chunk",'
    '"step":"load","transaction_boundary":"chunk"}'
)


def tasklet_job(**settings: Any) -> TaskletJob:
    step = Step("fetch_orders", work, revision="fetch-v1", **settings)
    return TaskletJob("orders_nightly", step)


def chunk_job(**settings: Any) -> ChunkJob:
    chunk = Chunk(
        Reader(),
        ElsewhereWriter(),
        size=2,
        reader_revision="r-v1",
        processor_revision="p-v1",
        writer_revision="w-v1",
        checkpoint_revision="c-v1",
        **settings,
    )
    return ChunkJob("daily_import", Step("load", chunk))


def test_golden_vector_e() -> None:
    plan = compile_job(tasklet_job()).plan
    assert plan.manifest == VECTOR_E
    assert len(plan.manifest) == 206
    assert plan.fingerprint.hex() == FINGERPRINT_E
    assert plan.format == 1
    assert plan.one_step
    assert read_manifest(plan.manifest) == plan


def test_golden_vector_f() -> None:
    assert len(LEGACY_MANIFEST) == 72
    assert sha256(LEGACY_MANIFEST.encode()).hexdigest() == FINGERPRINT_F
    with pytest.raises(CorruptRecord, match="stands for no definition"):
        read_manifest(LEGACY_MANIFEST)


def test_a_chunk_is_written_member_by_member() -> None:
    plan = compile_job(chunk_job()).plan
    assert plan.manifest == CHUNK_MANIFEST
    assert read_manifest(plan.manifest) == plan


def test_the_policy_for_a_chunk_in_flight_is_written_only_when_it_matters() -> None:
    plan = compile_job(chunk_job(in_flight="rollback_chunk")).plan
    assert '"in_flight_policy":"rollback_chunk"' in plan.manifest
    assert read_manifest(plan.manifest) == plan
    assert "in_flight" not in CHUNK_MANIFEST


def test_streams_are_read_and_written_in_order() -> None:
    streams = [{"identity": one, "revision": f"{one}-v1"} for one in ("a", "b")]
    text = changed(CHUNK_MANIFEST, lambda one: one.update(streams=streams))
    plan = read_manifest(text)
    assert plan.manifest == text
    node = plan.nodes["load"]
    assert isinstance(node, StepNode)
    assert isinstance(node.declaration, ChunkDeclaration)
    assert node.declaration.streams == (("a", "a-v1"), ("b", "b-v1"))


def test_start_controls_and_listeners_are_not_part_of_the_definition() -> None:
    listener = StepListener("audit", before=work)
    job = tasklet_job(
        start_limit=3,
        allow_start_if_complete=True,
        restartable=False,
        listeners=[listener],
    )
    compiled = compile_job(job)
    assert compiled.plan.manifest == VECTOR_E
    assert compiled.plan.fingerprint.hex() == FINGERPRINT_E
    assert compiled.steps["fetch_orders"].listeners == (listener,)


@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("COMPLETED", COMPLETE),
        ("PART", COMPLETE),
        ("FAILED", FAIL),
        ("STOPPED", STOP),
    ],
)
def test_the_job_ends_as_its_step_does(code: str, target: object) -> None:
    assert compile_job(tasklet_job()).plan.select("fetch_orders", code) is target
    assert read_manifest(VECTOR_E).select("fetch_orders", code) is target


def test_one_step_may_be_given_as_a_list() -> None:
    step = Step("fetch_orders", work, revision="fetch-v1")
    assert TaskletJob("orders_nightly", [step]) == tasklet_job()


@pytest.mark.parametrize(
    ("job", "problems"),
    [
        (TaskletJob("j", []), ["the TaskletJob must have exactly 1 step, not 0"]),
        (
            ChunkJob("j", [chunk_job().steps[0], Step("b", work)]),
            [
                "the ChunkJob must have exactly 1 step, not 2",
                "'b': its work is not for the ChunkJob: use TaskletJob",
            ],
        ),
        (
            TaskletJob("j", chunk_job().steps),
            ["'load': its work is not for the TaskletJob: use ChunkJob"],
        ),
        (
            TaskletJob("j", [Decision("d", work, then={"*": COMPLETE})]),
            ["'d': the node of the TaskletJob must be a Step, not Decision"],
        ),
        (
            TaskletJob("j", Step("a", work, then={"*": STOP}, name="b", visit_limit=2)),
            [
                "'a': then= has no effect in the TaskletJob, which ends with it",
                "'a': visit_limit= has no effect in the TaskletJob, which comes to it once",
                "'a': name= has no effect in the TaskletJob: its id is its name",
            ],
        ),
        (
            TaskletJob("", Step(" ", work, start_limit=0)),
            [
                "the job name must not be empty",
                "'#1': the node id must not begin or end with white space",
                "'#1': the start limit must be 1 to 4294967295, not 0",
            ],
        ),
    ],
)
def test_what_a_job_of_one_step_may_not_be(job: Job, problems: list[str]) -> None:
    assert [one for one in problems_of(job) if one in problems] == problems


Change = Callable[[dict[str, Any]], object]


def changed(text: str, change: Change) -> str:
    document = json.loads(text)
    change(document)
    return canonical_json(document)


@pytest.mark.parametrize("text", [VECTOR_E, CHUNK_MANIFEST])
@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(extra=1),
        lambda one: one.update(format=2),
        lambda one: one.update(kind="other"),
        lambda one: one.update(step=""),
        lambda one: one.update(job=" x"),
        lambda one: one.update(transaction_boundary="none"),
        lambda one: one.update(delivery_mode="never"),
        lambda one: one.update(streams=[]),
        lambda one: one.pop("step"),
        lambda one: one.pop("kind"),
    ],
)
def test_other_documents_are_refused(text: str, change: Change) -> None:
    with pytest.raises(CorruptRecord):
        read_manifest(changed(text, change))


def test_streams_in_another_order_are_refused() -> None:
    streams = [{"identity": one, "revision": "1"} for one in ("b", "a")]
    with pytest.raises(CorruptRecord, match="not in canonical form"):
        read_manifest(changed(CHUNK_MANIFEST, lambda one: one.update(streams=streams)))


def test_changes_are_described() -> None:
    flow = compile_job(Job("orders_nightly", [tasklet_job().steps[0]])).plan.manifest
    newer = VECTOR_E.replace("fetch-v1", "fetch-v2")
    assert describe_changes(VECTOR_E, newer) == (
        "step 'fetch_orders': revision 'fetch-v1' -> 'fetch-v2'",
    )
    assert describe_changes(VECTOR_E, flow)[0] == (
        "the job is a flow instead of a job of one step"
    )
    assert describe_changes(flow, VECTOR_E)[0] == (
        "the job is a job of one step instead of a flow"
    )


def test_code_cannot_be_bound_to_it() -> None:
    with pytest.raises(ManifestUnsupported) as caught:
        assemble("orders_nightly", VECTOR_E, {"fetch_orders": work})
    assert str(caught.value) == (
        "the manifest given for job 'orders_nightly' cannot be assembled: it is that of "
        "a job of one step: launch a TaskletJob or a ChunkJob"
    )
