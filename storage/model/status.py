"""Batch statuses and failure categories, with the whole transition matrix.

What lives here is data: the statuses, which may follow which, and the one function
that says no. Jobs and steps share the matrix.
"""

from enum import StrEnum

from .errors import Rejection, error


class BatchStatus(StrEnum):
    """Where an execution stands; the spellings are stored."""

    STARTING = "STARTING"
    STARTED = "STARTED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    COMPLETED = "COMPLETED"
    ABANDONED = "ABANDONED"
    UNKNOWN = "UNKNOWN"

    @property
    def active(self) -> bool:
        """Whether somebody is, or should be, working on it."""
        return self in ACTIVE

    @property
    def finished(self) -> bool:
        """Whether it has an end time. UNKNOWN is neither active nor finished."""
        return self in FINISHED

    @property
    def restartable(self) -> bool:
        """Whether a new attempt of the same instance may follow."""
        return self in RESTARTABLE


ACTIVE = frozenset({BatchStatus.STARTING, BatchStatus.STARTED, BatchStatus.STOPPING})
RESTARTABLE = frozenset({BatchStatus.STOPPED, BatchStatus.FAILED})
FINISHED = RESTARTABLE | {BatchStatus.COMPLETED, BatchStatus.ABANDONED}
UNRESOLVED = ACTIVE | {BatchStatus.UNKNOWN}
"""Statuses that hold the one slot for an unresolved attempt of an instance."""

_S = BatchStatus
TRANSITIONS: dict[BatchStatus, frozenset[BatchStatus]] = {
    _S.STARTING: frozenset({_S.STARTED, _S.STOPPING, _S.FAILED, _S.UNKNOWN}),
    _S.STARTED: frozenset(
        {_S.STOPPING, _S.STOPPED, _S.FAILED, _S.COMPLETED, _S.UNKNOWN}
    ),
    _S.STOPPING: frozenset({_S.STOPPED, _S.FAILED, _S.UNKNOWN}),
    _S.STOPPED: frozenset({_S.ABANDONED}),
    _S.FAILED: frozenset({_S.ABANDONED}),
    _S.COMPLETED: frozenset(),
    _S.ABANDONED: frozenset(),
    _S.UNKNOWN: frozenset({_S.FAILED, _S.ABANDONED}),
}
"""Which status may follow which, in place. A restart is a new attempt instead."""


@error
class IllegalTransition(Rejection):
    """The status may not follow the present one."""

    code = "illegal_transition"
    found: BatchStatus
    wanted: BatchStatus

    def __str__(self) -> str:
        return f"{self.wanted} may not follow {self.found}"


@error
class RestartNeedsNewAttempt(Rejection):
    """A finished attempt is never reopened; launching makes a new one."""

    code = "restart_needs_new_attempt"
    found: BatchStatus

    def __str__(self) -> str:
        return f"an attempt that is {self.found} is not reopened: launch the job again"


def check_transition(found: BatchStatus, wanted: BatchStatus) -> None:
    """Refuse a transition that the matrix does not have.

    Raises:
        RestartNeedsNewAttempt: When a restartable attempt would be reopened.
        IllegalTransition: For every other pair that is not in the matrix.
    """
    if found.restartable and wanted is BatchStatus.STARTING:
        raise RestartNeedsNewAttempt(found)
    if wanted not in TRANSITIONS[found]:
        raise IllegalTransition(found, wanted)


class FailureCategory(StrEnum):
    """Why an execution failed, as a closed list; the spellings are stored."""

    INVALID_DEFINITION = "INVALID_DEFINITION"
    DUPLICATE_EXECUTION = "DUPLICATE_EXECUTION"
    ILLEGAL_TRANSITION = "ILLEGAL_TRANSITION"
    TRANSIENT_INFRASTRUCTURE = "TRANSIENT_INFRASTRUCTURE"
    PERMANENT_INFRASTRUCTURE = "PERMANENT_INFRASTRUCTURE"
    USER_COMPONENT = "USER_COMPONENT"
    CANCELLED = "CANCELLED"
    SERIALIZATION = "SERIALIZATION"
    INVARIANT = "INVARIANT"
    OPTIMISTIC_CONFLICT = "OPTIMISTIC_CONFLICT"
    TIMEOUT = "TIMEOUT"
    UNSUPPORTED_CAPABILITY = "UNSUPPORTED_CAPABILITY"
    UNKNOWN_COMMIT = "UNKNOWN_COMMIT"
    SHUTDOWN_INCOMPLETE = "SHUTDOWN_INCOMPLETE"
    STALE_RECOVERED = "STALE_RECOVERED"
