"""``triolet graph``: a job as a Mermaid flowchart."""

from ...storage.commands import ExecutionDetail, ShowExecution
from ...storage.model.errors import InvalidValue
from ...storage.model.status import BatchStatus
from ..plan.mermaid import mermaid_lines
from .answers import Answer
from .asking import ask
from .partitioning import partitions_in, tally
from .reusing import reused_in_branches
from .target import load_job


def graph(target: str, url: str, execution_id: int | None) -> Answer:
    """Draw a job, and how its nodes stand in one of its executions.

    Raises:
        InvalidValue: The execution is one of another job.
        ExecutionNotFound: It is not in this store.
        StoreError: There is no usable store; only with an execution.
    """
    plan = load_job(target).plan
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
        inside = reused_in_branches(url, plan, detail)
        found |= {step.node: step.status for step in inside}
        statuses = {node: found[node] for node in plan.every if node in found}
        parts = partitions_in(detail)
        tallies = {
            node: tally(one for one in parts if one.node == node)
            for node in {one.node for one in parts}
        }
    lines = list(mermaid_lines(plan, statuses, tallies))
    return Answer({"mermaid": "\n".join(lines), "statuses": statuses}, lines)


def _statuses(detail: ExecutionDetail) -> dict[str, BatchStatus]:
    """Say how the nodes stand; a decision that was made is COMPLETED."""
    made = {one.source: BatchStatus.COMPLETED for one in detail.decisions}
    steps = (*detail.reused, *detail.steps)
    return {**made, **{step.node: step.status for step in steps}}
