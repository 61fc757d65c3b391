"""What differs between two definitions of a job, in sentences for people."""

from collections.abc import Iterator

from ...storage.envelope import Schema
from ...storage.model.errors import CorruptRecord, with_article
from ...storage.model.execution import NodeTarget, Stop, Target, Terminal
from .manifest import read_manifest
from .plan import (
    UNLIMITED,
    Branch,
    DecisionNode,
    Declaration,
    Graph,
    JobDeclaration,
    JoinNode,
    PartitionedNode,
    Plan,
    PlanNode,
    SplitNode,
    StepNode,
    TaskletDeclaration,
    visit_limit_of,
)

SHOWN_DIGITS = 12
"""Of a fingerprint, as in the label that is derived from it."""


def describe_changes(stored: str, proposed: str) -> tuple[str, ...]:
    """Tell how the manifest *proposed* differs from the *stored* one.

    Returns:
        A sentence per change: of the job, then of its nodes in the order of their ids.
        Empty when nothing changed. When the stored manifest cannot be read, one
        sentence that says so.

    Raises:
        CorruptRecord: When the proposed manifest cannot be read.
    """
    after = read_manifest(proposed)
    try:
        before = read_manifest(stored)
    except CorruptRecord as exc:
        return (f"the stored definition cannot be compared: {exc.reason}",)
    return tuple(_changes(before, after))


def _changes(before: Plan, after: Plan) -> Iterator[str]:
    if before.job != after.job:
        yield f"the job's name is {after.job!r} instead of {before.job!r}"
    if before.one_step != after.one_step:
        one, other = "a job of one step", "a flow"
        now, then = (one, other) if after.one_step else (other, one)
        yield f"the job is {now} instead of {then}"
    if before.entry != after.entry:
        yield f"the job begins with {after.entry!r} instead of {before.entry!r}"
    old, new = before.every, after.every
    for node in sorted(old.keys() | new.keys()):
        if node not in new:
            yield f"node {node!r} was removed"
        elif node not in old:
            yield f"node {node!r} was added"
        else:
            yield from node_changes(old[node], new[node])
            where = f"{_kind(new[node])} {node!r}"
            yield from _transition_changes(where, node, before, after)


def node_changes(before: PlanNode, after: PlanNode) -> Iterator[str]:
    """Tell how two nodes of one id differ, apart from where they lead."""
    where = f"{_kind(after)} {after.id!r}"
    if _kind(before) != _kind(after):
        yield f"{where} was {with_article(_kind(before))}"
        return
    old, new = _all_facts(before), _all_facts(after)
    for what in old:
        if what in new and old[what] != new[what]:
            yield f"{where}: {what} {old[what]} -> {new[what]}"


def _kind(node: PlanNode) -> str:
    match node:
        case StepNode():
            return "step"
        case DecisionNode():
            return "decision"
        case SplitNode():
            return "split"
        case JoinNode():
            return "join"
        case PartitionedNode():
            return "partitioned step"


def _all_facts(node: PlanNode) -> dict[str, str]:
    return {**_facts(node), "visit limit": str(visit_limit_of(node) or "none")}


def _facts(node: PlanNode) -> dict[str, str]:
    match node:
        case StepNode():
            return {
                "name": repr(node.name),
                **_start_facts(node),
                "restart": "allowed" if node.restartable else "refused",
                "listener revisions": repr(list(node.listeners)),
                **_declaration_facts(node.declaration),
            }
        case DecisionNode():
            return {
                "revision": repr(node.revision),
                "input version": str(node.input_version),
            }
        case SplitNode():
            branches = list(map(_branch, node.branches))
            return {
                "branches": repr(branches),
                "join": repr(node.join),
                "on failure": node.failure_policy.value,
            }
        case JoinNode():
            return {}
        case PartitionedNode():
            return {
                "name": repr(node.step_name),
                **_start_facts(node),
                "worker": repr(node.worker.id),
                "partitions": str(node.partition_count or "any number"),
                "planner revision": repr(node.partitioner),
                "aggregation revision": repr(node.aggregation),
                "on failure": node.failure_policy.value,
            }


def _branch(branch: Branch) -> list[str]:
    if isinstance(branch, Graph):
        others = (one for one in sorted(branch.nodes) if one != branch.entry)
        return [branch.entry, *others]
    return [step.id for step in branch]


def _start_facts(node: StepNode | PartitionedNode) -> dict[str, str]:
    limit = node.start_limit
    return {
        "start limit": "none" if limit == UNLIMITED else str(limit),
        "start if complete": "allowed" if node.allow_start_if_complete else "refused",
    }


def _declaration_facts(one: Declaration) -> dict[str, str]:
    if isinstance(one, JobDeclaration):
        return {
            "work": "job",
            "job": repr(one.job),
            "definition of the job": one.fingerprint.hex()[:SHOWN_DIGITS],
            "revision": repr(one.revision),
            "exits": repr(dict(one.exits)),
        }
    if isinstance(one, TaskletDeclaration):
        return {"work": "tasklet", "revision": repr(one.revision)}
    return {
        "work": "chunk",
        "chunk size": str(one.size),
        "delivery": one.delivery.value,
        "in flight": one.in_flight.value,
        "reader revision": repr(one.reader_revision),
        "processor revision": repr(one.processor_revision),
        "writer revision": repr(one.writer_revision),
        "checkpoint revision": repr(one.checkpoint_revision),
        "checkpoint schema": _schema(one.checkpoint),
        "context schema": _schema(one.context),
    }


def _schema(schema: Schema) -> str:
    return f"{schema.id!r} version {schema.version}"


def _transition_changes(
    where: str, node: str, before: Plan, after: Plan
) -> Iterator[str]:
    old, new = _targets(before, node), _targets(after, node)
    for pattern in old | new:
        if pattern not in new:
            yield f"{where}: {pattern!r} no longer goes to {old[pattern]}"
        elif pattern not in old:
            yield f"{where}: {pattern!r} goes to {new[pattern]}, it had no target"
        elif old[pattern] != new[pattern]:
            yield f"{where}: {pattern!r} goes to {new[pattern]} instead of {old[pattern]}"


def _targets(plan: Plan, node: str) -> dict[str, str]:
    return {one.pattern: _target(one.target) for one in plan.rules.get(node, ())}


def _target(target: Target) -> str:
    match target:
        case NodeTarget(node):
            return repr(node)
        case Stop(node):
            return f"Stop(resume_at={node!r})"
        case Terminal():
            return target.name
