"""Manifests: the bytes are a contract, and a reader refuses all others."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import (
    COMPLETE,
    STOP,
    Chunk,
    Decision,
    Job,
    Node,
    Step,
)
from triolet.actors.plan.graph import Graph
from triolet.actors.plan.manifest import plan_of, read_manifest
from triolet.actors.plan.plan import (
    ChunkDeclaration,
    DeliveryMode,
    StepNode,
    TaskletDeclaration,
    Transition,
)
from triolet.storage.envelope import Schema
from triolet.storage.model.errors import CorruptRecord
from triolet.storage.model.execution import NodeTarget, Terminal

from .definitions import Reader, Writer, jobs, work

VECTOR_C = (
    '{"entry":"fetch","format":2,"job":"orders_nightly","nodes":[{"decision":'
    '{"input_version":1,"revision":"route-v1"},"id":"choose","kind":"decision"},'
    '{"id":"fetch","kind":"step","listeners":[],"policy":null,"start":'
    '{"allow_start_if_complete":false,"start_limit":4294967295},"step":{"declaration":'
    '{"component":"fetch-v1","delivery_mode":"best_effort","transaction_boundary":'
    '"tasklet_completion"},"kind":"tasklet","name":"fetch_orders"}}],"transitions":['
    '{"pattern":"FULL","source":"choose","target":{"terminal":"complete"}},'
    '{"pattern":"*","source":"choose","target":{"terminal":"stop"}},'
    '{"pattern":"FAILED","source":"fetch","target":{"terminal":"fail"}},'
    '{"pattern":"*","source":"fetch","target":{"node":"choose"}}]}'
)
FINGERPRINT_C = "1a99148fb2caa3521e1dbb904b1d468659d02a9d60f127adcdc1295352a9163a"
FINGERPRINT_D = "c0ea69669657cb8ec425801588a1f042608d8785333ad7d38d8a1f7ed5d8557f"


def orders_nightly() -> Job:
    nodes: list[Node] = [
        Step("fetch", work, name="fetch_orders", revision="fetch-v1"),
        Decision(
            "choose", work, then={"*": STOP, "FULL": COMPLETE}, revision="route-v1"
        ),
    ]
    return Job("orders_nightly", nodes)


def test_golden_vector_c() -> None:
    plan = compile_job(orders_nightly()).plan
    assert plan.manifest == VECTOR_C
    assert len(plan.manifest) == 710
    assert plan.fingerprint.hex() == FINGERPRINT_C
    assert plan.format == 2


def test_golden_vector_d() -> None:
    chunk = ChunkDeclaration(
        size=2,
        delivery=DeliveryMode.ATOMIC,
        reader_revision="reader-v1",
        processor_revision="processor-v1",
        writer_revision="writer-v1",
        checkpoint_revision="checkpoint-v1",
        checkpoint=Schema("test.position"),
        context=Schema("test.context"),
    )
    failing = Transition("FAILED", Terminal.FAIL)
    graph = Graph(
        "load",
        {
            "load": StepNode("load", "load", chunk),
            "report": StepNode("report", "report", TaskletDeclaration("report-v1")),
        },
        {
            "load": (Transition("*", NodeTarget("report")), failing),
            "report": (Transition("*", Terminal.COMPLETE), failing),
        },
    )
    plan = plan_of("daily_import", graph)
    assert plan.fingerprint.hex() == FINGERPRINT_D
    assert read_manifest(plan.manifest) == plan


@given(jobs())
def test_a_manifest_reads_back_as_its_plan(job: Job) -> None:
    plan = compile_job(job).plan
    again = read_manifest(plan.manifest)
    assert again == plan
    assert again.transitions == plan.transitions
    assert again.embedded == plan.embedded


Change = Callable[[dict[str, Any]], object]


def reason_for(text: str) -> str:
    with pytest.raises(CorruptRecord) as caught:
        read_manifest(text)
    return caught.value.reason


def changed(change: Change) -> str:
    document = json.loads(VECTOR_C)
    change(document)
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )


def step(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["nodes"][1]
    return found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("\ud800", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ('"' + "a" * 1_048_576 + '"', "it has more than 1048576 bytes"),
        (VECTOR_C + " ", "it is not in canonical form"),
        (VECTOR_C.replace(":", ": "), "it is not in canonical form"),
        (VECTOR_C.replace("FULL", "\\u0046ULL"), "it is not in canonical form"),
        (
            VECTOR_C.replace('"format":2', '"format":2.0'),
            "it is not in canonical form",
        ),
    ],
)
def test_other_bytes_are_refused(text: str, reason: str) -> None:
    assert reason_for(text) == reason


@pytest.mark.parametrize("found", [None, 0, 5, "2", True, []])
def test_other_formats_are_refused(found: object) -> None:
    reason = reason_for(changed(lambda document: document.update(format=found)))
    assert reason == "this release reads formats 1 to 4, it has another one"


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(extra=1),
        lambda document: step(document).update(policy={}),
        lambda document: document["nodes"].reverse(),
        lambda document: document["transitions"].reverse(),
        lambda document: document["nodes"].append(document["nodes"][1]),
        lambda document: document["transitions"][0]["target"].update(node="fetch"),
    ],
)
def test_a_document_that_says_more_or_in_another_order_is_refused(
    change: Change,
) -> None:
    assert reason_for(changed(change)) != ""


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("job"),
        lambda document: document.update(job=7),
        lambda document: document.update(nodes={}),
        lambda document: document.update(nodes=[5]),
        lambda document: step(document).pop("id"),
        lambda document: step(document)["start"].update(start_limit=True),
        lambda document: step(document)["start"].update(start_limit=1.0),
        lambda document: step(document)["start"].update(allow_start_if_complete=0),
        lambda document: step(document)["step"].update(kind="chunk"),
        lambda document: document["transitions"][0].update(target={"terminal": "end"}),
        lambda document: document["transitions"][0].update(target="complete"),
    ],
)
def test_missing_and_mistyped_members_are_refused(change: Change) -> None:
    reason = reason_for(changed(change))
    assert reason == "a member is missing or of the wrong type"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda document: document.update(job=""),
            "the job name must not be empty",
        ),
        (
            lambda document: document["nodes"][0].update(id=""),
            "the node id must not be empty",
        ),
        (
            lambda document: document.update(entry="b"),
            "the entry 'b' is no node",
        ),
        (
            lambda document: step(document)["start"].update(start_limit=0),
            "'fetch': the start limit must be 1 to 4294967295, not 0",
        ),
        (
            lambda document: document["transitions"].pop(3),
            "'choose': is never reached from the entry 'fetch'",
        ),
        (
            lambda document: document["transitions"][3].update(source="nobody"),
            "'nobody': is the source of transitions, but is no node",
        ),
        (
            lambda document: document["transitions"][3]["target"].update(node="fetch"),
            "'fetch': leads back to itself without a limit: 'fetch' -> 'fetch'; "
            "give one of these nodes a visit_limit=",
        ),
    ],
)
def test_a_manifest_that_is_no_sound_plan_is_refused(
    change: Change, reason: str
) -> None:
    assert reason_for(changed(change)) == reason


def test_the_policy_for_a_chunk_in_flight_is_written_only_when_it_matters() -> None:
    def manifest(policy: str) -> str:
        chunk = Chunk(Reader(), Writer(), in_flight=policy)
        return compile_job(Job("j", [Step("a", chunk)])).plan.manifest

    assert "in_flight" not in manifest("finish_chunk")
    assert '"in_flight_policy":"rollback_chunk"' in manifest("rollback_chunk")
    spelled_out = manifest("rollback_chunk").replace("rollback_chunk", "finish_chunk")
    assert reason_for(spelled_out) == "it is not in canonical form"
