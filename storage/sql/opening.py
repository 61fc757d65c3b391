"""Beginning an attempt in SQL: instance, takeover, snapshot.

All checks come before the first change, so that a refusal changes nothing; the one
exception is a dead owner's execution with an UNKNOWN step, which is closed as UNKNOWN.
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
    Opened,
    OpenExecution,
    OutcomeUnresolved,
    RunUnknown,
    Snapshot,
)
from ..model.parameters import ParameterSet
from ..model.status import BatchStatus
from . import ownership
from .advancing import insert_step
from .closing import LATEST, take_over
from .rows import DECISION, STEP, decision_of, step_of
from .session import Session


@frozen
class _Previous:
    """The latest attempt of the instance."""

    id: int
    attempt: int
    status: BatchStatus
    owner_id: int
    ended_at: int | None
    fingerprint: bytes
    definition_id: int


def open_execution(
    db: Session, command: OpenExecution, now: int
) -> Waits[Opened | OutcomeUnresolved]:
    """Find or create the instance and begin a new attempt at it."""
    yield from ownership.facts_of(db, command.owner_id)
    definition_id = yield from _definition(db, command)
    parameters, run, instance_id = yield from _instance(db, command)
    if command.existing and instance_id is None:
        raise RunUnknown(command.job)
    previous = None
    if instance_id is not None:
        previous = yield from _previous(db, instance_id)
    took_over = None
    if previous is not None:
        took_over = yield from _may_follow(db, command, previous, now)
        if took_over is not None:
            left = yield from take_over(db, took_over, command.failure_id, now)
            if left is BatchStatus.UNKNOWN:
                return OutcomeUnresolved(took_over)
    if definition_id is None:
        definition_id = yield from _insert_definition(db, command, now)
    if instance_id is None:
        instance_id = yield from _insert_instance(db, command.job, parameters, run, now)
    snapshot = Snapshot()
    if previous is not None:
        snapshot = yield from snapshot_of(db, instance_id)
    execution_id = yield from _insert_execution(
        db, command, (instance_id, definition_id), parameters, previous, now
    )
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


_BY_FINGERPRINT = (
    "SELECT id FROM triolet.definition WHERE job = $1 AND fingerprint = $2"
)
_BY_REVISION = (
    "SELECT manifest FROM triolet.definition WHERE job = $1 AND revision = $2"
)


def _definition(db: Session, command: OpenExecution) -> Waits[int | None]:
    job, definition = command.job, command.definition
    rows = yield from db.fetch(_BY_FINGERPRINT, (job, definition.fingerprint))
    if rows:
        return int(rows[0][0])
    rows = yield from db.fetch(_BY_REVISION, (job, definition.revision))
    if rows:
        raise DefinitionDrift(job, definition.revision, rows[0][0])
    return None


_INSERT_DEFINITION = (
    "INSERT INTO triolet.definition (job, revision, format, fingerprint, manifest, "
    "registered_at) VALUES ($1, $2, $3, $4, $5, $6)"
)


def _insert_definition(db: Session, command: OpenExecution, now: int) -> Waits[int]:
    one = command.definition
    values = (
        command.job,
        one.revision,
        one.format,
        one.fingerprint,
        one.manifest,
        now,
    )
    return _made((yield from db.insert(_INSERT_DEFINITION, values)))


def _made(row_id: int | None) -> int:
    assert row_id is not None
    return row_id


_NEWEST_RUN = "SELECT coalesce(max(run), 0) FROM triolet.instance WHERE job = $1"


def _instance(
    db: Session, command: OpenExecution
) -> Waits[tuple[ParameterSet, int | None, int | None]]:
    """Give the parameters with the run number, the number, and the instance's id."""
    if not command.anew:
        found = yield from _find(db, command.job, command.parameters)
        return command.parameters, None, found
    ((latest,),) = yield from db.fetch(_NEWEST_RUN, (command.job,))
    while True:
        latest += 1
        parameters = command.parameters.with_run(latest)
        if (yield from _find(db, command.job, parameters)) is None:
            return parameters, latest, None


_FIND = (
    "SELECT id FROM triolet.instance WHERE job = $1 AND instance_key = $2 "
    "FOR NO KEY UPDATE"
)


def _find(db: Session, job: str, parameters: ParameterSet) -> Waits[int | None]:
    rows = yield from db.fetch(_FIND, (job, parameters.instance_key(job)))
    return int(rows[0][0]) if rows else None


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


_PREVIOUS = (
    "SELECT e.id, e.attempt, e.status, e.owner_id, e.ended_at, d.fingerprint, "
    "d.id FROM triolet.execution e "
    "JOIN triolet.definition d ON d.id = e.definition_id "
    "WHERE e.instance_id = $1 ORDER BY e.attempt DESC LIMIT 1 FOR UPDATE OF e"
)


def _previous(db: Session, instance_id: int) -> Waits[_Previous | None]:
    rows = yield from db.fetch(_PREVIOUS, (instance_id,))
    if not rows:
        return None
    row = rows[0]
    return _Previous(row[0], row[1], BatchStatus(row[2]), *row[3:])


def _may_follow(
    db: Session, command: OpenExecution, previous: _Previous, now: int
) -> Waits[int | None]:
    """Refuse a new attempt, or name the execution that has to be taken over first."""
    took_over = None
    match previous.status:
        case BatchStatus.COMPLETED:
            assert previous.ended_at is not None
            raise InstanceComplete(command.job, previous.id, previous.ended_at)
        case BatchStatus.ABANDONED:
            raise InstanceAbandoned(command.job, previous.id)
        case BatchStatus.UNKNOWN:
            raise OutcomeUnresolved(previous.id)
        case BatchStatus.STOPPED | BatchStatus.FAILED:
            pass
        case _:
            facts, until = yield from ownership.facts_of(db, previous.owner_id)
            if previous.owner_id != command.dead_owner and until > now:
                left = until - now
                raise AlreadyRunning(previous.id, previous.owner_id, facts, left)
            took_over = previous.id
    if previous.fingerprint != command.definition.fingerprint:
        ((stored,),) = yield from db.fetch(_MANIFEST, (previous.definition_id,))
        raise IncompatibleDefinition(command.job, previous.id, stored)
    return took_over


_MANIFEST = "SELECT manifest FROM triolet.definition WHERE id = $1"
_LATEST_STEPS = f"{STEP} WHERE {LATEST.format(instance='$1')} ORDER BY s.node, s.visit"
_STARTS = (
    "SELECT s.node, s.visit, count(*) FROM triolet.step s "
    "JOIN triolet.execution e ON e.id = s.execution_id "
    "WHERE e.instance_id = $1 GROUP BY s.node, s.visit ORDER BY s.node, s.visit"
)
_DECIDED = (
    f"{DECISION} WHERE e.instance_id = $1 AND c.kind = 'DECIDER' "
    "ORDER BY c.execution_id DESC, c.sequence DESC"
)


def snapshot_of(db: Session, instance_id: int) -> Waits[Snapshot]:
    """Collect what the instance has behind it."""
    queries = (_LATEST_STEPS, _STARTS, _DECIDED)
    steps, starts, decisions = yield from db.fetch_each(queries, (instance_id,))
    return Snapshot(
        tuple(step_of(row) for row in steps),
        tuple((row[0], row[1], row[2]) for row in starts),
        tuple(decision_of(row) for row in decisions),
    )


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
