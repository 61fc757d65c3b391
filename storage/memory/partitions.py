"""Partitions in memory: what is checked before a change, and what came of workers."""

from ..commands import PartitionStale, PlanUnknown
from ..model.execution import ExitCode
from ..model.partition import CopiedPlan, PartitionExecution, PartitionRef
from ..model.status import BatchStatus
from .tables import ExecutionRow, InstanceRow, PartitionRow, StepRow, Tables


def _find(tables: Tables, ref: PartitionRef) -> PartitionRow:
    found = tables.partitions.get(ref.manager_id, {}).get(ref.ordinal)
    if found is None:
        raise PartitionStale(ref.manager_id, ref.ordinal)
    return found


def check_assigned(
    tables: Tables,
    execution: ExecutionRow,
    ref: PartitionRef,
    begun: StepRow | None,
    finished: StepRow | None,
) -> None:
    """Refuse a partition that is not pending, or whose manager does not run.

    The manager may have begun or ended by the same command.
    """
    manager = tables.steps.get(ref.manager_id)
    if (
        _find(tables, ref).status is not BatchStatus.STARTING
        or manager is None
        or manager.execution is not execution
        or manager is finished
        or (manager is not begun and manager.status is not BatchStatus.STARTED)
    ):
        raise PartitionStale(ref.manager_id, ref.ordinal)


def check_published(tables: Tables, ref: PartitionRef, worker_id: int) -> None:
    """Refuse a worker that does not work on the partition."""
    one = _find(tables, ref)
    if one.worker_id != worker_id or one.status is not BatchStatus.STARTED:
        raise PartitionStale(ref.manager_id, ref.ordinal)


def check_copied(
    tables: Tables, execution: ExecutionRow, node: str, plan: CopiedPlan
) -> None:
    """Refuse a plan that is not there, or is that of another node or instance."""
    source = tables.steps.get(plan.manager_id)
    if (
        source is None
        or not tables.partitions.get(plan.manager_id)
        or source.node != node
        or source.execution.instance is not execution.instance
    ):
        raise PlanUnknown(plan.manager_id)


def publish(tables: Tables, ref: PartitionRef, worker: StepRow) -> None:
    """Take over what came of a worker from its own row."""
    one = _find(tables, ref)
    one.status = worker.status
    one.exit_code = worker.exit_code
    one.counts = worker.counts
    one.version += 1


def close_partitions(tables: Tables, execution: ExecutionRow) -> None:
    """Close what the workers of a dead owner had begun."""
    for step in execution.steps.values():
        for one in tables.partitions.get(step.id, {}).values():
            if one.status is BatchStatus.STARTED:
                one.status = BatchStatus.FAILED
                one.exit_code = ExitCode.FAILED
                one.version += 1


def latest_plans(
    tables: Tables, instance: InstanceRow
) -> tuple[PartitionExecution, ...]:
    """Give the latest plan of each node and visit of an instance."""
    managers: dict[tuple[str, int], int] = {}
    for execution in instance.executions:
        for step in execution.steps.values():
            if tables.partitions.get(step.id):
                key = step.node, step.visit
                managers[key] = max(step.id, managers.get(key, 0))
    return tuple(
        tables.partitions[manager][ordinal].record()
        for manager in sorted(managers.values())
        for ordinal in sorted(tables.partitions[manager])
    )


def partitions_of(
    tables: Tables, execution: ExecutionRow
) -> tuple[PartitionExecution, ...]:
    """Give all partitions of one execution, in order."""
    managers = sorted(step.id for step in execution.steps.values())
    return tuple(
        one.record()
        for manager in managers
        for _, one in sorted(tables.partitions.get(manager, {}).items())
    )
