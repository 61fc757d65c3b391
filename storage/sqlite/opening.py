"""Beginning an attempt in SQLite: instance, takeover, snapshot.

All checks come before the first change, so that a refusal changes nothing; the one
exception is a dead owner's execution with an UNKNOWN step, which is closed as UNKNOWN.
"""

import sqlite3

from attrs import evolve, frozen

from ..codec import encode_failure, encode_parameters
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
from ..model.execution import Failure
from ..model.parameters import ParameterSet
from ..model.status import BatchStatus, FailureCategory
from . import ownership
from .advancing import insert_step
from .rows import COUNTS, DECISION, STEP, decision_of, step_of


@frozen
class _Previous:
    """The latest attempt of the instance."""

    id: int
    attempt: int
    status: BatchStatus
    owner_id: int
    ended_at: int | None
    fingerprint: bytes
    manifest: str


def open_execution(
    db: sqlite3.Connection, command: OpenExecution, now: int
) -> Opened | OutcomeUnresolved:
    """Find or create the instance and begin a new attempt at it."""
    ownership.facts_of(db, command.owner_id)
    definition_id = _definition(db, command)
    parameters, run, instance_id = _instance(db, command)
    if command.existing and instance_id is None:
        raise RunUnknown(command.job)
    previous = None if instance_id is None else _previous(db, instance_id)
    took_over = None
    if previous is not None:
        took_over = _may_follow(db, command, previous, now)
        if took_over is not None and not _take_over(db, command, took_over, now):
            return OutcomeUnresolved(took_over)
    if definition_id is None:
        definition_id = _insert_definition(db, command, now)
    if instance_id is None:
        instance_id = _insert_instance(db, command.job, parameters, run, now)
    snapshot = Snapshot() if previous is None else snapshot_of(db, instance_id)
    execution_id = _insert_execution(
        db, command, (instance_id, definition_id), parameters, previous, now
    )
    first = None
    if previous is None and command.first is not None:
        first = insert_step(db, execution_id, command.first, now)
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


def _definition(db: sqlite3.Connection, command: OpenExecution) -> int | None:
    definition = command.definition
    row = db.execute(
        "SELECT id FROM triolet_definition WHERE job = ? AND fingerprint = ?",
        (command.job, definition.fingerprint),
    ).fetchone()
    if row is not None:
        return int(row[0])
    row = db.execute(
        "SELECT manifest FROM triolet_definition WHERE job = ? AND revision = ?",
        (command.job, definition.revision),
    ).fetchone()
    if row is not None:
        raise DefinitionDrift(command.job, definition.revision, row[0])
    return None


def _insert_definition(db: sqlite3.Connection, command: OpenExecution, now: int) -> int:
    definition = command.definition
    return _inserted(
        db.execute(
            "INSERT INTO triolet_definition (job, revision, format, fingerprint, "
            "manifest, registered_at) VALUES (?, ?, ?, ?, ?, ?)",
            (
                command.job,
                definition.revision,
                definition.format,
                definition.fingerprint,
                definition.manifest,
                now,
            ),
        )
    )


def _inserted(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _instance(
    db: sqlite3.Connection, command: OpenExecution
) -> tuple[ParameterSet, int | None, int | None]:
    """Give the parameters with the run number, the number, and the instance's id."""
    if not command.anew:
        return command.parameters, None, _find(db, command.job, command.parameters)
    (latest,) = db.execute(
        "SELECT coalesce(max(run), 0) FROM triolet_instance WHERE job = ?",
        (command.job,),
    ).fetchone()
    while True:
        latest += 1
        parameters = command.parameters.with_run(latest)
        if _find(db, command.job, parameters) is None:
            return parameters, latest, None


def _find(db: sqlite3.Connection, job: str, parameters: ParameterSet) -> int | None:
    row = db.execute(
        "SELECT id FROM triolet_instance WHERE job = ? AND instance_key = ?",
        (job, parameters.instance_key(job)),
    ).fetchone()
    return None if row is None else int(row[0])


def _insert_instance(
    db: sqlite3.Connection,
    job: str,
    parameters: ParameterSet,
    run: int | None,
    now: int,
) -> int:
    stored = encode_parameters(parameters, identifying_only=True)
    return _inserted(
        db.execute(
            "INSERT INTO triolet_instance (job, instance_key, parameters, run, "
            "created_at) VALUES (?, ?, ?, ?, ?)",
            (job, parameters.instance_key(job), stored, run, now),
        )
    )


def _previous(db: sqlite3.Connection, instance_id: int) -> _Previous | None:
    row = db.execute(
        "SELECT e.id, e.attempt, e.status, e.owner_id, e.ended_at, d.fingerprint, "
        "d.manifest FROM triolet_execution e "
        "JOIN triolet_definition d ON d.id = e.definition_id "
        "WHERE e.instance_id = ? ORDER BY e.attempt DESC LIMIT 1",
        (instance_id,),
    ).fetchone()
    if row is None:
        return None
    return _Previous(row[0], row[1], BatchStatus(row[2]), *row[3:])


def _may_follow(
    db: sqlite3.Connection, command: OpenExecution, previous: _Previous, now: int
) -> int | None:
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
            facts, lease_until = ownership.facts_of(db, previous.owner_id)
            if previous.owner_id != command.dead_owner and lease_until > now:
                left = lease_until - now
                raise AlreadyRunning(previous.id, previous.owner_id, facts, left)
            took_over = previous.id
    if previous.fingerprint != command.definition.fingerprint:
        raise IncompatibleDefinition(command.job, previous.id, previous.manifest)
    return took_over


def _take_over(
    db: sqlite3.Connection, command: OpenExecution, execution_id: int, now: int
) -> bool:
    """Close a dead owner's execution; False when it has become UNKNOWN instead."""
    failure = Failure(
        FailureCategory.STALE_RECOVERED, command.failure_id, code="owner_died"
    )
    active = db.execute(
        "SELECT id, node FROM triolet_step WHERE execution_id = ? "
        "AND status IN ('STARTING', 'STARTED', 'STOPPING')",
        (execution_id,),
    ).fetchall()
    for step_id, node in active:
        db.execute(
            "UPDATE triolet_step SET status = 'FAILED', exit_code = 'FAILED', "
            "failure = ?, ended_at = max(?, coalesce(started_at, created_at)), "
            "version = version + 2 WHERE id = ?",
            (encode_failure(evolve(failure, where=node)), now, step_id),
        )
    unknown = db.execute(
        "SELECT 1 FROM triolet_step WHERE execution_id = ? AND status = 'UNKNOWN'",
        (execution_id,),
    ).fetchone()
    if unknown is not None:
        db.execute(
            "UPDATE triolet_execution SET status = 'UNKNOWN', version = version + 1 "
            "WHERE id = ?",
            (execution_id,),
        )
        return False
    db.execute(
        f"UPDATE triolet_execution SET ({COUNTS}) = ({_SUMS}), status = 'FAILED', "
        "exit_code = 'FAILED', failure = ?, "
        "ended_at = max(?, coalesce(started_at, created_at)), version = version + 2 "
        "WHERE id = ?",
        (encode_failure(failure), now, execution_id),
    )
    return True


_LATEST = (
    "s.id IN (SELECT max(s2.id) FROM triolet_step s2 "
    "JOIN triolet_execution e2 ON e2.id = s2.execution_id "
    "WHERE e2.instance_id = {instance} GROUP BY s2.node, s2.visit)"
)
_SUMS = (
    "SELECT "
    + ", ".join(f"coalesce(sum({name.strip()}), 0)" for name in COUNTS.split(","))
    + " FROM triolet_step s WHERE "
    + _LATEST.format(instance="triolet_execution.instance_id")
)


def snapshot_of(db: sqlite3.Connection, instance_id: int) -> Snapshot:
    """Collect what the instance has behind it."""
    steps = db.execute(
        f"{STEP} WHERE {_LATEST.format(instance='?')} ORDER BY s.node, s.visit",
        (instance_id,),
    )
    starts = db.execute(
        "SELECT s.node, s.visit, count(*) FROM triolet_step s "
        "JOIN triolet_execution e ON e.id = s.execution_id "
        "WHERE e.instance_id = ? GROUP BY s.node, s.visit ORDER BY s.node, s.visit",
        (instance_id,),
    )
    decisions = db.execute(
        f"{DECISION} WHERE e.instance_id = ? AND c.kind = 'DECIDER' "
        "ORDER BY c.execution_id DESC, c.sequence DESC",
        (instance_id,),
    )
    return Snapshot(
        tuple(step_of(row) for row in steps.fetchall()),
        tuple((row[0], row[1], row[2]) for row in starts.fetchall()),
        tuple(decision_of(row) for row in decisions.fetchall()),
    )


def _insert_execution(
    db: sqlite3.Connection,
    command: OpenExecution,
    keys: tuple[int, int],
    parameters: ParameterSet,
    previous: _Previous | None,
    now: int,
) -> int:
    return _inserted(
        db.execute(
            "INSERT INTO triolet_execution (instance_id, definition_id, owner_id, "
            "attempt, restart_of, status, parameters, created_at, started_at, version) "
            "VALUES (?, ?, ?, ?, ?, 'STARTED', ?, ?, ?, 1)",
            (
                *keys,
                command.owner_id,
                1 if previous is None else previous.attempt + 1,
                None if previous is None else previous.id,
                encode_parameters(parameters, identifying_only=False),
                now,
                now,
            ),
        )
    )
