"""Whether an operator's request is carried out: one judge for every store."""

from attrs import frozen

from ..model.errors import Rejection
from ..model.execution import JobExecution
from ..model.operation import Action, Directive, Evidence
from ..model.status import BatchStatus
from .advancing import StaleVersion
from .opening import AlreadyRunning
from .operating import (
    ActionNotAllowed,
    EvidenceChanged,
    NotLatestAttempt,
    OperatorRequest,
    Recover,
)
from .ownership import OwnerFacts


@frozen(kw_only=True)
class Seen:
    """What a store knows of the execution that an operator named."""

    execution: JobExecution
    latest: int
    """The latest attempt at its instance."""
    owner: OwnerFacts
    lease_left: int
    """Microseconds; 0 when the lease has run out."""
    evidence: Evidence
    unknown_step: bool
    """Whether any of its steps is UNKNOWN."""


def refusal_of(request: OperatorRequest, seen: Seen) -> Rejection | None:
    """Say why the request is refused; None when it is not."""
    execution = seen.execution
    expected, status = request.expected_version, execution.status
    if expected is not None and expected != execution.version:
        return StaleVersion(expected, execution.version)
    if isinstance(request, Recover):
        return _recovery_refusal(request, seen)
    if request.action is Action.STOP:
        allowed = status is not BatchStatus.UNKNOWN
    else:
        allowed = status.restartable or status is BatchStatus.ABANDONED
    if not allowed:
        return ActionNotAllowed(request.action, execution.id, status)
    if request.action is Action.ABANDON and seen.latest != execution.id:
        return NotLatestAttempt(execution.id, seen.latest)
    return None


def _recovery_refusal(request: Recover, seen: Seen) -> Rejection | None:
    execution = seen.execution
    status, owner_id = execution.status, execution.owner_id
    deciding = request.directive is not Directive.TAKE_OVER
    if status.finished or not (status.active or deciding):
        return ActionNotAllowed(Action.RECOVER, execution.id, status)
    if status.active:
        lives = seen.lease_left > 0 and owner_id != request.dead_owner
        if lives or owner_id == request.requester:
            return AlreadyRunning(execution.id, owner_id, seen.owner, seen.lease_left)
    if request.evidence != seen.evidence.digest:
        return EvidenceChanged(execution.id)
    if seen.unknown_step and not deciding:
        return ActionNotAllowed(Action.RECOVER, execution.id, status, True)
    return None
