"""``triolet graph``: a job as a Mermaid flowchart."""

from collections.abc import Mapping

from ...storage.commands import ExecutionDetail, ShowExecution
from ...storage.model.errors import InvalidValue
from ...storage.model.status import BatchStatus
from ..plan.compile import compile_job
from ..plan.mermaid import mermaid_lines
from ..plan.plan import Graph, Plan, SplitNode, nodes_inside
from .answers import Answer
from .asking import ask
from .partitioning import partitions_in, tally
from .target import load_job


def graph(target: str, url: str, execution_id: int | None) -> Answer:
    """Draw a job, and how its nodes stand in one of its executions.

    Raises:
        InvalidValue: The execution is one of another job.
        ExecutionNotFound: It is not in this store.
        StoreError: There is no usable store; only with an execution.
    """
    plan = compile_job(load_job(target)).plan
    statuses: dict[str, BatchStatus] = {}
    tallies: dict[str, str] = {}
    if execution_id is not None:
        detail = ask(url, ShowExecution(execution_id))
        if detail.instance.job != plan.job:
            raise InvalidValue(
                f"execution {execution_id}",
                f"is one of job {detail.instance.job!r}, not of {plan.job!r}",
            )
        found = _statuses(detail)
        found |= _reused_in_branches(url, plan, detail, found)
        statuses = {node: found[node] for node in plan.every if node in found}
        parts = partitions_in(detail)
        tallies = {
            node: tally(one for one in parts if one.node == node)
            for node in {one.node for one in parts}
        }
    lines = list(mermaid_lines(plan, statuses, tallies))
    return Answer({"mermaid": "\n".join(lines), "statuses": statuses}, lines)


def _reused_in_branches(
    url: str, plan: Plan, detail: ExecutionDetail, found: Mapping[str, BatchStatus]
) -> dict[str, BatchStatus]:
    """Say which steps of branches without rules had completed: only their rows tell.

    Of a split that the execution came to, those count whose latest row is COMPLETED.
    """
    missing: set[str] = set()
    for node in plan.every.values():
        if isinstance(node, SplitNode):
            inside = {one.id for one in nodes_inside(node)}
            lines = [one for one in node.branches if not isinstance(one, Graph)]
            if not found.keys().isdisjoint({node.join, *inside}):
                missing |= {step.id for line in lines for step in line} - found.keys()
    reused: dict[str, BatchStatus] = {}
    while missing and (earlier := detail.execution.restart_of) is not None:
        detail = ask(url, ShowExecution(earlier))
        for step in detail.steps:
            if step.node in missing:
                missing.remove(step.node)
                if step.status is BatchStatus.COMPLETED:
                    reused[step.node] = step.status
    return reused


def _statuses(detail: ExecutionDetail) -> dict[str, BatchStatus]:
    """Say how the nodes stand; a decision that was made is COMPLETED."""
    made = {one.source: BatchStatus.COMPLETED for one in detail.decisions}
    steps = (*detail.reused, *detail.steps)
    return {**made, **{step.node: step.status for step in steps}}
