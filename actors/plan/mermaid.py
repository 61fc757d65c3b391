"""A plan as a Mermaid flowchart, with the statuses of an execution if there is one.

Ids in the text are numbers of our own, so that no name can break it; names stand in
quoted labels, where Mermaid reads ``#...;`` as a character.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from ...storage.model.execution import NodeTarget, Stop, Target, Terminal
from ...storage.model.status import BatchStatus
from .plan import (
    DecisionNode,
    Graph,
    JobDeclaration,
    JoinNode,
    PartitionedNode,
    Plan,
    PlanNode,
    SplitNode,
    StepNode,
    nodes_of,
    target_text,
)

_COLOURS = {
    BatchStatus.COMPLETED: "#d3f0d3",
    BatchStatus.FAILED: "#f6c9c9",
    BatchStatus.STOPPED: "#f4e3b8",
    BatchStatus.UNKNOWN: "#e2c9f6",
    BatchStatus.STARTED: "#c9dcf6",
}
_UNSAFE = {ord(one): f"#{ord(one)};" for one in '"#&;<>\\`|[]{}()'}


def mermaid_lines(
    plan: Plan,
    statuses: Mapping[str, BatchStatus] | None = None,
    tallies: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Draw a plan from top to bottom.

    Args:
        plan: Steps are boxes, those that run a job slanted ones, decisions are diamonds,
            ends are stadiums; a dotted line leads to where the next launch goes on. A
            split is a frame around its branches, whose ends lead to its join, a
            hexagon; a partitioned step has a
            double border.
        statuses: Of the nodes that an execution came by; a class for each.
        tallies: Of partitioned steps: how many partitions stand how.
    """
    numbers = {node: f"n{at}" for at, node in enumerate(plan.every)}
    yield "flowchart TD"
    yield f"  start(( )) --> {numbers[plan.entry]}"
    for node in plan.nodes.values():
        yield from _node_lines(node, numbers, tallies or {})
    joins = _joins(plan)
    ends: dict[str, Terminal | Stop] = {}
    for source, every in plan.rules.items():
        for one in every:
            label, target = _label(one.pattern), _target(one.target, numbers)
            if not isinstance(one.target, NodeTarget) and source in joins:
                target = numbers[joins[source]]
                if one.target is not Terminal.COMPLETE:
                    label += f": {target_text(one.target)}"
            elif not isinstance(one.target, NodeTarget):
                ends[target] = one.target
            yield f'  {numbers[source]} -->|"{label}"| {target}'
    for target, end in sorted(ends.items()):
        name = Terminal.STOP.name if isinstance(end, Stop) else end.name
        yield f'  {target}(["{name}"])'
        if isinstance(end, Stop):
            yield f'  {target} -.->|"resume"| {numbers[end.resume_at]}'
    yield from _classes(numbers, statuses or {})


def _joins(plan: Plan) -> dict[str, str]:
    """Map the nodes of branches that have rules to the join of their split."""
    return {
        node: split.join
        for split in plan.every.values()
        if isinstance(split, SplitNode)
        for branch in split.branches
        if isinstance(branch, Graph)
        for node in branch.nodes
    }


def _node_lines(
    node: PlanNode, numbers: Mapping[str, str], tallies: Mapping[str, str]
) -> Iterator[str]:
    number, label = numbers[node.id], _label(node.id)
    match node:
        case StepNode():
            yield f"  {number}{_step_box(node)}"
        case DecisionNode():
            yield f'  {number}{{"{label}"}}'
        case JoinNode():
            yield f'  {number}{{{{"{label}"}}}}'
        case PartitionedNode():
            many = "n" if node.partition_count is None else node.partition_count
            worker = f"{many} x {_label(node.worker.id)}"
            stands = f", {tallies[node.id]}" if tallies.get(node.id) else ""
            yield f'  {number}[["{label}: {worker}{stands}"]]'
        case SplitNode():
            yield f'  subgraph {number}["{label}"]'
            for branch in node.branches:
                for inner in nodes_of(branch):
                    for line in _node_lines(inner, numbers, tallies):
                        yield f"  {line}"
                if not isinstance(branch, Graph):
                    for one, following in pairwise(branch):
                        yield f"    {numbers[one.id]} --> {numbers[following.id]}"
            yield "  end"
            yield f"  {number} --> {numbers[node.join]}"


def _step_box(step: StepNode) -> str:
    label = _label(step.id)
    if isinstance(step.declaration, JobDeclaration):
        return f'[/"{label}: job {_label(step.declaration.job)}"/]'
    return f'["{label}"]'


def _label(text: str) -> str:
    return text.translate(_UNSAFE)


def _target(target: Target, numbers: Mapping[str, str]) -> str:
    match target:
        case NodeTarget(node):
            return numbers[node]
        case Stop(node):
            return f"stop_{numbers[node]}"
        case Terminal():
            return target.value


def _classes(
    numbers: Mapping[str, str], statuses: Mapping[str, BatchStatus]
) -> Iterator[str]:
    for status in sorted(set(statuses.values())):
        name = status.value.lower()
        colour = _COLOURS.get(status, "#e8e8e8")
        nodes = [numbers[node] for node in statuses if statuses[node] is status]
        yield f"  classDef {name} fill:{colour}"
        yield f"  class {','.join(nodes)} {name}"
