"""Closing in memory what an owner has left open."""

from collections.abc import Container

from attrs import evolve

from ..model.execution import NO_COUNTS, Counts, ExitCode, Failure
from ..model.partition import is_worker
from ..model.status import ACTIVE, UNRESOLVED, BatchStatus, FailureCategory
from .advancing import ended_at
from .partitions import close_partitions
from .tables import ExecutionRow, InstanceRow, Tables


def holds_unknown(execution: ExecutionRow) -> bool:
    """Tell whether any step is UNKNOWN."""
    return any(step.status is BatchStatus.UNKNOWN for step in execution.steps.values())


def take_over(
    tables: Tables, execution: ExecutionRow, failure_id: int, now: int
) -> BatchStatus:
    """Close what a dead owner left; give what the execution has become.

    It is FAILED; or STOPPED, when a stop was pending; or UNKNOWN, when a step is.
    """
    died = Failure(FailureCategory.STALE_RECOVERED, failure_id, code="owner_died")
    _close_steps(execution, ACTIVE, died, now)
    close_partitions(tables, execution)
    record = execution.record
    if holds_unknown(execution):
        execution.record = evolve(
            record, status=BatchStatus.UNKNOWN, version=record.version + 1
        )
    elif record.id in tables.stops:
        _close(execution, BatchStatus.STOPPED, None, now)
    else:
        _close(execution, BatchStatus.FAILED, died, now)
    return execution.record.status


def decide(
    tables: Tables,
    execution: ExecutionRow,
    status: BatchStatus,
    failure_id: int,
    now: int,
) -> None:
    """Close an execution as an operator decided, with all its open steps."""
    why = Failure(FailureCategory.STALE_RECOVERED, failure_id, code="recovered")
    _close_steps(execution, UNRESOLVED, why, now)
    close_partitions(tables, execution)
    _close(execution, status, why, now)


def _close_steps(
    execution: ExecutionRow, statuses: Container[BatchStatus], why: Failure, now: int
) -> None:
    for step in execution.steps.values():
        if step.status in statuses:
            step.failure = _sticky(
                step.status, step.failure, evolve(why, where=step.node)
            )
            step.ended_at = step.no_earlier(now)
            step.status = BatchStatus.FAILED
            step.exit_code = ExitCode.FAILED
            step.version += 2


def _close(
    execution: ExecutionRow, status: BatchStatus, why: Failure | None, now: int
) -> None:
    record = execution.record
    stopped = status is BatchStatus.STOPPED
    execution.record = evolve(
        record,
        status=status,
        exit_code=ExitCode.STOPPED if stopped else ExitCode.FAILED,
        counts=_summed(execution.instance),
        failure=_sticky(record.status, record.failure, why),
        ended_at=ended_at(execution, now),
        version=record.version + 2,
    )


def _sticky(
    found: BatchStatus, known: Failure | None, why: Failure | None
) -> Failure | None:
    """Choose the failure: why something is UNKNOWN says more than its closing."""
    return (known or why) if found is BatchStatus.UNKNOWN else (why or known)


def _summed(instance: InstanceRow) -> Counts:
    counts = (
        step.counts for step in instance.latest.values() if not is_worker(step.node)
    )
    return sum(counts, NO_COUNTS)
