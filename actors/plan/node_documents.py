"""The graph of a plan as it stands in its manifest, written and read.

What the written form overlooks is found by whoever reads: the bytes then differ.
"""

from attrs import evolve

from ...storage.model.execution import NodeTarget, Stop, Target, Terminal
from ...storage.model.json import Json, JsonObject
from .definition import FailurePolicy
from .json_members import items_at, member_at, number_at, text_at
from .plan import (
    Branch,
    DecisionNode,
    Graph,
    JoinNode,
    PartitionedNode,
    PlanNode,
    SplitNode,
    StepNode,
    Transition,
    visit_limit_of,
)
from .step_documents import read_allowed, read_step, start_document, step_document


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
    return list(map(step_document, branch))


def _node_document(node: PlanNode) -> JsonObject:
    document = _document(node)
    limit = visit_limit_of(node)
    if limit is not None:
        document["visit_limit"] = limit
    return document


def _document(node: PlanNode) -> JsonObject:
    match node:
        case StepNode():
            return step_document(node)
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
                "start": start_document(node),
                "step_name": node.step_name,
                "worker": step_document(node.worker),
            }


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
    return tuple(map(read_step, items_at(branch)))


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
            return read_step(node)


def _read_partitioned(node: Json) -> PartitionedNode:
    return PartitionedNode(
        id=text_at(node, "id"),
        step_name=text_at(node, "step_name"),
        worker=read_step(member_at(node, "worker")),
        partition_count=_read_count(node),
        partitioner=text_at(node, "partitioner"),
        aggregation=text_at(node, "aggregation"),
        failure_policy=FailurePolicy(text_at(node, "failure_policy")),
        start_limit=number_at(node, "start", "start_limit"),
        allow_start_if_complete=read_allowed(node),
    )


def _read_count(node: Json) -> int | None:
    free = member_at(node, "partition_count") is None
    return None if free else number_at(node, "partition_count")
