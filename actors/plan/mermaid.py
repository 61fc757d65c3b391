"""A plan as a Mermaid flowchart, with the statuses of an execution if there is one.

Ids in the text are numbers of our own, so that no name can break it; names stand in
quoted labels, where Mermaid reads ``#...;`` as a character.
"""

from collections.abc import Iterator, Mapping

from ...storage.model.execution import NodeTarget, Target, Terminal
from ...storage.model.status import BatchStatus
from .plan import DecisionNode, Plan, PlanNode

_COLOURS = {
    BatchStatus.COMPLETED: "#d3f0d3",
    BatchStatus.FAILED: "#f6c9c9",
    BatchStatus.STOPPED: "#f4e3b8",
    BatchStatus.UNKNOWN: "#e2c9f6",
    BatchStatus.STARTED: "#c9dcf6",
}
_UNSAFE = {ord(one): f"#{ord(one)};" for one in '"#&;<>\\`|[]{}()'}


def mermaid_lines(
    plan: Plan, statuses: Mapping[str, BatchStatus] | None = None
) -> Iterator[str]:
    """Draw a plan from top to bottom.

    Args:
        plan: Steps are boxes, decisions are diamonds, ends are stadiums.
        statuses: Of the nodes that an execution came by; a class for each.
    """
    numbers = {node: f"n{at}" for at, node in enumerate(plan.nodes)}
    yield "flowchart TD"
    yield f"  start(( )) --> {numbers[plan.entry]}"
    for name, node in plan.nodes.items():
        yield f"  {numbers[name]}{_shape(node)}"
    ends: set[Terminal] = set()
    for source, every in plan.transitions.items():
        for one in every:
            if isinstance(one.target, Terminal):
                ends.add(one.target)
            yield (
                f'  {numbers[source]} -->|"{_label(one.pattern)}"| '
                f"{_end(one.target, numbers)}"
            )
    for end in sorted(ends):
        yield f'  {end.value}(["{end.name}"])'
    yield from _classes(numbers, statuses or {})


def _shape(node: PlanNode) -> str:
    label = f'"{_label(node.id)}"'
    return f"{{{label}}}" if isinstance(node, DecisionNode) else f"[{label}]"


def _label(text: str) -> str:
    return text.translate(_UNSAFE)


def _end(target: Target, numbers: Mapping[str, str]) -> str:
    return numbers[target.node] if isinstance(target, NodeTarget) else target.value


def _classes(
    numbers: Mapping[str, str], statuses: Mapping[str, BatchStatus]
) -> Iterator[str]:
    for status in sorted(set(statuses.values())):
        name = status.value.lower()
        colour = _COLOURS.get(status, "#e8e8e8")
        nodes = [numbers[node] for node in statuses if statuses[node] is status]
        yield f"  classDef {name} fill:{colour}"
        yield f"  class {','.join(nodes)} {name}"
