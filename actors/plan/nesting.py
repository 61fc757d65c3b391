"""Checks of what stands inside other nodes of a plan: branches, joins, workers."""

from collections.abc import Iterator, Mapping

from ...storage.model.errors import Problem
from .plan import (
    Graph,
    JoinNode,
    PlanNode,
    SplitNode,
    StepNode,
    graphs_in,
    nodes_inside,
    nodes_of,
)

BRANCHES_MIN = 2
BRANCHES_MAX = 8
BRANCH_NODES_MAX = 32
"""Joins not counted."""
SPLITS_DEEP_MAX = 5
"""How deep splits may stand in each other, the outermost counted."""


def nesting_problems(graph: Graph) -> Iterator[Problem]:
    """Find what is wrong with the shape of splits, and with ids inside of nodes."""
    for one in graphs_in(graph):
        yield from _split_problems(one.nodes)
    for node in graph.nodes.values():
        if _depth(node) > SPLITS_DEEP_MAX:
            reason = f"splits stand in each other more than {SPLITS_DEEP_MAX} deep"
            yield Problem(node.id, reason)
    yield from _id_problems(graph.nodes)


def _split_problems(nodes: Mapping[str, PlanNode]) -> Iterator[Problem]:
    joined: dict[str, str] = {}
    for node in nodes.values():
        if isinstance(node, SplitNode):
            for reason in _split_reasons(node):
                yield Problem(node.id, reason)
            if not isinstance(nodes.get(node.join), JoinNode):
                yield Problem(node.id, f"its join {node.join!r} is no join")
            elif joined.setdefault(node.join, node.id) != node.id:
                reason = f"is the join of two splits, {joined[node.join]!r} and "
                yield Problem(node.join, f"{reason}{node.id!r}")
    for node in nodes.values():
        if isinstance(node, JoinNode) and node.id not in joined:
            yield Problem(node.id, "is a join, but of no split")


def _split_reasons(split: SplitNode) -> Iterator[str]:
    count = len(split.branches)
    if not BRANCHES_MIN <= count <= BRANCHES_MAX:
        yield (
            f"the number of branches must be {BRANCHES_MIN} to {BRANCHES_MAX}, "
            f"not {count}"
        )
    for position, branch in enumerate(split.branches, 1):
        count = sum(not isinstance(node, JoinNode) for node in nodes_of(branch))
        if not 1 <= count <= BRANCH_NODES_MAX:
            yield (
                f"branch {position} must have 1 to {BRANCH_NODES_MAX} nodes, "
                f"not {count}"
            )


def _depth(node: PlanNode) -> int:
    """Count the splits that stand in each other."""
    if not isinstance(node, SplitNode):
        return 0
    inner = (_depth(one) for branch in node.branches for one in nodes_of(branch))
    return 1 + max(inner, default=0)


def _id_problems(nodes: Mapping[str, PlanNode]) -> Iterator[Problem]:
    taken = set(nodes)
    for node in nodes.values():
        for inner in nodes_inside(node):
            if inner.id in taken:
                what = "step" if isinstance(inner, StepNode) else "node"
                reason = (
                    f"is the id of another node, and of a {what} inside {node.id!r}"
                )
                yield Problem(inner.id, reason)
            taken.add(inner.id)


def owners(nodes: Mapping[str, PlanNode]) -> dict[str, str]:
    """Map what no transition may lead to, joins and nodes inside, to its owner."""
    owned = {one.id: node.id for node in nodes.values() for one in nodes_inside(node)}
    splits = [node for node in nodes.values() if isinstance(node, SplitNode)]
    return owned | {split.join: split.id for split in splits}
