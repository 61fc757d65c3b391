"""The manifest: a plan as canonical JSON, byte for byte; it has a graph from format 2 on.

Everything that selects or reinterprets durable state is in it; budgets, labels and
timeouts never are. Its SHA-256 is the fingerprint, so that a changed byte is a
changed definition.
"""

import json
from hashlib import sha256

from ...storage.codec import canonical_json
from ...storage.model.errors import CorruptRecord, TrioletError
from ...storage.model.execution import NodeTarget, Target, Terminal
from ...storage.model.json import Json, JsonObject
from ...storage.model.names import NameKind, check_name
from .graph import Graph, problems_of
from .node_documents import items_at, member_at, node_document, read_node, text_at
from .one_step_manifest import LEGACY_MANIFEST, one_step_plan, read_one_step
from .plan import (
    ONE_STEP,
    ChunkDeclaration,
    DecisionNode,
    PartitionedNode,
    Plan,
    StepNode,
    Transition,
    in_evaluation_order,
    steps_inside,
)

FORMATS = range(1, 5)
"""1 is a job of one step; 2 is a graph of steps and decisions; 3 has splits or partitioned steps, too; in 4 some
of the steps inside of those are chunks, a planner says how many partitions it is, or a
step may not be restarted."""
MANIFEST_BYTES_MAX = 1_048_576


def plan_of(job: str, graph: Graph) -> Plan:
    """Make the plan of a sound graph: put it in order, encode it, digest it."""
    transitions = {
        source: in_evaluation_order(every)
        for source, every in graph.transitions.items()
    }
    version = _format_of(graph)
    document: JsonObject = {
        "entry": graph.entry,
        "format": version,
        "job": job,
        "nodes": [node_document(graph.nodes[name]) for name in sorted(graph.nodes)],
        "transitions": [
            _transition_document(source, one)
            for source in sorted(transitions)
            for one in transitions[source]
        ],
    }
    manifest = canonical_json(document, "the manifest")
    fingerprint = sha256(manifest.encode()).digest()
    return Plan(
        job, graph.entry, graph.nodes, transitions, manifest, fingerprint, version
    )


def _format_of(graph: Graph) -> int:
    """Find the oldest format that can say everything."""
    nodes = graph.nodes.values()
    inside = [step for node in nodes for step in steps_inside(node)]
    steps = [node for node in nodes if isinstance(node, StepNode)]
    divided = [node for node in nodes if isinstance(node, PartitionedNode)]
    if (
        any(isinstance(step.declaration, ChunkDeclaration) for step in inside)
        or any(node.partition_count is None for node in divided)
        or not all(step.restartable for step in (*steps, *inside))
    ):
        return 4
    plain = (StepNode, DecisionNode)
    return 2 if all(isinstance(node, plain) for node in nodes) else 3


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
    if text == LEGACY_MANIFEST:
        raise _corrupt("it stands for no definition, and so describes no job")
    document = _parse(text)
    found = document.get("format")
    if found not in FORMATS or isinstance(found, bool):
        known = f"{FORMATS[0]} to {FORMATS[-1]}"
        raise _corrupt(f"this release reads formats {known}, it has another one")
    try:
        job = check_name(text_at(document, "job"), NameKind.JOB)
        graph = read_one_step(document) if found == ONE_STEP else _graph(document)
        if problem := next(problems_of(graph), None):
            raise problem
        plan = (one_step_plan if found == ONE_STEP else plan_of)(job, graph)
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


def _graph(document: JsonObject) -> Graph:
    nodes = map(read_node, items_at(document, "nodes"))
    transitions: dict[str, tuple[Transition, ...]] = {}
    for one in items_at(document, "transitions"):
        source = text_at(one, "source")
        following = Transition(text_at(one, "pattern"), _read_target(one))
        transitions[source] = (*transitions.get(source, ()), following)
    entry = text_at(document, "entry")
    return Graph(entry, {node.id: node for node in nodes}, transitions)


def _read_target(transition: Json) -> Target:
    target = member_at(transition, "target")
    if isinstance(target, dict) and "node" in target:
        return NodeTarget(text_at(target, "node"))
    return Terminal(text_at(target, "terminal"))
