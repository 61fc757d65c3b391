"""What operators ask about, in memory."""

from ..commands import (
    Diagnose,
    Diagnosis,
    FindStops,
    ListOperations,
    OperatorHistory,
    StopsFound,
    Unresolved,
)
from ..commands.judging import Seen
from ..model.operation import Evidence
from ..model.status import UNRESOLVED, BatchStatus
from .closing import holds_unknown
from .questions import step_of
from .tables import ExecutionRow, Tables


def find_stops(tables: Tables, question: FindStops, now: int) -> StopsFound:
    """Find an owner's active executions with a pending stop."""
    return StopsFound(
        tuple(
            stop.execution_id
            for _, stop in sorted(tables.stops.items())
            if stop.owner_id == question.owner_id
            and tables.executions[stop.execution_id].record.status.active
        )
    )


def list_operations(
    tables: Tables, question: ListOperations, now: int
) -> OperatorHistory:
    """Give what operators did to one execution."""
    key = tables.execution(question.execution_id).record.id
    recoveries = (one for one in tables.recoveries if one.execution_id == key)
    return OperatorHistory(
        stop=tables.stops.get(key),
        recoveries=tuple(sorted(recoveries, key=lambda one: one.version)),
        operations=tuple(
            one for one in tables.operations.values() if one.execution_id == key
        ),
    )


def diagnose(tables: Tables, question: Diagnose, now: int) -> Diagnosis:
    """Give executions that have not ended, one more than asked to know of more."""
    if question.execution_id is not None:
        rows = [tables.execution(question.execution_id)]
    else:
        rows = list(tables.executions.values())
    rows = [row for row in rows if row.record.status in UNRESOLVED]
    limit = question.limit
    found = tuple(_unresolved(tables, row, now) for row in rows[:limit])
    return Diagnosis(found, len(rows) > limit)


def _unresolved(tables: Tables, row: ExecutionRow, now: int) -> Unresolved:
    seen = seen_of(tables, row, now)
    return Unresolved(
        execution=row.record,
        instance=row.instance.stored.instance,
        owner=seen.owner,
        lease_left=seen.lease_left,
        stop=tables.stops.get(row.record.id),
        steps=tuple(
            step_of(step)
            for step in row.steps.values()
            if step.status.active or step.status is BatchStatus.UNKNOWN
        ),
        evidence=seen.evidence,
    )


def seen_of(tables: Tables, row: ExecutionRow, now: int) -> Seen:
    """Collect what the judge of an operator's request has to know."""
    record = row.record
    owner = tables.owner(record.owner_id)
    steps = [step_of(step) for step in row.steps.values()]
    return Seen(
        execution=record,
        latest=row.instance.executions[-1].record.id,
        owner=owner.facts,
        lease_left=max(owner.lease_until - now, 0),
        evidence=Evidence.of(record, steps, bool(row.decisions)),
        unknown_step=holds_unknown(row),
    )
