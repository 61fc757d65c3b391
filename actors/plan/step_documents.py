"""A step as it stands in a manifest, with what it declares, written and read."""

from ...storage.envelope import Schema
from ...storage.model.json import Json, JsonObject
from .definition import InFlight
from .json_members import items_at, member_at, number_at, text_at
from .plan import (
    ChunkDeclaration,
    Declaration,
    DeliveryMode,
    JobDeclaration,
    PartitionedNode,
    StepNode,
    TaskletDeclaration,
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


def step_document(node: StepNode) -> JsonObject:
    """Write a step of a graph, or of a branch, or a worker."""
    return {
        "id": node.id,
        "kind": "step",
        "listeners": list(node.listeners),
        "policy": None,
        "start": start_document(node),
        "step": {
            "declaration": declaration_document(node.declaration),
            "kind": _WORK_KINDS[type(node.declaration)],
            "name": node.name,
        },
    }


def start_document(node: StepNode | PartitionedNode) -> JsonObject:
    """Write how often, and when, a step may start."""
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


def read_step(node: Json) -> StepNode:
    """Read a step of a graph, or of a branch, or a worker.

    Raises:
        KeyError, TypeError, ValueError: A member is missing or of the wrong type.
    """
    return StepNode(
        text_at(node, "id"),
        text_at(node, "step", "name"),
        read_declaration(member_at(node, "step")),
        number_at(node, "start", "start_limit"),
        read_allowed(node),
        tuple(text_at(one) for one in items_at(node, "listeners")),
        _read_restartable(node),
    )


def _read_restartable(node: Json) -> bool:
    # Only False is ever written.
    start = member_at(node, "start")
    return not isinstance(start, dict) or "restartable" not in start


def read_allowed(node: Json) -> bool:
    """Read whether a step that has completed may start again.

    Raises:
        KeyError, TypeError: The member is missing or of the wrong type.
    """
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
