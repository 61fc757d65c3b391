"""Which nodes that began and did not complete keep every later attempt from success."""

from ...storage.model.execution import ExitCode, Terminal
from .plan import PartitionedNode, Plan, SplitNode, StepNode, nodes_of


def is_barred(plan: Plan, node: str, *, partition: bool = False) -> bool:
    """Tell whether the job fails in every attempt that comes to the node again.

    Args:
        plan: Of the job.
        node: It began, and did not complete.
        partition: It is partitioned, and it is one of its partitions that began.
    """
    found = plan.every.get(node)
    if isinstance(found, PartitionedNode) and partition:
        return not found.worker.restartable and fails_job(plan, node)
    # A step that may not be started fails without a look at its rules.
    once = isinstance(found, StepNode) and not found.restartable
    return once and _fails_around(plan, node)


def fails_job(plan: Plan, node: str) -> bool:
    """Tell whether the exit code FAILED of a node makes the job fail, and leads nowhere."""
    if node in plan.rules:
        target = plan.select(node, ExitCode.FAILED)
        if target is not None and target is not Terminal.FAIL:
            return False
    return _fails_around(plan, node)


def _fails_around(plan: Plan, node: str) -> bool:
    """Tell the same of a branch that fails with a node, and of the splits around it."""
    for split in plan.every.values():
        if isinstance(split, SplitNode):
            for branch in split.branches:
                if any(one.id == node for one in nodes_of(branch)):
                    return fails_job(plan, split.join)
    return True
