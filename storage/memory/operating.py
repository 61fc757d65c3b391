"""What operators do, in memory: judged, carried out and audited.

A refusal is given back as the reply, not raised: its audit record has to stay.
"""

from typing import TypeAlias, assert_never

from attrs import evolve

from ..commands import (
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
from ..model.operation import Directive, Operation, RecoveryDecision, StopRequest
from ..model.status import BatchStatus
from .advancing import fenced
from .closing import decide, take_over
from .diagnosing import seen_of
from .tables import ExecutionRow, Tables

_Request: TypeAlias = RequestStop | Abandon | Recover
_NOT_STOPPING = (BatchStatus.STARTING, BatchStatus.STARTED)


def operate(tables: Tables, request: _Request, now: int) -> Operated | Rejection:
    """Carry out an operator's request, or recall what came of it."""
    recorded = tables.operations.get(request.operation_id)
    if recorded is not None:
        return _recalled(request, recorded)
    refusal: Rejection | None = ExecutionNotFound(request.execution_id)
    execution = tables.executions.get(request.execution_id)
    record = result = None
    if execution is not None:
        record = execution.record
        refusal = refusal_of(request, seen_of(tables, execution, now))
        if refusal is None:
            _carry_out(tables, request, execution, now)
        result = execution.record.status
    operation = tables.operations[request.operation_id] = Operation(
        action=request.action,
        operation_id=request.operation_id,
        execution_id=request.execution_id,
        actor=request.actor,
        reason=request.reason,
        digest=request.digest,
        observed_version=None if record is None else record.version,
        prior=None if record is None else record.status,
        result=result,
        refusal=refusal,
        requested_at=now,
    )
    return refusal or Operated(operation)


def _recalled(request: _Request, operation: Operation) -> Operated:
    if operation.digest != request.digest:
        raise OperationIdConflict(request.operation_id)
    if operation.refusal is not None:
        raise operation.refusal
    return Operated(operation, replayed=True)


def _carry_out(
    tables: Tables, request: _Request, execution: ExecutionRow, now: int
) -> None:
    match request:
        case RequestStop():
            _request_stop(tables, request, execution, now)
        case Abandon():
            _abandon(execution)
        case Recover():
            _recover(tables, request, execution, now)
        case _:
            assert_never(request)


def _request_stop(
    tables: Tables, request: RequestStop, execution: ExecutionRow, now: int
) -> None:
    record = execution.record
    if record.status in _NOT_STOPPING:
        tables.stops[record.id] = StopRequest(
            execution_id=record.id,
            owner_id=record.owner_id,
            actor=request.actor,
            reason=request.reason,
            requested_at=now,
        )


def _abandon(execution: ExecutionRow) -> None:
    record = execution.record
    if record.status is not BatchStatus.ABANDONED:
        execution.record = evolve(
            record, status=BatchStatus.ABANDONED, version=record.version + 1
        )


def _recover(
    tables: Tables, request: Recover, execution: ExecutionRow, now: int
) -> None:
    record, failure_id = execution.record, request.failure_id
    match request.directive:
        case Directive.TAKE_OVER:
            take_over(tables, execution, failure_id, now)
        case Directive.MARK_FAILED:
            decide(tables, execution, BatchStatus.FAILED, failure_id, now)
        case Directive.ABANDON:
            decide(tables, execution, BatchStatus.ABANDONED, failure_id, now)
    tables.recoveries.append(
        RecoveryDecision(
            execution_id=record.id,
            version=record.version,
            prior=record.status,
            result=execution.record.status,
            actor=request.actor,
            reason=request.reason,
            evidence=request.evidence,
            decided_at=now,
        )
    )


def begin_stopping(tables: Tables, command: BeginStopping, now: int) -> StoppingBegun:
    """Make an execution with a pending stop STOPPING."""
    execution = fenced(tables, command.execution_id, command.owner_id)
    record = execution.record
    if record.status in _NOT_STOPPING and record.id in tables.stops:
        execution.record = evolve(
            record, status=BatchStatus.STOPPING, version=record.version + 1
        )
    return StoppingBegun(execution.record.status)
