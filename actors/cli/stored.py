"""What the store says of a job's definition, without the job's code."""

from collections.abc import Iterable, Iterator

from ...storage.commands.upgrading import FindDefinition
from ...storage.model.errors import CorruptRecord
from ...storage.model.execution import JobExecution, JobInstance
from ..plan.manifest import read_manifest
from ..plan.plan import PartitionedNode, Plan, StepNode
from .asking import ask


def stored_plan(
    url: str, instance: JobInstance, execution: JobExecution
) -> Plan | None:
    """Give the plan that an execution runs; None when this release cannot read it."""
    question = FindDefinition(instance.job, execution.revision)
    try:
        return read_manifest(ask(url, question).manifest)
    except CorruptRecord:
        return None


def once_only(plan: Plan, begun: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """Name the nodes that must not run again, of those that did not complete.

    Args:
        plan: Of their execution.
        begun: Nodes, and whether a partition of the node has begun, not the node itself.
    """
    for name, is_partition in begun:
        node = plan.every.get(name)
        if is_partition and isinstance(node, PartitionedNode):
            node = node.worker
        if isinstance(node, StepNode) and not node.restartable:
            yield name
