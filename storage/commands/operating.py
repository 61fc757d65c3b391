"""What operators ask for: stop, abandon, recover; and what they ask about.

Each action leaves an audit record, also one that is refused. The same operation id with
the same request gives the recorded outcome again, and does nothing.
"""

from abc import ABC, abstractmethod

from attrs import field, frozen

from ..model.bounds import check_whole
from ..model.errors import Rejection, error, listed
from ..model.execution import COUNT_MAX, JobExecution, JobInstance, StepExecution
from ..model.operation import (
    Action,
    Directive,
    Evidence,
    Operation,
    RecoveryDecision,
    StopRequest,
    allowed_actions,
    check_words,
    request_digest,
)
from ..model.status import BatchStatus
from .command import Command, Question
from .ownership import OwnerFacts
from .questions import PAGE_MAX, ExecutionNotFound

STOP_CHANNEL = "triolet_stop"
"""On which a store that can push says that a stop was requested."""


def _check_execution(execution_id: int) -> None:
    """Refuse what is no number of an execution, or one that no store can have.

    Raises:
        InvalidValue: It is no whole number.
        ExecutionNotFound: It is out of the bounds of all stores.
    """
    if type(execution_id) is int and not 0 < execution_id <= COUNT_MAX:
        raise ExecutionNotFound(execution_id)
    check_whole("the number of an execution", execution_id, 1, COUNT_MAX)


@frozen(kw_only=True)
class OperatorRequest(Command["Operated"], ABC):
    """What all operator actions have in common.

    Raises:
        InvalidValue: A word is empty, too long or cannot be printed, or the version is
            no whole number.
        ExecutionNotFound: No store can have such an execution.
    """

    execution_id: int
    actor: str
    """Who asks; nobody checks it."""
    operation_id: str
    """Chosen by the sender: what is sent twice under one id is done once."""
    reason: str | None = None
    expected_version: int | None = None
    """Refuse when the execution has changed since; None: whatever it is."""

    def __attrs_post_init__(self) -> None:
        check_words(self.operation_id, self.actor, self.reason)
        _check_execution(self.execution_id)
        if self.expected_version is not None:
            check_whole("the expected version", self.expected_version, 0, COUNT_MAX)

    @property
    def alone(self) -> bool:
        """Always: it locks the execution that somebody else works on."""
        return True

    @property
    @abstractmethod
    def action(self) -> Action:
        """Give the action's name in the audit record."""

    @property
    def digest(self) -> bytes:
        """Digest the request, without its actor."""
        return request_digest(
            self.action, self.execution_id, self.expected_version, self.reason
        )


@frozen(kw_only=True)
class RequestStop(OperatorRequest):
    """Ask for an execution's stop, which its owner sees at its next look.

    One that is STOPPING or has ended stays as it is; one that is UNKNOWN is refused.
    The stop of an execution whose owner is dead changes nothing by itself: a takeover
    makes it STOPPED.
    """

    @property
    def action(self) -> Action:
        """Give the action's name in the audit record."""
        return Action.STOP


@frozen(kw_only=True)
class Abandon(OperatorRequest):
    """Close the instance of a STOPPED or FAILED execution for good.

    One that is ABANDONED stays as it is. An UNKNOWN one has to be recovered first. An
    earlier attempt is refused: it would not close the instance.
    """

    @property
    def action(self) -> Action:
        """Give the action's name in the audit record."""
        return Action.ABANDON


@frozen(kw_only=True)
class Recover(OperatorRequest):
    """Decide what an execution came to that nobody works on any more.

    That is one that is UNKNOWN, or one whose owner's lease has run out. Its open steps
    are closed as a takeover closes them; failures that are known already stay.
    """

    directive: Directive
    evidence: bytes = field(repr=False)
    """The digest of what the operator has seen; see `Diagnose`."""
    expected_version: int
    requester: int | None = None
    """The owner that asks, which may not recover what is its own."""
    dead_owner: int | None = None
    """An owner that is proved dead, whose lease needs not run out."""

    @property
    def action(self) -> Action:
        """Give the action's name in the audit record."""
        return Action.RECOVER

    @property
    def digest(self) -> bytes:
        """Digest the request, without its actor and what proves the owner dead.

        The failure that it leads to is no part of it, because it follows from it.
        """
        return request_digest(
            self.action,
            self.execution_id,
            self.expected_version,
            self.reason,
            (self.directive, self.evidence),
        )

    @property
    def failure_id(self) -> int:
        """Give the id of the failure that is recorded."""
        return int.from_bytes(self.digest[:8], "big") >> 1 or 1


@frozen
class Operated:
    """The action was done, or what it asks for had been true already."""

    operation: Operation
    replayed: bool = False
    """Whether the same request had been sent before."""


@frozen
class BeginStopping(Command["StoppingBegun"]):
    """Let the owner take in a pending stop: the execution becomes STOPPING.

    Without a pending stop, and for one that is STOPPING, nothing changes.
    """

    execution_id: int
    owner_id: int


@frozen
class StoppingBegun:
    """How the execution stands now."""

    status: BatchStatus


@frozen
class FindStops(Question["StopsFound"]):
    """Find an owner's active executions with a pending stop."""

    owner_id: int


@frozen
class StopsFound:
    """Executions that are to be stopped, oldest first."""

    executions: tuple[int, ...]


@frozen
class ListOperations(Question["OperatorHistory"]):
    """Give what operators did to one execution."""

    execution_id: int

    def __attrs_post_init__(self) -> None:
        _check_execution(self.execution_id)


@frozen(kw_only=True)
class OperatorHistory:
    """What operators did to one execution, in order."""

    stop: StopRequest | None
    """The last one; it is pending while the execution is STARTING or STARTED."""
    recoveries: tuple[RecoveryDecision, ...]
    operations: tuple[Operation, ...]


@frozen
class Diagnose(Question["Diagnosis"]):
    """Give the executions that have not ended, oldest first."""

    execution_id: int | None = None
    """Only this one; `ExecutionNotFound` when there is none."""
    limit: int = 100

    def __attrs_post_init__(self) -> None:
        check_whole("the limit of a diagnosis", self.limit, 0, PAGE_MAX)
        if self.execution_id is not None:
            _check_execution(self.execution_id)


@frozen(kw_only=True)
class Unresolved:
    """An execution that has not ended, and all that says whether it ever will."""

    execution: JobExecution
    instance: JobInstance
    owner: OwnerFacts
    lease_left: int
    """Microseconds until the owner's lease runs out, 0 when it has."""
    stop: StopRequest | None
    steps: tuple[StepExecution, ...]
    """Those that are active or UNKNOWN."""
    evidence: Evidence


@frozen
class Diagnosis:
    """Executions that have not ended, and whether there are more."""

    unresolved: tuple[Unresolved, ...]
    more: bool


_VERBS = {
    Action.STOP: ("stop", "stopped"),
    Action.ABANDON: ("abandon", "abandoned"),
    Action.RECOVER: ("recover", "recovered"),
}


@error
class ActionNotAllowed(Rejection):
    """The execution stands where this action has no sense."""

    code = "action_not_allowed"
    action: Action
    execution_id: int
    status: BatchStatus
    unknown_step: bool = False
    """A takeover may not decide what only an operator can."""

    def __str__(self) -> str:
        allowed = ["restart"] if self.status.restartable else []
        allowed += [_VERBS[one][0] for one in allowed_actions(self.status)]
        now = (
            f"what is allowed now is {listed(allowed)}"
            if allowed
            else "nothing can be done to it any more"
        )
        if self.unknown_step:
            now = "what a step of it did is UNKNOWN, so an operator has to recover it"
        done = _VERBS[self.action][1]
        return f"execution {self.execution_id} is {self.status} and cannot be {done}: {now}"


@error
class NotLatestAttempt(Rejection):
    """An earlier attempt was named; the instance stands where its latest one does."""

    code = "not_latest_attempt"
    execution_id: int
    latest: int

    def __str__(self) -> str:
        return (
            f"execution {self.execution_id} was continued by execution {self.latest}: "
            "name that one"
        )


@error
class EvidenceChanged(Rejection):
    """The execution is not as the operator has seen it."""

    code = "evidence_changed"
    execution_id: int

    def __str__(self) -> str:
        return (
            f"execution {self.execution_id} has changed since it was looked at: look "
            "again with 'triolet doctor'"
        )


@error
class OperationIdConflict(Rejection):
    """The operation id was used for another request; nothing was done."""

    code = "operation_id_conflict"
    operation_id: str

    def __str__(self) -> str:
        return (
            f"operation id {self.operation_id!r} was used for another request: give "
            "this one an id of its own"
        )
