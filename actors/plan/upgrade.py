"""Which nodes of a changed definition continue which nodes of the one before."""

from collections.abc import Iterable, Mapping

from ...storage.model.errors import InvalidValue, listed
from .plan import (
    JobDeclaration,
    JoinNode,
    PartitionedNode,
    Plan,
    PlanNode,
    StepNode,
)


def carried_nodes(
    before: Plan, after: Plan, renamed: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Map the nodes of *before* to those of *after* that continue them.

    A node continues the one of the same id and kind unless it is said to continue
    another one; a node of *before* that nothing continues is left behind. The steps in
    the branches of a split are nodes here, too.

    Args:
        before: The definition that earlier attempts ran.
        after: The definition that is to continue them.
        renamed: Node of *before* to node of *after*.

    Returns:
        Pairs of node ids, sorted, one to one.

    Raises:
        InvalidValue: A name in *renamed* is not a node, two nodes would be of different
            kinds, one node would continue two, a partitioned step or one that runs a
            job would be renamed, or nothing would be carried over.
    """
    earlier, changed = _nodes(before), _nodes(after)
    for old, new in renamed.items():
        _check(earlier, old, "earlier")
        _check(changed, new, "changed")
        if not _alike(earlier[old], changed[new]):
            raise InvalidValue("the upgrade", f"{old!r} and {new!r} differ in kind")
        if old != new and isinstance(earlier[old], PartitionedNode):
            raise InvalidValue(
                "the upgrade",
                f"renames the partitioned step {old!r}, after which its workers are "
                "named: keep its id, or launch the job anew",
            )
        if old != new and _runs_a_job(earlier[old]):
            raise InvalidValue(
                "the upgrade",
                f"renames {old!r}, which runs a job whose executions know it by that name",
            )
    taken = set(renamed.values())
    if len(taken) < len(renamed):
        raise InvalidValue("the upgrade", "gives one node two to continue")
    both = earlier.keys() & changed.keys() - taken - renamed.keys()
    kept = {one: one for one in both if _alike(earlier[one], changed[one])}
    pairs = {**kept, **renamed}
    if not pairs:
        raise InvalidValue(
            "the upgrade",
            "would carry nothing over, no node is in both definitions: name pairs as "
            "OLD=NEW, or launch the job anew",
        )
    return tuple(sorted(pairs.items()))


def left_behind(before: Plan, carried: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Give the nodes of the earlier definition that nothing continues, sorted.

    Joins are not told of, here and in `begun_new`: they come and go with their splits.
    """
    return _others(before, {old for old, _ in carried})


def begun_new(after: Plan, carried: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Give the nodes of the changed definition that continue nothing, sorted."""
    return _others(after, {new for _, new in carried})


def _others(plan: Plan, carried: set[str]) -> tuple[str, ...]:
    nodes = _nodes(plan)
    return tuple(
        one
        for one in sorted(nodes.keys() - carried)
        if not isinstance(nodes[one], JoinNode)
    )


def _nodes(plan: Plan) -> dict[str, PlanNode]:
    every = plan.every.values()
    workers = {one.worker.id for one in every if isinstance(one, PartitionedNode)}
    return {one.id: one for one in every if one.id not in workers}


def _check(nodes: Mapping[str, PlanNode], node: str, which: str) -> None:
    if node not in nodes:
        known = listed(repr(one) for one in sorted(nodes))
        raise InvalidValue(
            "the upgrade", f"names {node!r}, but the {which} definition has {known}"
        )


def _alike(one: PlanNode, other: PlanNode) -> bool:
    if isinstance(one, StepNode) and isinstance(other, StepNode):
        old, new = one.declaration, other.declaration
        if isinstance(old, JobDeclaration) and isinstance(new, JobDeclaration):
            return old.job == new.job
        return type(old) is type(new)
    return type(one) is type(other)


def _runs_a_job(node: PlanNode) -> bool:
    return isinstance(node, StepNode) and isinstance(node.declaration, JobDeclaration)
