"""Which steps of branches an execution reused.

Of a branch without rules nothing is written when its steps are reused: that they have
completed is told by their rows, which earlier attempts made.
"""

from collections.abc import Iterator

from ...storage.commands import ExecutionDetail, ShowExecution
from ...storage.model.execution import StepExecution
from ...storage.model.status import BatchStatus
from ..plan.plan import Graph, Plan, SplitNode, nodes_inside
from .asking import ask
from .visiting import Visit


def reused_in_branches(
    url: str, plan: Plan, detail: ExecutionDetail
) -> tuple[StepExecution, ...]:
    """Give their rows, oldest first, of the splits that the execution came to.

    A step counts whose latest row is COMPLETED.

    Args:
        url: Of the store.
        plan: Of the execution.
        detail: Of the execution.
    """
    reused: list[StepExecution] = []
    missing = set(_missing(plan, detail))
    while missing and (earlier := detail.execution.restart_of) is not None:
        detail = ask(url, ShowExecution(earlier))
        for step in detail.steps:
            visit = step.node, step.visit
            if visit in missing:
                missing.remove(visit)
                if step.status is BatchStatus.COMPLETED:
                    reused.append(step)
    return tuple(sorted(reused, key=lambda step: step.id))


def _missing(plan: Plan, detail: ExecutionDetail) -> Iterator[Visit]:
    """Give the steps that stand in a branch without rules, and have no row here."""
    steps = (*detail.reused, *detail.steps)
    known = {(step.node, step.visit) for step in steps}
    met = known | {(made.source, made.visit) for made in detail.decisions}
    visits = {visit for _, visit in met}
    for split in plan.every.values():
        if not isinstance(split, SplitNode):
            continue
        inside = [split.join, *(one.id for one in nodes_inside(split))]
        lines = [one for one in split.branches if not isinstance(one, Graph)]
        for visit in visits:
            if any((node, visit) in met for node in inside):
                within = {(step.id, visit) for line in lines for step in line}
                yield from within - known
