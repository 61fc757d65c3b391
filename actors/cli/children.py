"""Which executions the steps of an execution ran."""

from collections.abc import Iterator, Mapping
from itertools import chain

from ...storage.commands import ExecutionDetail, LatestExecution, ShowExecution
from ...storage.model.execution import JobExecution, StepExecution
from ...storage.model.lineage import Lineage, lineage_of
from ..job.nested import RanChild, child_of
from ..plan.plan import JobDeclaration, Plan, StepNode
from .asking import ask


def children_of(
    url: str, detail: ExecutionDetail, plan: Plan | None
) -> Mapping[str, RanChild]:
    """Give them by node.

    A step's row tells when it has ended by itself; otherwise its child is looked for.

    Args:
        url: Of the store.
        detail: Of the execution.
        plan: Of the execution; without it nothing is known.
    """
    jobs = {} if plan is None else _jobs(plan)
    found = {}
    for step in detail.steps:
        if step.node in jobs:
            child = child_of(step) or _looked_for(url, detail, step, jobs[step.node])
            if child is not None:
                found[step.node] = child
    return found


def _jobs(plan: Plan) -> dict[str, str]:
    """Name the jobs that steps run, by node."""
    every = chain(plan.nodes.values(), plan.embedded.values())
    return {
        node.id: node.declaration.job
        for node in every
        if isinstance(node, StepNode) and isinstance(node.declaration, JobDeclaration)
    }


def _looked_for(
    url: str, detail: ExecutionDetail, step: StepExecution, job: str
) -> RanChild | None:
    lineage = Lineage(detail.instance.id, step.node, detail.execution.id, step.visit)
    for execution in _attempts(url, job, lineage.instance_key(job)):
        if lineage_of(execution.parameters) == lineage:
            return RanChild(job, execution.id)
    return None


def _attempts(url: str, job: str, key: bytes) -> Iterator[JobExecution]:
    """Give the attempts at an instance, the latest first."""
    latest = ask(url, LatestExecution(job, key))
    if latest is None:
        return
    execution = latest.execution
    yield execution
    while execution.restart_of is not None:
        execution = ask(url, ShowExecution(execution.restart_of)).execution
        yield execution
