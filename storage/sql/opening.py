"""Beginning an attempt in SQL: instance, takeover, snapshot.

All checks come before the first change, so that a refusal changes nothing; the one
exception is a dead owner's execution that nothing may follow, which is closed.
"""

from attrs import frozen

from ..backend import Waits
from ..codec import encode_parameters
from ..commands import (
    AlreadyRunning,
    DefinitionDrift,
    IncompatibleDefinition,
    InstanceAbandoned,
    InstanceComplete,
    NotRestartable,
    Opened,
    OpenExecution,
    OutcomeUnresolved,
    OwnerUnknown,
    RunUnknown,
    Snapshot,
)
from ..model.parameters import ParameterSet
from ..model.status import BatchStatus
from . import ownership, requesting
from .advancing import insert_step
from .closing import take_over
from .definitions import BY_FINGERPRINT, BY_REVISION, insert_definition
from .history import history_of
from .session import Row, Session
from .upgrading import has_edge


@frozen
class _Previous:
    """The latest attempt of the instance."""

    id: int
    attempt: int
    status: BatchStatus
    owner_id: int
    ended_at: int | None
    definition_id: int


@frozen
class Found:
    """What there is of a job and an instance."""

    definition_id: int | None
    instance_id: int | None
    previous: _Previous | None


def open_execution(
    db: Session, command: OpenExecution, now: int
) -> Waits[Opened | OutcomeUnresolved | NotRestartable]:
    """Find or create the instance and begin a new attempt at it."""
    parameters, run = command.parameters, None
    if command.anew:
        parameters, run = yield from free_run(db, command)
    found = yield from look(db, command, parameters, locking=False)
    if found.previous is not None:
        # Whoever is refused waits for nobody, and nobody for them.
        yield from may_follow(db, command, found, now)
        found = yield from look(db, command, parameters)
    definition_id, instance_id = found.definition_id, found.instance_id
    previous = found.previous
    if command.existing and instance_id is None:
        raise RunUnknown(command.job)
    took_over = None
    if previous is not None:
        took_over = yield from may_follow(db, command, found, now)
    if command.request_id is not None:
        yield from requesting.check_claim(db, command.request_id, command.owner_id)
    if took_over is not None:
        left = yield from take_over(db, took_over, command.failure_id, now)
        if left is BatchStatus.UNKNOWN:
            return OutcomeUnresolved(took_over)
        if not command.restartable:
            return NotRestartable(command.job, took_over)
    if definition_id is None:
        definition_id = yield from insert_definition(
            db, command.job, command.definition, now
        )
    if instance_id is None:
        instance_id = yield from _insert_instance(db, command.job, parameters, run, now)
    snapshot = Snapshot()
    if previous is not None:
        assert instance_id is not None
        fingerprint = command.definition.fingerprint
        snapshot = yield from history_of(db, instance_id, command.job, fingerprint)
    execution_id = yield from _insert_execution(
        db, command, (instance_id, definition_id), parameters, previous, now
    )
    if command.request_id is not None:
        yield from requesting.note_execution(db, command.request_id, execution_id)
    first = None
    if previous is None and command.first is not None:
        first = yield from insert_step(db, execution_id, command.first, now)
    return Opened(
        instance_id=instance_id,
        execution_id=execution_id,
        attempt=1 if previous is None else previous.attempt + 1,
        run=run,
        at=now,
        restart_of=None if previous is None else previous.id,
        took_over=took_over,
        snapshot=snapshot,
        first=first,
    )


_FIND = "SELECT id FROM triolet.instance WHERE job = $1 AND instance_key = $2"
_LOCK_INSTANCE = " FOR NO KEY UPDATE"
_PREVIOUS = (
    "SELECT e.id, e.attempt, e.status, e.owner_id, e.ended_at, e.definition_id "
    "FROM triolet.execution e "
    "WHERE e.instance_id = (SELECT id FROM triolet.instance "
    "WHERE job = $1 AND instance_key = $2) "
    "ORDER BY e.attempt DESC LIMIT 1"
)
_LOCK_ATTEMPT = " FOR UPDATE OF e"


def look(
    db: Session,
    command: OpenExecution,
    parameters: ParameterSet,
    *,
    locking: bool = True,
    owned: bool = True,
) -> Waits[Found]:
    """Find definition, instance and latest attempt, as far as they are there.

    Raises:
        OwnerUnknown: Who would own a new attempt is not registered; only where it is
            to be *owned*.
        DefinitionDrift: The revision label belongs to another definition.
    """
    job, definition = command.job, command.definition
    instance = (job, parameters.instance_key(job))
    owners, known, drifted, instances, attempts = yield from db.fetch_each(
        [
            (ownership.FACTS, (command.owner_id,)),
            (BY_FINGERPRINT, (job, definition.fingerprint)),
            (BY_REVISION, (job, definition.revision, definition.fingerprint)),
            (_FIND + _LOCK_INSTANCE * locking, instance),
            (_PREVIOUS + _LOCK_ATTEMPT * locking, instance),
        ]
    )
    if owned and not owners:
        raise OwnerUnknown(command.owner_id)
    if drifted and not known:
        raise DefinitionDrift(job, definition.revision, drifted[0][0])
    previous = None
    if attempts:
        row = attempts[0]
        previous = _Previous(row[0], row[1], BatchStatus(row[2]), *row[3:])
    return Found(_id_in(known), _id_in(instances), previous)


def _id_in(rows: list[Row]) -> int | None:
    return rows[0][0] if rows else None


def _made(row_id: int | None) -> int:
    assert row_id is not None
    return row_id


_NEWEST_RUN = "SELECT coalesce(max(run), 0) FROM triolet.instance WHERE job = $1"


def free_run(db: Session, command: OpenExecution) -> Waits[tuple[ParameterSet, int]]:
    """Find the next number that no run of the job has, and the parameters with it."""
    ((latest,),) = yield from db.fetch(_NEWEST_RUN, (command.job,))
    while True:
        latest += 1
        parameters = command.parameters.with_run(latest)
        key = parameters.instance_key(command.job)
        if not (yield from db.fetch(_FIND, (command.job, key))):
            return parameters, latest


_INSERT_INSTANCE = (
    "INSERT INTO triolet.instance (job, instance_key, parameters, run, created_at) "
    "VALUES ($1, $2, $3, $4, $5)"
)


def _insert_instance(
    db: Session,
    job: str,
    parameters: ParameterSet,
    run: int | None,
    now: int,
) -> Waits[int]:
    stored = encode_parameters(parameters, identifying_only=True)
    values = (job, parameters.instance_key(job), stored, run, now)
    return _made((yield from db.insert(_INSERT_INSTANCE, values)))


def may_follow(
    db: Session, command: OpenExecution, found: Found, now: int
) -> Waits[int | None]:
    """Refuse a new attempt, or name the execution that has to be taken over first."""
    took_over, previous = None, found.previous
    assert previous is not None
    match previous.status:
        case BatchStatus.COMPLETED:
            assert previous.ended_at is not None
            raise InstanceComplete(command.job, previous.id, previous.ended_at)
        case BatchStatus.ABANDONED:
            raise InstanceAbandoned(command.job, previous.id)
        case BatchStatus.UNKNOWN:
            raise OutcomeUnresolved(previous.id)
        case BatchStatus.STOPPED | BatchStatus.FAILED:
            if not command.restartable:
                raise NotRestartable(command.job, previous.id)
        case _:
            facts, until = yield from ownership.facts_of(db, previous.owner_id)
            if previous.owner_id != command.dead_owner and until > now:
                left = until - now
                raise AlreadyRunning(previous.id, previous.owner_id, facts, left)
            took_over = previous.id
    before = previous.definition_id
    wanted = found.definition_id
    if before != wanted and not (yield from has_edge(db, before, wanted)):
        ((stored,),) = yield from db.fetch(_MANIFEST, (before,))
        raise IncompatibleDefinition(command.job, previous.id, stored)
    return took_over


_MANIFEST = "SELECT manifest FROM triolet.definition WHERE id = $1"

_INSERT_EXECUTION = (
    "INSERT INTO triolet.execution (instance_id, definition_id, owner_id, attempt, "
    "restart_of, status, parameters, created_at, started_at, version) "
    "VALUES ($1, $2, $3, $4, $5, 'STARTED', $6, $7, $8, 1)"
)


def _insert_execution(
    db: Session,
    command: OpenExecution,
    keys: tuple[int, int],
    parameters: ParameterSet,
    previous: _Previous | None,
    now: int,
) -> Waits[int]:
    values = (
        *keys,
        command.owner_id,
        1 if previous is None else previous.attempt + 1,
        None if previous is None else previous.id,
        encode_parameters(parameters, identifying_only=False),
        now,
        now,
    )
    return _made((yield from db.insert(_INSERT_EXECUTION, values)))
