"""The graph of a plan as it stands in its manifest, written and read.

What the written form overlooks is found by whoever reads: the bytes then differ.
"""

from collections.abc import Iterator

from attrs import evolve

from ...storage.envelope import Schema
from ...storage.model.execution import NodeTarget, Stop, Target, Terminal
from ...storage.model.json import Json, JsonObject
from .definition import FailurePolicy, InFlight
from .plan import (
    Branch,
    ChunkDeclaration,
    DecisionNode,
    Declaration,
    DeliveryMode,
    Graph,
    JobDeclaration,
    JoinNode,
    PartitionedNode,
    PlanNode,
    SplitNode,
    StepNode,
    TaskletDeclaration,
    Transition,
    visit_limit_of,
)

_TASKLET: JsonObject = {
    "delivery_mode": "best_effort",
    "transaction_boundary": "tasklet_completion",
}


_WORK_KINDS: dict[type, str] = {
    TaskletDeclaration: "tasklet",
    ChunkDeclaration: "chunk",
    JobDeclaration: "job",
}


def graph_document(graph: Graph) -> JsonObject:
    """Write the nodes and transitions of a job, or of a branch that is a graph."""
    return {
        "entry": graph.entry,
        "nodes": [_node_document(graph.nodes[name]) for name in sorted(graph.nodes)],
        "transitions": [
            _transition_document(source, one)
            for source in sorted(graph.transitions)
            for one in graph.transitions[source]
        ],
    }


def _transition_document(source: str, one: Transition) -> JsonObject:
    return {
        "pattern": one.pattern,
        "source": source,
        "target": _target_document(one.target),
    }


def _target_document(target: Target) -> JsonObject:
    match target:
        case NodeTarget(node):
            return {"node": node}
        case Stop(node):
            return {"resume_at": node}
        case Terminal():
            return {"terminal": target.value}


def _branch_document(branch: Branch) -> Json:
    if isinstance(branch, Graph):
        return graph_document(branch)
    return list(map(_step_document, branch))


def _node_document(node: PlanNode) -> JsonObject:
    document = _document(node)
    limit = visit_limit_of(node)
    if limit is not None:
        document["visit_limit"] = limit
    return document


def _document(node: PlanNode) -> JsonObject:
    match node:
        case StepNode():
            return _step_document(node)
        case DecisionNode():
            decision: JsonObject = {
                "input_version": node.input_version,
                "revision": node.revision,
            }
            return {"decision": decision, "id": node.id, "kind": "decision"}
        case SplitNode():
            return {
                "branches": list(map(_branch_document, node.branches)),
                "failure_policy": node.failure_policy.value,
                "id": node.id,
                "join": node.join,
                "kind": "split",
            }
        case JoinNode():
            return {"id": node.id, "kind": "join"}
        case PartitionedNode():
            return {
                "aggregation": node.aggregation,
                "failure_policy": node.failure_policy.value,
                "id": node.id,
                "kind": "partitioned_step",
                "partition_count": node.partition_count,
                "partitioner": node.partitioner,
                "start": _start_document(node),
                "step_name": node.step_name,
                "worker": _step_document(node.worker),
            }


def _step_document(node: StepNode) -> JsonObject:
    return {
        "id": node.id,
        "kind": "step",
        "listeners": list(node.listeners),
        "policy": None,
        "start": _start_document(node),
        "step": {
            "declaration": declaration_document(node.declaration),
            "kind": _WORK_KINDS[type(node.declaration)],
            "name": node.name,
        },
    }


def _start_document(node: StepNode | PartitionedNode) -> JsonObject:
    start: JsonObject = {
        "allow_start_if_complete": node.allow_start_if_complete,
        "start_limit": node.start_limit,
    }
    if isinstance(node, StepNode) and not node.restartable:
        start["restartable"] = False
    return start


def declaration_document(one: Declaration) -> JsonObject:
    """Write what a step does."""
    if isinstance(one, JobDeclaration):
        return {
            "component": one.revision,
            "exits": dict(one.exits),
            "fingerprint": one.fingerprint.hex(),
            "job": one.job,
        }
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


def read_graph(document: Json) -> Graph:
    """Read the nodes and transitions of a job, or of a branch that is a graph.

    Raises:
        KeyError, TypeError, ValueError: A member is missing or of the wrong type.
        RecursionError: Splits stand in each other too deeply.
    """
    nodes = map(_read_node, items_at(document, "nodes"))
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
    if isinstance(target, dict) and "resume_at" in target:
        return Stop(text_at(target, "resume_at"))
    return Terminal(text_at(target, "terminal"))


def _read_branch(branch: Json) -> Branch:
    if isinstance(branch, dict):
        return read_graph(branch)
    return tuple(map(_read_step, items_at(branch)))


def _read_node(node: Json) -> PlanNode:
    read = _read_kind(node)
    limited = isinstance(node, dict) and "visit_limit" in node
    if isinstance(read, JoinNode) or not limited:
        return read
    return evolve(read, visit_limit=number_at(node, "visit_limit"))


def _read_kind(node: Json) -> PlanNode:
    match text_at(node, "kind"):
        case "decision":
            return DecisionNode(
                text_at(node, "id"),
                text_at(node, "decision", "revision"),
                number_at(node, "decision", "input_version"),
            )
        case "split":
            return SplitNode(
                text_at(node, "id"),
                tuple(map(_read_branch, items_at(node, "branches"))),
                text_at(node, "join"),
                FailurePolicy(text_at(node, "failure_policy")),
            )
        case "join":
            return JoinNode(text_at(node, "id"))
        case "partitioned_step":
            return _read_partitioned(node)
        case _:
            return _read_step(node)


def _read_partitioned(node: Json) -> PartitionedNode:
    return PartitionedNode(
        id=text_at(node, "id"),
        step_name=text_at(node, "step_name"),
        worker=_read_step(member_at(node, "worker")),
        partition_count=_read_count(node),
        partitioner=text_at(node, "partitioner"),
        aggregation=text_at(node, "aggregation"),
        failure_policy=FailurePolicy(text_at(node, "failure_policy")),
        start_limit=number_at(node, "start", "start_limit"),
        allow_start_if_complete=_read_allowed(node),
    )


def _read_count(node: Json) -> int | None:
    free = member_at(node, "partition_count") is None
    return None if free else number_at(node, "partition_count")


def _read_step(node: Json) -> StepNode:
    return StepNode(
        text_at(node, "id"),
        text_at(node, "step", "name"),
        read_declaration(member_at(node, "step")),
        number_at(node, "start", "start_limit"),
        _read_allowed(node),
        tuple(text_at(one) for one in items_at(node, "listeners")),
        _read_restartable(node),
    )


def _read_restartable(node: Json) -> bool:
    # Only False is ever written.
    start = member_at(node, "start")
    return not isinstance(start, dict) or "restartable" not in start


def _read_allowed(node: Json) -> bool:
    allow = member_at(node, "start", "allow_start_if_complete")
    if not isinstance(allow, bool):
        raise TypeError("allow_start_if_complete")
    return allow


def read_declaration(
    step: Json, streams: tuple[tuple[str, str], ...] = ()
) -> Declaration:
    """Read what a step does; *streams* stand elsewhere, if at all.

    Raises:
        KeyError, TypeError, ValueError: A member is missing or of the wrong type.
    """
    one = member_at(step, "declaration")
    if text_at(step, "kind") == "job":
        return _read_job(one)
    if text_at(step, "kind") == "tasklet":
        return TaskletDeclaration(text_at(one, "component"))
    in_flight = InFlight.FINISH_CHUNK
    if isinstance(one, dict) and "in_flight_policy" in one:
        in_flight = InFlight(text_at(one, "in_flight_policy"))
    return ChunkDeclaration(
        size=number_at(one, "size"),
        delivery=DeliveryMode(text_at(one, "delivery_mode")),
        in_flight=in_flight,
        reader_revision=text_at(one, "components", "reader"),
        processor_revision=text_at(one, "components", "processor"),
        writer_revision=text_at(one, "components", "writer"),
        checkpoint_revision=text_at(one, "components", "checkpoint"),
        checkpoint=_read_schema(member_at(one, "checkpoint")),
        context=_read_schema(member_at(one, "context")),
        streams=streams,
    )


def _read_job(one: Json) -> JobDeclaration:
    exits = member_at(one, "exits")
    if not isinstance(exits, dict):
        raise TypeError("exits")
    return JobDeclaration(
        text_at(one, "job"),
        bytes.fromhex(text_at(one, "fingerprint")),
        text_at(one, "component"),
        tuple((code, text_at(exits, code)) for code in sorted(exits)),
    )


def _read_schema(schema: Json) -> Schema:
    return Schema(text_at(schema, "schema"), number_at(schema, "version"))


def member_at(value: Json, *path: str) -> Json:
    """Give what stands at the end of a path of members."""
    for name in path:
        if not isinstance(value, dict):
            raise TypeError(name)
        value = value[name]
    return value


def text_at(value: Json, *path: str) -> str:
    """Give the text there."""
    found = member_at(value, *path)
    if not isinstance(found, str):
        raise TypeError(path)
    return found


def number_at(value: Json, *path: str) -> int:
    """Give the whole number there."""
    found = member_at(value, *path)
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(path)
    return found


def items_at(value: Json, *path: str) -> Iterator[Json]:
    """Give the items of the array there."""
    found = member_at(value, *path)
    if not isinstance(found, list):
        raise TypeError(path)
    return iter(found)
