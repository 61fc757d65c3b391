"""Answering questions from SQLite."""

import sqlite3
from collections.abc import Callable
from typing import Any

from ..commands import (
    ExecutionDetail,
    ExecutionLine,
    ExecutionNotFound,
    ExecutionPage,
    ListExecutions,
    ShowExecution,
)
from ..model.execution import COUNT_MAX, Decision
from . import ownership
from .rows import (
    DECISION,
    EXECUTION,
    STEP,
    decision_of,
    execution_of,
    instance_of,
    step_of,
)


def list_executions(
    db: sqlite3.Connection, question: ListExecutions, now: int
) -> ExecutionPage:
    """List executions, newest first, one more than asked to know whether there are."""
    conditions: list[tuple[str, Any]] = []
    if question.job is not None:
        conditions.append(("i.job = ?", question.job))
    if question.status is not None:
        conditions.append(("e.status = ?", question.status.value))
    if question.before is not None:
        conditions.append(("e.id < ?", question.before))
    where = " AND ".join(text for text, _ in conditions) or "1"
    rows = db.execute(
        f"{EXECUTION} WHERE {where} ORDER BY e.id DESC LIMIT ?",
        (*(value for _, value in conditions), question.limit + 1),
    ).fetchall()
    lines = [ExecutionLine(execution_of(row), instance_of(row)) for row in rows]
    return ExecutionPage(tuple(lines[: question.limit]), len(lines) > question.limit)


def show_execution(
    db: sqlite3.Connection, question: ShowExecution, now: int
) -> ExecutionDetail:
    """Collect everything that is known of one execution."""
    if not 0 < question.execution_id <= COUNT_MAX:
        raise ExecutionNotFound(question.execution_id)
    key = (question.execution_id,)
    row = db.execute(f"{EXECUTION} WHERE e.id = ?", key).fetchone()
    if row is None:
        raise ExecutionNotFound(question.execution_id)
    execution = execution_of(row)
    steps = db.execute(f"{STEP} WHERE s.execution_id = ? ORDER BY s.id", key).fetchall()
    own = db.execute(f"{DECISION} WHERE c.execution_id = ?", key).fetchall()
    reused = db.execute(
        f"{STEP} JOIN triolet_decision c ON c.step_id = s.id "
        "WHERE c.execution_id = ? AND c.kind = 'COMPLETED_STEP_REUSE' "
        "ORDER BY c.sequence",
        key,
    ).fetchall()
    records = tuple(step_of(row) for row in steps)
    decisions: list[Decision] = [decision_of(row) for row in own]
    decisions += [step.decision for step in records if step.decision is not None]
    return ExecutionDetail(
        execution=execution,
        instance=instance_of(row),
        owner=ownership.facts_of(db, execution.owner_id)[0],
        steps=records,
        decisions=tuple(sorted(decisions, key=lambda one: one.sequence)),
        reused=tuple(step_of(row) for row in reused),
    )


HANDLERS: dict[type, Callable[[sqlite3.Connection, Any, int], object]] = {
    ListExecutions: list_executions,
    ShowExecution: show_execution,
}
