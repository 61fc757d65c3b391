"""What operators do, in SQL: judged, carried out and audited in one transaction.

A refusal is given back as the reply, not raised: its audit record has to stay.
"""

from typing import TypeAlias, assert_never

from ..backend import Waits
from ..codec import encode_refusal
from ..commands import (
    STOP_CHANNEL,
    Abandon,
    BeginStopping,
    ExecutionNotFound,
    Operated,
    OperationIdConflict,
    Recover,
    RequestStop,
    StoppingBegun,
)
from ..commands.judging import refusal_of
from ..model.errors import Rejection
from ..model.execution import JobExecution
from ..model.operation import Directive, Operation
from ..model.status import BatchStatus
from .closing import decide, take_over
from .diagnosing import seen_of
from .fencing import check_fence
from .rows import EXECUTION, OPERATION, execution_of, operation_of
from .session import Session

_Request: TypeAlias = RequestStop | Abandon | Recover

_RECORDED = f"{OPERATION} WHERE o.operation_id = $1"
_TARGET = f"{EXECUTION} WHERE e.id = $1 FOR UPDATE OF e"
_AUDIT = (
    "INSERT INTO triolet.operator_request (action, operation_id, execution_id, actor, "
    "reason, digest, observed_version, prior_status, result_status, outcome, refusal, "
    "requested_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) "
    "ON CONFLICT DO NOTHING"
)


def operate(db: Session, request: _Request, now: int) -> Waits[Operated | Rejection]:
    """Carry out an operator's request, or recall what came of it."""
    # The lock comes first: who sends the same at the same time finds it recorded.
    rows = yield from db.fetch(_TARGET, (request.execution_id,))
    recorded = yield from db.fetch(_RECORDED, (request.operation_id,))
    if recorded:
        return _recalled(request, operation_of(recorded[0]))
    refusal: Rejection | None = ExecutionNotFound(request.execution_id)
    execution = result = None
    if rows:
        execution = execution_of(rows[0])
        seen = yield from seen_of(db, execution, now)
        refusal = refusal_of(request, seen)
        result = execution.status
        if refusal is None:
            result = yield from _effect(db, request, execution, now)
    operation = Operation(
        action=request.action,
        operation_id=request.operation_id,
        execution_id=request.execution_id,
        actor=request.actor,
        reason=request.reason,
        digest=request.digest,
        observed_version=None if execution is None else execution.version,
        prior=None if execution is None else execution.status,
        result=result,
        refusal=refusal,
        requested_at=now,
    )
    if not (yield from _audit(db, operation)):
        # A request for another execution took the id at the same moment.
        (taken,) = yield from db.fetch(_RECORDED, (request.operation_id,))
        return _recalled(request, operation_of(taken))
    return refusal or Operated(operation)


def _recalled(request: _Request, operation: Operation) -> Operated:
    if operation.digest != request.digest:
        raise OperationIdConflict(request.operation_id)
    if operation.refusal is not None:
        raise operation.refusal
    return Operated(operation, replayed=True)


def _audit(db: Session, one: Operation) -> Waits[int]:
    """Enter the record; give 0 when there is one of that id."""
    values = (
        one.action.value,
        one.operation_id,
        one.execution_id,
        one.actor,
        one.reason,
        one.digest,
        one.observed_version,
        None if one.prior is None else one.prior.value,
        None if one.result is None else one.result.value,
        "APPLIED" if one.applied else "REJECTED",
        encode_refusal(one.refusal),
        one.requested_at,
    )
    return (yield from db.change(_AUDIT, values))


def _effect(
    db: Session, request: _Request, execution: JobExecution, now: int
) -> Waits[BatchStatus]:
    """Do what was asked for; give what the execution has become."""
    match request:
        case RequestStop():
            return (yield from _request_stop(db, request, execution, now))
        case Abandon():
            return (yield from _abandon(db, execution))
        case Recover():
            return (yield from _recover(db, request, execution, now))
        case _:
            assert_never(request)


_REQUEST_STOP = (
    "INSERT INTO triolet.stop_request VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (execution_id) DO UPDATE SET actor = excluded.actor, "
    "reason = excluded.reason, requested_at = excluded.requested_at"
)


def _request_stop(
    db: Session, request: RequestStop, execution: JobExecution, now: int
) -> Waits[BatchStatus]:
    if execution.status in (BatchStatus.STARTING, BatchStatus.STARTED):
        key = (execution.id, execution.owner_id)
        values = (*key, request.actor, request.reason, now)
        yield from db.change(_REQUEST_STOP, values)
        yield from db.notify(STOP_CHANNEL)
    return execution.status


_ABANDON = (
    "UPDATE triolet.execution SET status = 'ABANDONED', version = version + 1 "
    "WHERE id = $1 AND status <> 'ABANDONED'"
)


def _abandon(db: Session, execution: JobExecution) -> Waits[BatchStatus]:
    yield from db.change(_ABANDON, (execution.id,))
    return BatchStatus.ABANDONED


_DECIDE = (
    "INSERT INTO triolet.recovery_decision VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
)


def _recover(
    db: Session, request: Recover, execution: JobExecution, now: int
) -> Waits[BatchStatus]:
    key, failure_id = execution.id, request.failure_id
    if request.directive is Directive.TAKE_OVER:
        result = yield from take_over(db, key, failure_id, now)
    else:
        abandoned = request.directive is Directive.ABANDON
        result = BatchStatus.ABANDONED if abandoned else BatchStatus.FAILED
        yield from decide(db, key, result, failure_id, now)
    values = (
        execution.id,
        execution.version,
        execution.status.value,
        result.value,
        request.actor,
        request.reason,
        request.evidence,
        now,
    )
    yield from db.change(_DECIDE, values)
    return result


_BEGIN_STOPPING = (
    "UPDATE triolet.execution SET status = 'STOPPING', version = version + 1 "
    "WHERE id = $1 AND (status = 'STARTING' OR status = 'STARTED') AND EXISTS "
    "(SELECT 1 FROM triolet.stop_request WHERE execution_id = $1)"
)


def begin_stopping(
    db: Session, command: BeginStopping, now: int
) -> Waits[StoppingBegun]:
    """Make an execution with a pending stop STOPPING."""
    found = yield from check_fence(db, command.execution_id, command.owner_id)
    changed = yield from db.change(_BEGIN_STOPPING, (command.execution_id,))
    return StoppingBegun(BatchStatus.STOPPING if changed else found)
