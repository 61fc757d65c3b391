"""Manifest format 1: the definition of a job of one step, byte for byte.

It holds no graph. The plan has one node, whose id is the name of the step, and the
routes by which such a job ends.
"""

from hashlib import sha256

from ...storage.envelope import canonical_json
from ...storage.model.execution import ExitCode, Terminal
from ...storage.model.json import Json, JsonObject
from ...storage.model.patterns import ANY_TEXT
from .json_members import items_at, member_at, number_at, text_at
from .plan import (
    ONE_STEP,
    Declaration,
    Graph,
    JobDeclaration,
    Plan,
    StepNode,
    TaskletDeclaration,
    Transition,
    in_evaluation_order,
)
from .step_documents import declaration_document, read_declaration

LEGACY_MANIFEST = (
    '{"format":1,"repository_port":"m1","revision":"__m1_repository_port_v1"}'
)
"""The identity of executions that were created without any definition."""

_ROUTES = in_evaluation_order(
    [
        Transition(ANY_TEXT, Terminal.COMPLETE),
        Transition(ExitCode.FAILED.value, Terminal.FAIL),
        Transition(ExitCode.STOPPED.value, Terminal.STOP),
    ]
)


def one_step_graph(node: StepNode) -> Graph:
    """Make the graph that leads from one step to the end of the job."""
    return Graph(node.id, {node.id: node}, {node.id: _ROUTES})


def one_step_plan(job: str, graph: Graph) -> Plan:
    """Make the plan of the graph of one step; the name of the step must be its id."""
    node = graph.nodes[graph.entry]
    assert isinstance(node, StepNode), "there is no step"
    assert node.name == node.id, "format 1 knows only the name"
    manifest = canonical_json(_document(job, node), "the manifest")
    return Plan(
        job,
        graph.entry,
        graph.nodes,
        graph.transitions,
        manifest,
        sha256(manifest.encode()).digest(),
        ONE_STEP,
    )


def _document(job: str, node: StepNode) -> JsonObject:
    declared = node.declaration
    document: JsonObject = {
        **declaration_document(declared),
        "format": ONE_STEP,
        "job": job,
        "step": node.name,
    }
    if isinstance(declared, TaskletDeclaration):
        document["component"] = {"tasklet": declared.revision}
        return {**document, "kind": "tasklet", "restart_state": "none"}
    assert not isinstance(declared, JobDeclaration), "format 1 has no children"
    document["chunk_size"] = document.pop("size")
    if declared.streams:
        document["streams"] = [
            {"identity": identity, "revision": revision}
            for identity, revision in sorted(declared.streams)
        ]
    return {**document, "kind": "chunk"}


def read_one_step(document: JsonObject) -> Graph:
    """Read the graph of one step; what is not read is missing from its manifest.

    Raises:
        KeyError, TypeError, ValueError: A member is missing or of the wrong type.
    """
    name = text_at(document, "step")
    return one_step_graph(StepNode(name, name, _declaration(document)))


def _declaration(document: JsonObject) -> Declaration:
    if text_at(document, "kind") == "tasklet":
        return TaskletDeclaration(text_at(document, "component", "tasklet"))
    step: Json = {
        "kind": "chunk",
        "declaration": {**document, "size": number_at(document, "chunk_size")},
    }
    return read_declaration(step, _streams(document))


def _streams(document: JsonObject) -> tuple[tuple[str, str], ...]:
    if "streams" not in document:
        return ()
    return tuple(
        (text_at(one, "identity"), text_at(one, "revision"))
        for one in items_at(member_at(document, "streams"))
    )
