"""The manifest: a plan as canonical JSON, byte for byte; it has a graph from format 2 on.

Everything that selects or reinterprets durable state is in it; budgets, labels and
timeouts never are. Its SHA-256 is the fingerprint, so that a changed byte is a
changed definition.
"""

import json
from hashlib import sha256

from attrs import evolve

from ...storage.envelope import canonical_json
from ...storage.model.errors import CorruptRecord, TrioletError
from ...storage.model.execution import Stop
from ...storage.model.json import JsonObject
from ...storage.model.names import NameKind, check_name
from .graph import problems_of
from .json_members import text_at
from .node_documents import graph_document, read_graph
from .one_step_manifest import LEGACY_MANIFEST, one_step_plan, read_one_step
from .plan import (
    ONE_STEP,
    Branch,
    ChunkDeclaration,
    DecisionNode,
    Graph,
    JobDeclaration,
    PartitionedNode,
    Plan,
    PlanNode,
    SplitNode,
    StepNode,
    in_evaluation_order,
    nodes_inside,
    visit_limit_of,
)

FORMATS = range(1, 5)
"""1 is a job of one step; 2 is a graph of steps and decisions; 3 has splits or partitioned steps, too; in 4 some
of the steps inside of those are chunks, a planner says how many partitions it is, a step
may not be restarted or runs another job, a branch is a graph itself or longer than 3
allows, a stop says where to go on, or there are loops."""
LINE_MAX_IN_3 = 8
MANIFEST_BYTES_MAX = 1_048_576


def plan_of(job: str, graph: Graph) -> Plan:
    """Make the plan of a sound graph: put it in order, encode it, digest it."""
    graph = _in_order(graph)
    version = _format_of(graph)
    document: JsonObject = {**graph_document(graph), "format": version, "job": job}
    manifest = canonical_json(document, "the manifest")
    fingerprint = sha256(manifest.encode()).digest()
    return Plan(
        job,
        graph.entry,
        graph.nodes,
        graph.transitions,
        manifest,
        fingerprint,
        version,
    )


def _in_order(graph: Graph) -> Graph:
    transitions = {
        source: in_evaluation_order(every)
        for source, every in graph.transitions.items()
    }
    nodes = {key: _node_in_order(node) for key, node in graph.nodes.items()}
    return Graph(graph.entry, nodes, transitions)


def _node_in_order(node: PlanNode) -> PlanNode:
    if not isinstance(node, SplitNode):
        return node
    return evolve(node, branches=tuple(map(_branch_in_order, node.branches)))


def _branch_in_order(branch: Branch) -> Branch:
    return _in_order(branch) if isinstance(branch, Graph) else branch


def _format_of(graph: Graph) -> int:
    """Find the oldest format that can say everything."""
    nodes = graph.nodes.values()
    inside = [one for node in nodes for one in nodes_inside(node)]
    steps = [one for one in inside if isinstance(one, StepNode)]
    branches = [
        one for node in nodes if isinstance(node, SplitNode) for one in node.branches
    ]
    leading = (one.target for every in graph.transitions.values() for one in every)
    if (
        any(isinstance(target, Stop) for target in leading)
        or any(visit_limit_of(node) is not None for node in nodes)
        or any(isinstance(step.declaration, ChunkDeclaration) for step in steps)
        or any(
            isinstance(node, PartitionedNode) and node.partition_count is None
            for node in nodes
        )
        or not all(
            node.restartable and not isinstance(node.declaration, JobDeclaration)
            for node in (*nodes, *steps)
            if isinstance(node, StepNode)
        )
        or any(isinstance(one, Graph) or len(one) > LINE_MAX_IN_3 for one in branches)
    ):
        return 4
    plain = (StepNode, DecisionNode)
    return 2 if all(isinstance(node, plain) for node in nodes) else 3


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
        graph = (read_one_step if found == ONE_STEP else read_graph)(document)
        if problem := next(problems_of(graph), None):
            raise problem
        plan = (one_step_plan if found == ONE_STEP else plan_of)(job, graph)
    except TrioletError as exc:
        raise _corrupt(str(exc)) from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise _corrupt("a member is missing or of the wrong type") from exc
    except RecursionError:
        raise _corrupt("splits stand in each other too deeply") from None
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
