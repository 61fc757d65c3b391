"""The manifest: a plan as canonical JSON, format 2, byte for byte.

Everything that selects or reinterprets durable state is in it; budgets, labels and
timeouts never are. Its SHA-256 is the fingerprint, so that a changed byte is a
changed definition.
"""

import json
from collections.abc import Iterator
from hashlib import sha256

from ...storage.codec import Schema, canonical_json
from ...storage.model.errors import CorruptRecord, TrioletError
from ...storage.model.execution import NodeTarget, Target, Terminal
from ...storage.model.json import Json, JsonObject
from ...storage.model.names import NameKind, check_name
from .definition import InFlight
from .graph import Graph, problems_of
from .plan import (
    ChunkDeclaration,
    DecisionNode,
    DeliveryMode,
    Plan,
    PlanNode,
    StepNode,
    TaskletDeclaration,
    Transition,
    in_evaluation_order,
)

FORMAT = 2
MANIFEST_BYTES_MAX = 1_048_576

_TASKLET: JsonObject = {
    "delivery_mode": "best_effort",
    "transaction_boundary": "tasklet_completion",
}


def plan_of(job: str, graph: Graph) -> Plan:
    """Make the plan of a sound graph: put it in order, encode it, digest it."""
    transitions = {
        source: in_evaluation_order(every)
        for source, every in graph.transitions.items()
    }
    document: JsonObject = {
        "entry": graph.entry,
        "format": FORMAT,
        "job": job,
        "nodes": [_node_document(graph.nodes[name]) for name in sorted(graph.nodes)],
        "transitions": [
            _transition_document(source, one)
            for source in sorted(transitions)
            for one in transitions[source]
        ],
    }
    manifest = canonical_json(document, "the manifest")
    fingerprint = sha256(manifest.encode()).digest()
    return Plan(
        job, graph.entry, graph.nodes, transitions, manifest, fingerprint, FORMAT
    )


def _node_document(node: PlanNode) -> JsonObject:
    if isinstance(node, DecisionNode):
        decision: JsonObject = {
            "input_version": node.input_version,
            "revision": node.revision,
        }
        return {"decision": decision, "id": node.id, "kind": "decision"}
    is_chunk = isinstance(node.declaration, ChunkDeclaration)
    return {
        "id": node.id,
        "kind": "step",
        "listeners": list(node.listeners),
        "policy": None,
        "start": {
            "allow_start_if_complete": node.allow_start_if_complete,
            "start_limit": node.start_limit,
        },
        "step": {
            "declaration": _declaration_document(node.declaration),
            "kind": "chunk" if is_chunk else "tasklet",
            "name": node.name,
        },
    }


def _declaration_document(one: TaskletDeclaration | ChunkDeclaration) -> JsonObject:
    if isinstance(one, TaskletDeclaration):
        return {"component": one.revision, **_TASKLET}
    document: JsonObject = {
        "checkpoint": _schema_document(one.checkpoint),
        "components": {
            "checkpoint": one.checkpoint_revision,
            "processor": one.processor_revision,
            "reader": one.reader_revision,
            "writer": one.writer_revision,
        },
        "context": _schema_document(one.context),
        "delivery_mode": one.delivery.value,
        "size": one.size,
        "transaction_boundary": "chunk",
    }
    if one.in_flight is not InFlight.FINISH_CHUNK:
        document["in_flight_policy"] = one.in_flight.value
    return document


def _schema_document(schema: Schema) -> JsonObject:
    return {"schema": schema.id, "version": schema.version}


def _transition_document(source: str, one: Transition) -> JsonObject:
    return {
        "pattern": one.pattern,
        "source": source,
        "target": _target_document(one.target),
    }


def _target_document(target: Target) -> JsonObject:
    if isinstance(target, Terminal):
        return {"terminal": target.value}
    return {"node": target.node}


def read_manifest(text: str) -> Plan:
    """Read a stored manifest back into the plan that it was made of.

    Raises:
        CorruptRecord: When it is too large, not a canonical JSON object, of an
            unknown format, or does not describe a sound plan.
    """
    document = _parse(text)
    found = document.get("format")
    if found != FORMAT or isinstance(found, bool):
        raise _corrupt(f"this release reads format {FORMAT}, it has another one")
    try:
        job = check_name(_text(document, "job"), NameKind.JOB)
        graph = _graph(document)
        if problem := next(problems_of(graph), None):
            raise problem
        plan = plan_of(job, graph)
    except TrioletError as exc:
        raise _corrupt(str(exc)) from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise _corrupt("a member is missing or of the wrong type") from exc
    # Whatever was overlooked while reading is missing from the copy.
    if plan.manifest != text:
        raise _corrupt("it is not in canonical form")
    return plan


def _corrupt(reason: str) -> CorruptRecord:
    return CorruptRecord("a manifest", reason)


def _parse(text: str) -> JsonObject:
    try:
        if len(text.encode()) > MANIFEST_BYTES_MAX:
            raise _corrupt(f"it has more than {MANIFEST_BYTES_MAX} bytes")
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _corrupt("it is not JSON") from None
    if not isinstance(document, dict):
        raise _corrupt("it is not a JSON object")
    return document


def _member(value: Json, *path: str) -> Json:
    for name in path:
        if not isinstance(value, dict):
            raise TypeError(name)
        value = value[name]
    return value


def _text(value: Json, *path: str) -> str:
    found = _member(value, *path)
    if not isinstance(found, str):
        raise TypeError(path)
    return found


def _number(value: Json, *path: str) -> int:
    found = _member(value, *path)
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(path)
    return found


def _items(value: Json, *path: str) -> Iterator[Json]:
    found = _member(value, *path)
    if not isinstance(found, list):
        raise TypeError(path)
    return iter(found)


def _graph(document: JsonObject) -> Graph:
    nodes = map(_read_node, _items(document, "nodes"))
    transitions: dict[str, tuple[Transition, ...]] = {}
    for one in _items(document, "transitions"):
        source = _text(one, "source")
        following = Transition(_text(one, "pattern"), _read_target(one))
        transitions[source] = (*transitions.get(source, ()), following)
    entry = _text(document, "entry")
    return Graph(entry, {node.id: node for node in nodes}, transitions)


def _read_target(transition: Json) -> Target:
    target = _member(transition, "target")
    if isinstance(target, dict) and "node" in target:
        return NodeTarget(_text(target, "node"))
    return Terminal(_text(target, "terminal"))


def _read_node(node: Json) -> PlanNode:
    if _text(node, "kind") == "decision":
        return DecisionNode(
            _text(node, "id"),
            _text(node, "decision", "revision"),
            _number(node, "decision", "input_version"),
        )
    allow = _member(node, "start", "allow_start_if_complete")
    if not isinstance(allow, bool):
        raise TypeError("allow_start_if_complete")
    return StepNode(
        _text(node, "id"),
        _text(node, "step", "name"),
        _read_declaration(_member(node, "step")),
        _number(node, "start", "start_limit"),
        allow,
        tuple(_text(one) for one in _items(node, "listeners")),
    )


def _read_declaration(step: Json) -> TaskletDeclaration | ChunkDeclaration:
    one = _member(step, "declaration")
    if _text(step, "kind") == "tasklet":
        return TaskletDeclaration(_text(one, "component"))
    in_flight = InFlight.FINISH_CHUNK
    if isinstance(one, dict) and "in_flight_policy" in one:
        in_flight = InFlight(_text(one, "in_flight_policy"))
    return ChunkDeclaration(
        size=_number(one, "size"),
        delivery=DeliveryMode(_text(one, "delivery_mode")),
        in_flight=in_flight,
        reader_revision=_text(one, "components", "reader"),
        processor_revision=_text(one, "components", "processor"),
        writer_revision=_text(one, "components", "writer"),
        checkpoint_revision=_text(one, "components", "checkpoint"),
        checkpoint=_read_schema(_member(one, "checkpoint")),
        context=_read_schema(_member(one, "context")),
    )


def _read_schema(schema: Json) -> Schema:
    return Schema(_text(schema, "schema"), _number(schema, "version"))
