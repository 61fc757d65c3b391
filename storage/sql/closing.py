"""Closing in SQL what an owner has left open."""

from attrs import evolve

from ..backend import Waits
from ..codec import encode_failure
from ..model.execution import ExitCode, Failure
from ..model.status import BatchStatus, FailureCategory
from .partitions import NO_WORKER, close_partitions
from .rows import COUNTS
from .session import Session

LATEST = (
    "s.id IN (SELECT max(s2.id) FROM triolet.step s2 "
    "JOIN triolet.execution e2 ON e2.id = s2.execution_id "
    "WHERE e2.instance_id = {instance} GROUP BY s2.node, s2.visit)"
)
_SUMS = (
    "SELECT "
    + ", ".join(f"coalesce(sum({name.strip()}), 0)" for name in COUNTS.split(","))
    + f" FROM triolet.step s WHERE {NO_WORKER} AND "
    + LATEST.format(instance="triolet.execution.instance_id")
)
# Why something is UNKNOWN says more than that it was closed.
_FAILURE = (
    "CASE WHEN status = 'UNKNOWN' THEN coalesce(failure, $1) "
    "ELSE coalesce($1, failure) END"
)
_OPEN_STEPS = (
    "SELECT id, node FROM triolet.step WHERE execution_id = $1 "
    "AND status IN ('STARTING', 'STARTED', 'STOPPING')"
)
_UNKNOWN_STEPS = (
    "SELECT id, node FROM triolet.step WHERE execution_id = $1 AND status = 'UNKNOWN'"
)
_CLOSE_STEP = (
    f"UPDATE triolet.step SET failure = {_FAILURE}, status = 'FAILED', "
    "exit_code = 'FAILED', ended_at = greatest($2, coalesce(started_at, created_at)), "
    "version = version + 2 WHERE id = $3"
)
_CLOSE_EXECUTION = (
    f"UPDATE triolet.execution SET ({COUNTS}) = ({_SUMS}), failure = {_FAILURE}, "
    "ended_at = greatest($2, coalesce(started_at, created_at)), "
    "version = version + 2, status = $4, exit_code = $5 WHERE id = $3"
)
_LEAVE_UNKNOWN = (
    "UPDATE triolet.execution SET status = 'UNKNOWN', version = version + 1 "
    "WHERE id = $1"
)
_STOP_PENDING = "SELECT 1 FROM triolet.stop_request WHERE execution_id = $1"


def take_over(
    db: Session, execution_id: int, failure_id: int, now: int
) -> Waits[BatchStatus]:
    """Close what a dead owner left; give what the execution has become.

    It is FAILED; or STOPPED, when a stop was pending; or UNKNOWN, when a step is.
    """
    died = Failure(FailureCategory.STALE_RECOVERED, failure_id, code="owner_died")
    yield from _close_steps(db, _OPEN_STEPS, execution_id, died, now)
    yield from close_partitions(db, execution_id)
    if (yield from db.fetch(_UNKNOWN_STEPS, (execution_id,))):
        yield from db.change(_LEAVE_UNKNOWN, (execution_id,))
        return BatchStatus.UNKNOWN
    if (yield from db.fetch(_STOP_PENDING, (execution_id,))):
        yield from _close(db, execution_id, BatchStatus.STOPPED, None, now)
        return BatchStatus.STOPPED
    yield from _close(db, execution_id, BatchStatus.FAILED, died, now)
    return BatchStatus.FAILED


def decide(
    db: Session, execution_id: int, status: BatchStatus, failure_id: int, now: int
) -> Waits[None]:
    """Close an execution as an operator decided, with all its open steps."""
    why = Failure(FailureCategory.STALE_RECOVERED, failure_id, code="recovered")
    yield from _close_steps(db, _OPEN_STEPS, execution_id, why, now)
    yield from _close_steps(db, _UNKNOWN_STEPS, execution_id, why, now)
    yield from close_partitions(db, execution_id)
    yield from _close(db, execution_id, status, why, now)


def _close_steps(
    db: Session, query: str, execution_id: int, why: Failure, now: int
) -> Waits[None]:
    for step_id, node in (yield from db.fetch(query, (execution_id,))):
        failure = encode_failure(evolve(why, where=node))
        yield from db.change(_CLOSE_STEP, (failure, now, step_id))


def _close(
    db: Session,
    execution_id: int,
    status: BatchStatus,
    why: Failure | None,
    now: int,
) -> Waits[None]:
    stopped = status is BatchStatus.STOPPED
    code = ExitCode.STOPPED if stopped else ExitCode.FAILED
    values = (encode_failure(why), now, execution_id, status.value, code.value)
    yield from db.change(_CLOSE_EXECUTION, values)
