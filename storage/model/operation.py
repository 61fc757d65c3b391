"""What operators do to executions, and what the store keeps of it.

Every operator action leaves an `Operation`, refused ones too; a recovery also leaves a
`RecoveryDecision`, and rests on `Evidence` that the operator has seen.
"""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from hashlib import sha256

from attrs import field, frozen

from .errors import InvalidValue, Rejection
from .execution import JobExecution, StepExecution
from .status import UNRESOLVED, BatchStatus, FailureCategory

OPERATION_ID_BYTES_MAX = 64
ACTOR_BYTES_MAX = 128
REASON_BYTES_MAX = 1024


class Action(StrEnum):
    """What an operator may ask for; the spellings are stored."""

    STOP = "STOP"
    ABANDON = "ABANDON"
    RECOVER = "RECOVER"


class Directive(StrEnum):
    """What a recovery makes of an execution."""

    MARK_FAILED = "mark_failed"
    """FAILED: a launch may continue it, if the job may be attempted again."""
    ABANDON = "abandon"
    """ABANDONED: the instance is closed for good."""
    TAKE_OVER = "take_over"
    """What a launch's takeover makes of it: STOPPED when a stop was pending, else
    FAILED. It decides nothing, so it is refused where something is UNKNOWN."""


@frozen(kw_only=True)
class StopRequest:
    """A stop that was asked for and that the owner has to see."""

    execution_id: int
    owner_id: int
    actor: str
    reason: str | None
    requested_at: int


@frozen(kw_only=True)
class RecoveryDecision:
    """What an operator decided of an execution in one version; never changed."""

    execution_id: int
    version: int
    """Of the execution when it was decided."""
    prior: BatchStatus
    result: BatchStatus
    actor: str
    reason: str | None
    evidence: bytes = field(repr=False)
    decided_at: int


@frozen(kw_only=True)
class Operation:
    """One operator action and what came of it."""

    action: Action
    operation_id: str
    execution_id: int
    actor: str
    reason: str | None
    digest: bytes = field(repr=False)
    """Of what was asked for; the actor is no part of it."""
    observed_version: int | None
    """Of the execution; None when there is no such execution."""
    prior: BatchStatus | None
    result: BatchStatus | None
    refusal: Rejection | None
    """Why it was refused; None when it was applied."""
    requested_at: int

    @property
    def applied(self) -> bool:
        """Whether it was done, or had been true already."""
        return self.refusal is None


@frozen(kw_only=True)
class Evidence:
    """What is durably known of an execution that nobody seems to work on.

    Lease and time are no part of it, so its digest is the same as long as nothing
    durable has changed. Our executions have no time of their last change and no
    partitions: the first is left out of the digest, the second counts as absent. The
    owner is its id.
    """

    execution_id: int
    status: BatchStatus
    attempt: int
    version: int
    owner_id: int
    step: StepExecution | None
    """The latest one of this execution."""
    decided: bool
    """Whether a transition of this execution is durable."""
    unknown_commit: bool
    """Whether a commit may or may not have taken effect."""

    @classmethod
    def of(
        cls, execution: JobExecution, steps: Sequence[StepExecution], decided: bool
    ) -> "Evidence":
        """Collect the evidence of an execution.

        Args:
            execution: As it is now.
            steps: All of its own, in the order of their making.
            decided: Whether it has a transition with a row of its own.
        """
        failure = execution.failure
        step = steps[-1] if steps else None
        return cls(
            execution_id=execution.id,
            status=execution.status,
            attempt=execution.attempt,
            version=execution.version,
            owner_id=execution.owner_id,
            step=step,
            decided=decided or any(one.decision is not None for one in steps),
            unknown_commit=execution.status is BatchStatus.UNKNOWN
            or (
                failure is not None
                and failure.category is FailureCategory.UNKNOWN_COMMIT
            )
            or (step is not None and step.status is BatchStatus.UNKNOWN),
        )

    @property
    def digest(self) -> bytes:
        """Digest the evidence: 32 bytes that a recovery has to cite."""
        return sha256(b"".join(self._parts())).digest()

    def _parts(self) -> Iterator[bytes]:
        yield _field("oxide-batch.recovery-evidence.v1")
        yield _u64(self.execution_id)
        yield _field(self.status)
        yield _u64(self.attempt)
        yield _u64(self.version)
        yield _u64(self.owner_id)
        if self.step is None:
            yield _field("NO_STEP")
        else:
            yield _u64(self.step.id)
            yield _field(self.step.status)
            yield from _checkpoint(self.step.checkpoint)
        # The last mark: what steps did outside of the store is not known of any graph.
        for mark in (self.unknown_commit, False, self.decided, True):
            yield _u64(mark)


def _checkpoint(envelope: str | None) -> Iterator[bytes]:
    if envelope is None:
        yield _field("NO_CHECKPOINT")
        return
    members = json.loads(envelope)
    yield _field(str(members.get("format")))
    yield _field(str(members.get("schema")))
    yield _field(str(members.get("schema_version")))
    yield _u64(len(envelope.encode()))


def request_digest(
    action: Action,
    execution_id: int,
    version: int | None,
    reason: str | None,
    recovery: tuple[Directive, bytes] | None = None,
) -> bytes:
    """Digest what an operator asks for, so that a repetition is known as one.

    Args:
        action: What is asked for.
        execution_id: Of which execution.
        version: That the execution is expected to have; None for any.
        reason: The operator's.
        recovery: Directive and digest of the evidence, of a recovery.
    """
    parts = [
        _field("oxide-batch.operator-request.v1"),
        _field(action),
        _field(f"execution:{execution_id}"),
        b"\0" if version is None else b"\1" + _u64(version),
        _field(reason or ""),
    ]
    if recovery is None:
        parts.append(_field("NONE"))
    else:
        directive, evidence = recovery
        parts += [_field("RECOVERY"), _field(directive), _field(evidence)]
    return sha256(b"".join(parts)).digest()


def _u64(value: int) -> bytes:
    return value.to_bytes(8, "big")


def _field(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return _u64(len(raw)) + raw


def allowed_actions(status: BatchStatus) -> tuple[Action, ...]:
    """Give what operators may do to an execution that is *status*."""
    if status is BatchStatus.UNKNOWN:
        return (Action.RECOVER,)
    if status in UNRESOLVED:
        return (Action.STOP, Action.RECOVER)
    return (Action.ABANDON,) if status.restartable else ()


def check_words(operation_id: str | None, actor: str, reason: str | None) -> None:
    """Refuse words of an operator that cannot be stored.

    Raises:
        InvalidValue: One is empty, too long or holds control characters.
    """
    words = (
        ("the operation id", operation_id, OPERATION_ID_BYTES_MAX),
        ("the actor", actor, ACTOR_BYTES_MAX),
        ("the reason", reason, REASON_BYTES_MAX),
    )
    for what, text, bytes_max in words:
        if text is not None:
            _check_word(what, text, bytes_max)


def _check_word(what: str, text: str, bytes_max: int) -> None:
    if not text or text != text.strip():
        raise InvalidValue(what, "must not be empty nor have white space around it")
    if not text.isprintable():
        raise InvalidValue(what, "holds a character that cannot be printed")
    if len(text.encode()) > bytes_max:
        raise InvalidValue(what, f"has more than {bytes_max} bytes")
