"""What operators ask about, in SQL."""

from collections.abc import Sequence

from ..backend import Waits
from ..commands import (
    Diagnose,
    Diagnosis,
    ExecutionNotFound,
    FindStops,
    ListOperations,
    OperatorHistory,
    StopsFound,
    Unresolved,
)
from ..commands.judging import Seen
from ..model.execution import JobExecution, StepExecution
from ..model.operation import Evidence, StopRequest
from ..model.status import BatchStatus
from . import ownership
from .fencing import ACTIVE
from .rows import (
    EXECUTION,
    OPERATION,
    RECOVERY,
    STEP,
    STOP,
    execution_of,
    instance_of,
    operation_of,
    recovery_of,
    step_of,
    stop_of,
)
from .session import Row, Session

_FIND_STOPS = (
    "SELECT p.execution_id FROM triolet.stop_request p "
    "JOIN triolet.execution e ON e.id = p.execution_id "
    f"WHERE p.owner_id = $1 AND {ACTIVE} ORDER BY p.execution_id"
)


def find_stops(db: Session, question: FindStops, now: int) -> Waits[StopsFound]:
    """Find an owner's active executions with a pending stop."""
    rows = yield from db.fetch(_FIND_STOPS, (question.owner_id,))
    return StopsFound(tuple(row[0] for row in rows))


_KNOWN = "SELECT 1 FROM triolet.execution WHERE id = $1"
_STOP = f"{STOP} WHERE p.execution_id = $1"
_RECOVERIES = f"{RECOVERY} WHERE r.execution_id = $1 ORDER BY r.version"
_OPERATIONS = f"{OPERATION} WHERE o.execution_id = $1 ORDER BY o.id"


def list_operations(
    db: Session, question: ListOperations, now: int
) -> Waits[OperatorHistory]:
    """Give what operators did to one execution."""
    key = (question.execution_id,)
    if not (yield from db.fetch(_KNOWN, key)):
        raise ExecutionNotFound(question.execution_id)
    stops, recoveries, operations = yield from db.fetch_each(
        [(_STOP, key), (_RECOVERIES, key), (_OPERATIONS, key)]
    )
    return OperatorHistory(
        stop=stop_of(stops[0]) if stops else None,
        recoveries=tuple(map(recovery_of, recoveries)),
        operations=tuple(map(operation_of, operations)),
    )


def _stop(db: Session, execution_id: int) -> Waits[StopRequest | None]:
    rows = yield from db.fetch(_STOP, (execution_id,))
    return stop_of(rows[0]) if rows else None


# Spelled as in the index of unresolved executions, so that SQLite uses it.
_UNRESOLVED = (
    f"{EXECUTION} WHERE e.status IN ('STARTING', 'STARTED', 'STOPPING', 'UNKNOWN') "
)


def diagnose(db: Session, question: Diagnose, now: int) -> Waits[Diagnosis]:
    """Give executions that have not ended, one more than asked to know of more."""
    limit = question.limit
    if question.execution_id is None:
        query = f"{_UNRESOLVED} ORDER BY e.id LIMIT $1"
        rows = yield from db.fetch(query, (limit + 1,))
    else:
        key = (question.execution_id,)
        if not (yield from db.fetch(_KNOWN, key)):
            raise ExecutionNotFound(question.execution_id)
        rows = yield from db.fetch(f"{_UNRESOLVED} AND e.id = $1", key)
    found = []
    for row in rows[:limit]:
        one = yield from _unresolved(db, row, now)
        found.append(one)
    return Diagnosis(tuple(found), len(rows) > limit)


def _unresolved(db: Session, row: Row, now: int) -> Waits[Unresolved]:
    execution = execution_of(row)
    steps = yield from _steps(db, execution.id)
    seen = yield from seen_of(db, execution, now, steps)
    return Unresolved(
        execution=execution,
        instance=instance_of(row),
        owner=seen.owner,
        lease_left=seen.lease_left,
        stop=(yield from _stop(db, execution.id)),
        steps=tuple(one for one in steps if _is_open(one)),
        evidence=seen.evidence,
    )


def _is_open(step: StepExecution) -> bool:
    return step.status.active or step.status is BatchStatus.UNKNOWN


_STEPS = f"{STEP} WHERE s.execution_id = $1 ORDER BY s.id"
_LATEST_ATTEMPT = (
    "SELECT id FROM triolet.execution WHERE instance_id = $1 "
    "ORDER BY attempt DESC LIMIT 1"
)
_DECIDED = "SELECT 1 FROM triolet.decision WHERE execution_id = $1 LIMIT 1"


def _steps(db: Session, execution_id: int) -> Waits[list[StepExecution]]:
    rows = yield from db.fetch(_STEPS, (execution_id,))
    return [step_of(row) for row in rows]


def seen_of(
    db: Session,
    execution: JobExecution,
    now: int,
    steps: Sequence[StepExecution] | None = None,
) -> Waits[Seen]:
    """Collect what the judge of an operator's request has to know."""
    if steps is None:
        steps = yield from _steps(db, execution.id)
    owner, until = yield from ownership.facts_of(db, execution.owner_id)
    ((latest,),) = yield from db.fetch(_LATEST_ATTEMPT, (execution.instance_id,))
    decided = yield from db.fetch(_DECIDED, (execution.id,))
    return Seen(
        execution=execution,
        latest=latest,
        owner=owner,
        lease_left=max(until - now, 0),
        evidence=Evidence.of(execution, steps, bool(decided)),
        unknown_step=any(one.status is BatchStatus.UNKNOWN for one in steps),
    )
