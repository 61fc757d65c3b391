"""Answering questions in SQL."""

from ..backend import Waits
from ..commands import (
    ExecutionDetail,
    ExecutionLine,
    ExecutionNotFound,
    ExecutionPage,
    LatestExecution,
    ListExecutions,
    ShowExecution,
)
from ..model.execution import COUNT_MAX, Decision
from . import ownership
from .partitions import partitions_of
from .rows import (
    DECISION,
    EXECUTION,
    STEP,
    decision_of,
    execution_of,
    instance_of,
    step_of,
)
from .session import Session, Value


def list_executions(
    db: Session, question: ListExecutions, now: int
) -> Waits[ExecutionPage]:
    """List executions, newest first, one more than asked to know whether there are."""
    wanted: list[tuple[str, Value]] = []
    if question.job is not None:
        wanted.append(("i.job =", question.job))
    if question.status is not None:
        wanted.append(("e.status =", question.status.value))
    if question.before is not None:
        wanted.append(("e.id <", question.before))
    where = " AND ".join(f"{one} ${at}" for at, (one, _) in enumerate(wanted, 1))
    rows = yield from db.fetch(
        f"{EXECUTION} WHERE {where or 'TRUE'} "
        f"ORDER BY e.id DESC LIMIT ${len(wanted) + 1}",
        (*(value for _, value in wanted), question.limit + 1),
    )
    lines = [ExecutionLine(execution_of(row), instance_of(row)) for row in rows]
    return ExecutionPage(tuple(lines[: question.limit]), len(lines) > question.limit)


def latest_execution(
    db: Session, question: LatestExecution, now: int
) -> Waits[ExecutionLine | None]:
    """Give the latest execution of one instance."""
    rows = yield from db.fetch(
        f"{EXECUTION} WHERE i.job = $1 AND i.instance_key = $2 "
        "ORDER BY e.attempt DESC LIMIT 1",
        (question.job, question.instance_key),
    )
    return ExecutionLine(execution_of(rows[0]), instance_of(rows[0])) if rows else None


def show_execution(
    db: Session, question: ShowExecution, now: int
) -> Waits[ExecutionDetail]:
    """Collect everything that is known of one execution."""
    if not 0 < question.execution_id <= COUNT_MAX:
        raise ExecutionNotFound(question.execution_id)
    key = (question.execution_id,)
    rows = yield from db.fetch(f"{EXECUTION} WHERE e.id = $1", key)
    if not rows:
        raise ExecutionNotFound(question.execution_id)
    execution = execution_of(rows[0])
    steps = yield from db.fetch(f"{STEP} WHERE s.execution_id = $1 ORDER BY s.id", key)
    own = yield from db.fetch(f"{DECISION} WHERE c.execution_id = $1", key)
    reused = yield from db.fetch(
        f"{STEP} JOIN triolet.decision c ON c.step_id = s.id "
        "WHERE c.execution_id = $1 AND c.kind = 'COMPLETED_STEP_REUSE' "
        "ORDER BY c.sequence",
        key,
    )
    owner, _ = yield from ownership.facts_of(db, execution.owner_id)
    records = tuple(step_of(row) for row in steps)
    decisions: list[Decision] = [decision_of(row) for row in own]
    decisions += [step.decision for step in records if step.decision is not None]
    return ExecutionDetail(
        execution=execution,
        instance=instance_of(rows[0]),
        owner=owner,
        steps=records,
        decisions=tuple(sorted(decisions, key=lambda one: one.sequence)),
        reused=tuple(step_of(row) for row in reused),
        partitions=(yield from partitions_of(db, execution.id)),
    )
