"""Who may change what: conditions on statuses, the owner's fence, a step's state."""

from collections.abc import Iterable

from ..backend import Waits
from ..commands import ExecutionNotFound, LeaseLost, StepUnknown
from ..model.status import TRANSITIONS, BatchStatus
from .session import Session


def any_of(statuses: Iterable[BatchStatus], column: str = "status") -> str:
    """Write a condition on a row's status.

    IN would make SQLite fill a temporary index whenever the statement is carried out.
    """
    choices = " OR ".join(f"{column} = '{one.value}'" for one in statuses)
    return f"({choices or 'FALSE'})"


ACTIVE = any_of(one for one in BatchStatus if one.active)


def sources(target: BatchStatus, column: str = "status") -> str:
    """Write the condition that a row's status may become *target*."""
    return any_of((one for one in TRANSITIONS if target in TRANSITIONS[one]), column)


FENCE = (
    "EXISTS (SELECT 1 FROM triolet.execution WHERE id = $1 AND owner_id = $2 "
    f"AND {ACTIVE})"
)
"""Condition that the execution $1 is active and owned by $2."""


_OWNER = "SELECT owner_id, status FROM triolet.execution WHERE id = $1 FOR KEY SHARE"


def check_fence(db: Session, execution_id: int, owner_id: int) -> Waits[BatchStatus]:
    """Give an execution's status, if it is active and this owner's.

    Raises:
        ExecutionNotFound: There is no such execution.
        LeaseLost: It has ended, or it is somebody else's.
    """
    rows = yield from db.fetch(_OWNER, (execution_id,))
    if not rows:
        raise ExecutionNotFound(execution_id)
    owner, found = rows[0]
    status = BatchStatus(found)
    if owner != owner_id or not status.active:
        raise LeaseLost(execution_id, status)
    return status


_STATE = "SELECT status, version FROM triolet.step WHERE id = $1 AND execution_id = $2"


def step_state(
    db: Session, execution_id: int, step_id: int
) -> Waits[tuple[BatchStatus, int]]:
    """Give a step's status and version.

    Raises:
        StepUnknown: The execution has no such step.
    """
    rows = yield from db.fetch(_STATE, (step_id, execution_id))
    if not rows:
        raise StepUnknown(step_id)
    return BatchStatus(rows[0][0]), rows[0][1]
