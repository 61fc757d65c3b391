"""The graph of a plan: limits, targets, ambiguity, cycles and reachability.

The same checks serve the compiler and the reader of stored manifests.
"""

from collections.abc import Iterator, Mapping, Set
from itertools import combinations
from typing import TypeAlias

from ...storage.model.errors import Problem
from ...storage.model.execution import Stop, Terminal
from ...storage.model.names import NameKind
from ...storage.model.patterns import overlap, specificity
from .checks import name_reasons, node_reasons
from .nesting import nesting_problems, owners
from .plan import Graph as Graph
from .plan import (
    JoinNode,
    PartitionedNode,
    PlanNode,
    SplitNode,
    StepNode,
    Transition,
    graphs_in,
    node_after,
    nodes_inside,
    visit_limit_of,
)
from .suggestion import nearest

NODES_MAX = 1024
TRANSITIONS_MAX = 4096
OUTGOING_MAX = 64

Edges: TypeAlias = Mapping[str, tuple[str, ...]]

_TERMINALS = {
    spelling: f"the constant {one.name}"
    for one in Terminal
    for spelling in (one.name, one.value)
}


def problems_of(graph: Graph) -> Iterator[Problem]:
    """Find everything that keeps a graph from being a plan, except its job's name."""
    yield from _size_problems(graph)
    for node in _all_nodes(graph):
        for reason in name_reasons(node.id, NameKind.NODE):
            yield Problem(node.id, reason)
        for reason in node_reasons(node):
            yield Problem(node.id, reason)
    yield from nesting_problems(graph)
    yield from _step_name_problems(graph)
    places = {node.id for node in _all_nodes(graph)}
    yield from _limit_problems(graph)
    for one in graphs_in(graph):
        yield from _transition_problems(one, places)
    for one in graphs_in(graph):
        yield from _shape_problems(one, is_branch=one is not graph)


def _all_nodes(graph: Graph) -> Iterator[PlanNode]:
    """Give every node, and after it the nodes inside of it."""
    for node in graph.nodes.values():
        yield node
        yield from nodes_inside(node)


def _size_problems(graph: Graph) -> Iterator[Problem]:
    nodes = sum(1 for _ in _all_nodes(graph))
    if nodes > NODES_MAX:
        reason = f"there are {nodes} nodes, at most {NODES_MAX} are allowed"
        yield Problem(None, reason)
    total = sum(
        len(outgoing)
        for one in graphs_in(graph)
        for outgoing in one.transitions.values()
    )
    if total > TRANSITIONS_MAX:
        reason = f"there are {total} transitions, at most {TRANSITIONS_MAX} are allowed"
        yield Problem(None, reason)


def _step_name_problems(graph: Graph) -> Iterator[Problem]:
    named: dict[str, str] = {}
    for node in _all_nodes(graph):
        match node:
            case StepNode(name=name) | PartitionedNode(step_name=name):
                if any(node_reasons(node)):
                    continue
                other = named.setdefault(name, node.id)
                if other != node.id:
                    yield Problem(node.id, f"its step name is also that of {other!r}")


def _limit_problems(graph: Graph) -> Iterator[Problem]:
    for node in _all_nodes(graph):
        if node.id not in graph.nodes and visit_limit_of(node) is not None:
            yield Problem(
                node.id,
                "visit_limit= has no effect inside of a split or a partitioned step: "
                "give it to that node",
            )


def _transition_problems(graph: Graph, places: Set[str]) -> Iterator[Problem]:
    for source in graph.transitions.keys() - graph.nodes.keys():
        yield Problem(source, "is the source of transitions, but is no node")
    owned = owners(graph.nodes)
    flowing = {
        node.join
        for node in graph.nodes.values()
        if isinstance(node, SplitNode)
        and any(isinstance(branch, Graph) for branch in node.branches)
    }
    for node in graph.nodes:
        outgoing = graph.transitions.get(node, ())
        if isinstance(graph.nodes[node], SplitNode):
            if outgoing:
                yield Problem(node, "is a split: its join has the transitions")
            continue
        if not outgoing:
            yield Problem(node, "leads nowhere: no exit code has a target")
        for one in outgoing:
            for reason in _reasons_against(one, graph, owned, places):
                yield Problem(node, reason)
            if node in flowing and isinstance(one.target, Stop):
                yield Problem(
                    node,
                    f"{one.pattern!r} resumes elsewhere, which a split cannot of which a "
                    "branch has rules of its own: lead to a decision that does",
                )
        if len(outgoing) > OUTGOING_MAX:
            count = f"has {len(outgoing)} transitions"
            yield Problem(node, f"{count}, at most {OUTGOING_MAX} are allowed")
        else:
            for reason in _ambiguities(outgoing):
                yield Problem(node, reason)


def _reasons_against(
    one: Transition, graph: Graph, owned: Mapping[str, str], places: Set[str]
) -> Iterator[str]:
    yield from name_reasons(one.pattern, NameKind.PATTERN)
    target = node_after(one.target)
    if target is None:
        return
    resumes = isinstance(one.target, Stop)
    rule = f"{one.pattern!r} {'resumes at' if resumes else 'leads to'} {target!r}"
    owner = owned.get(target)
    if owner is not None:
        mended = f"{'resume at' if resumes else 'lead to'} {owner!r}"
        yield f"{rule}, which is inside {owner!r}: {mended}"
    if owner is not None or target in graph.nodes:
        return
    if target in places:
        mended = (
            "resume at a node of the branch"
            if resumes
            else "lead to a node of the branch, or end it with COMPLETE, FAIL or STOP"
        )
        yield f"{rule}, which is not in the same branch: {mended}"
        return
    reason = f"{rule}, which is no node of this job"
    nodes = {node: repr(node) for node in graph.nodes}
    proposals = nodes if resumes else _TERMINALS | nodes
    found = nearest(target, proposals)
    yield reason if found is None else f"{reason}: did you mean {proposals[found]}?"


def _ambiguities(outgoing: tuple[Transition, ...]) -> Iterator[str]:
    legal = sorted(
        one.pattern
        for one in outgoing
        if not any(name_reasons(one.pattern, NameKind.PATTERN))
    )
    for left, right in combinations(legal, 2):
        if specificity(left) == specificity(right) and overlap(left, right):
            yield (
                f"the patterns {left!r} and {right!r} are equally specific, "
                "and some exit codes match both"
            )


def _shape_problems(graph: Graph, *, is_branch: bool) -> Iterator[Problem]:
    entry = graph.nodes.get(graph.entry)
    if entry is None:
        yield Problem(None, f"the entry {graph.entry!r} is no node")
        return
    if is_branch and isinstance(entry, JoinNode):
        yield Problem(graph.entry, "is the first node of a branch, but a join")
    elif not is_branch and isinstance(entry, (SplitNode, JoinNode)):
        reason = "is the entry, but a job cannot begin with a split: put a step before"
        yield Problem(graph.entry, reason)
    edges = _edges(graph)
    for cycle in cycles(_unlimited(graph, edges)):
        path = " -> ".join(map(repr, cycle))
        if is_branch:
            reason = f"leads back to itself, which is not allowed in a branch: {path}"
        else:
            reason = (
                f"leads back to itself without a limit: {path}; give one of these nodes "
                "a visit_limit="
            )
        yield Problem(cycle[0], reason)
    for node in unreachable(graph.entry, edges):
        # A join is reached when its split is; any other one was reported already.
        if not isinstance(graph.nodes[node], JoinNode):
            yield Problem(node, f"is never reached from the entry {graph.entry!r}")


def _edges(graph: Graph) -> Edges:
    """Give the successors of each node.

    A misspelt target stands for the nearest node, and one inside of a node for that
    node, lest one mistake be reported twice.
    """
    owned = owners(graph.nodes)
    edges = {}
    for name, node in graph.nodes.items():
        following = (node_after(one.target) for one in graph.transitions.get(name, ()))
        targets = dict.fromkeys(
            owned.get(target, target) for target in following if target is not None
        )
        if isinstance(node, SplitNode):
            targets[node.join] = None
        meant = (t if t in graph.nodes else nearest(t, graph.nodes) for t in targets)
        edges[name] = tuple(target for target in meant if target is not None)
    return edges


def _unlimited(graph: Graph, edges: Edges) -> Edges:
    """Leave out the nodes with a limit, and what leads to them."""
    free = {name: None for name in edges if visit_limit_of(graph.nodes[name]) is None}
    return {name: tuple(t for t in edges[name] if t in free) for name in free}


def unreachable(entry: str, edges: Edges) -> tuple[str, ...]:
    """Give the nodes that no path from *entry* leads to, in the order of *edges*."""
    seen = {entry}
    waiting = [entry]
    while waiting:
        for target in edges[waiting.pop()]:
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return tuple(node for node in edges if node not in seen)


def cycles(edges: Edges) -> Iterator[tuple[str, ...]]:
    """Give a cycle for every edge that closes one, its first node also at its end.

    A depth-first search without recursion: paths may be as long as the graph.
    """
    done: set[str] = set()
    for root in edges:
        path = {} if root in done else {root: iter(edges[root])}
        while path:
            last, rest = next(reversed(path.items()))
            following = next(rest, None)
            if following is None:
                del path[last]
                done.add(last)
            elif following in path:
                every = tuple(path)
                yield (*every[every.index(following) :], following)
            elif following not in done:
                path[following] = iter(edges[following])
