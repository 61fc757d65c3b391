"""Checks of what stands inside other nodes of a plan: branches, joins, workers."""

from collections.abc import Iterator, Mapping

from ...storage.model.errors import Problem
from .plan import JoinNode, PlanNode, SplitNode, steps_inside

BRANCHES_MIN = 2
BRANCHES_MAX = 8
BRANCH_STEPS_MAX = 8


def nesting_problems(nodes: Mapping[str, PlanNode]) -> Iterator[Problem]:
    """Find what is wrong with the shape of splits, and with ids inside of nodes."""
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
    yield from _id_problems(nodes)


def _split_reasons(split: SplitNode) -> Iterator[str]:
    count = len(split.branches)
    if not BRANCHES_MIN <= count <= BRANCHES_MAX:
        yield (
            f"the number of branches must be {BRANCHES_MIN} to {BRANCHES_MAX}, "
            f"not {count}"
        )
    for position, branch in enumerate(split.branches, 1):
        if not 1 <= len(branch) <= BRANCH_STEPS_MAX:
            yield (
                f"branch {position} must have 1 to {BRANCH_STEPS_MAX} steps, "
                f"not {len(branch)}"
            )


def _id_problems(nodes: Mapping[str, PlanNode]) -> Iterator[Problem]:
    taken = set(nodes)
    for node in nodes.values():
        for step in steps_inside(node):
            if step.id in taken:
                reason = f"is the id of another node, and of a step inside {node.id!r}"
                yield Problem(step.id, reason)
            taken.add(step.id)


def owners(nodes: Mapping[str, PlanNode]) -> dict[str, str]:
    """Map what no transition may lead to, joins and steps inside, to its owner."""
    owned = {step.id: node.id for node in nodes.values() for step in steps_inside(node)}
    splits = [node for node in nodes.values() if isinstance(node, SplitNode)]
    return owned | {split.join: split.id for split in splits}
