"""Moving an execution on in SQLite.

The hot path is one UPDATE and one INSERT: fence, version and matrix are conditions of
the statement, and only when it changed nothing does a second look find out why.
"""

import sqlite3
from collections.abc import Iterable

from attrs import evolve

from ..codec import encode_failure, encode_target
from ..commands import (
    UNLIMITED,
    Advance,
    Advanced,
    ChunkCommitted,
    CommitChunk,
    DuplicateStep,
    Enlist,
    Enlisted,
    ExecutionNotFound,
    JobEnd,
    LeaseLost,
    NewDecision,
    NextStep,
    StaleVersion,
    StartLimitReached,
    StepEnd,
    StepStarted,
    StepUnknown,
    WriteFailed,
)
from ..commands.command import EnlistedWrite
from ..model.errors import InternalError
from ..model.status import (
    TRANSITIONS,
    BatchStatus,
    IllegalTransition,
    check_transition,
)


def _any_of(statuses: Iterable[BatchStatus]) -> str:
    """Write a condition on a row's status.

    IN would fill a temporary index anew whenever the statement is carried out.
    """
    choices = " OR ".join(f"status = '{one.value}'" for one in statuses)
    return f"({choices or 'FALSE'})"


_FENCE = (
    "EXISTS (SELECT 1 FROM triolet_execution WHERE id = :execution AND "
    f"owner_id = :owner AND {_any_of(one for one in BatchStatus if one.active)})"
)


def _sources(target: BatchStatus) -> str:
    return _any_of(one for one in TRANSITIONS if target in TRANSITIONS[one])


def _finish_statement(target: BatchStatus) -> str:
    instant = "coalesce(ended_at, max(:now, coalesce(started_at, created_at)))"
    ended = instant if target.finished else "NULL"
    return f"""
UPDATE triolet_step SET status = '{target.value}', exit_code = :exit,
    read_count = :c0, process_count = :c1, write_count = :c2, filter_count = :c3,
    commit_count = :c4, rollback_count = :c5, context = coalesce(:context, context),
    failure = coalesce(:failure, failure), ended_at = {ended}, version = version + 2,
    decision_sequence = coalesce(:sequence, decision_sequence),
    decision_target = coalesce(:target, decision_target)
WHERE id = :step AND execution_id = :execution AND version = :version
    AND {_sources(target)} AND {_FENCE}
"""


_FINISH = {status: _finish_statement(status) for status in BatchStatus}


def write_first(db: sqlite3.Connection, command: Advance, now: int) -> Advance:
    """Carry out a command's enlisted write, unless it is refused; give the rest.

    The write may take long, and the step has not ended before it has. Whether the rest
    is refused is tried out before user code runs.
    """
    assert command.write is not None
    rest = evolve(command, write=None)
    db.execute("SAVEPOINT trial")
    try:
        advance(db, rest, now)
    finally:
        db.execute("ROLLBACK TO trial")
        db.execute("RELEASE trial")
    write_enlisted(db, command.write)
    return rest


def advance(db: sqlite3.Connection, command: Advance, now: int) -> Advanced:
    """Carry out the parts in order."""
    if command.finish is None or command.begin is not None:
        _check_fence(db, command.execution_id, command.owner_id)
    if command.begin is not None:
        _begin(db, command.execution_id, command.begin, now)
    if command.finish is not None:
        _finish(db, command, command.finish, now)
    for decision in command.decisions:
        _decide(db, command.execution_id, decision, now)
    started = None
    if command.start is not None:
        started = _start(db, command.execution_id, command.start, now)
    if command.end is not None:
        _end(db, command.execution_id, command.end, now)
    return Advanced(now, started)


def _check_fence(db: sqlite3.Connection, execution_id: int, owner_id: int) -> None:
    row = db.execute(
        "SELECT owner_id, status FROM triolet_execution WHERE id = ?", (execution_id,)
    ).fetchone()
    if row is None:
        raise ExecutionNotFound(execution_id)
    status = BatchStatus(row[1])
    if row[0] != owner_id or not status.active:
        raise LeaseLost(execution_id, status)


def _step_state(
    db: sqlite3.Connection, execution_id: int, step_id: int
) -> tuple[BatchStatus, int]:
    row = db.execute(
        "SELECT status, version FROM triolet_step WHERE id = ? AND execution_id = ?",
        (step_id, execution_id),
    ).fetchone()
    if row is None:
        raise StepUnknown(step_id)
    return BatchStatus(row[0]), row[1]


def _begin(db: sqlite3.Connection, execution_id: int, step_id: int, now: int) -> None:
    status, _ = _step_state(db, execution_id, step_id)
    check_transition(status, BatchStatus.STARTED)
    db.execute(
        "UPDATE triolet_step SET status = 'STARTED', started_at = max(?, created_at), "
        "version = version + 1 WHERE id = ?",
        (now, step_id),
    )


def _finish(
    db: sqlite3.Connection, command: Advance, finish: StepEnd, now: int
) -> None:
    counts = finish.counts
    decision = finish.decision
    changed = db.execute(
        _FINISH[finish.status],
        {
            "execution": command.execution_id,
            "owner": command.owner_id,
            "step": finish.step_id,
            "version": finish.version,
            "exit": finish.exit_code,
            "c0": counts.read,
            "c1": counts.processed,
            "c2": counts.written,
            "c3": counts.filtered,
            "c4": counts.committed,
            "c5": counts.rolled_back,
            "context": finish.context,
            "failure": encode_failure(finish.failure),
            "now": now,
            "sequence": None if decision is None else decision.sequence,
            "target": None if decision is None else encode_target(decision.target),
        },
    )
    if changed.rowcount == 1:
        return
    _check_fence(db, command.execution_id, command.owner_id)
    status, version = _step_state(db, command.execution_id, finish.step_id)
    if version != finish.version:
        raise StaleVersion(finish.version, version)
    check_transition(status, finish.status)
    raise InternalError("a step's end matched no row")


def _decide(
    db: sqlite3.Connection, execution_id: int, decision: NewDecision, now: int
) -> None:
    taken = db.execute(
        "SELECT 1 FROM triolet_decision WHERE execution_id = ?1 AND sequence = ?2 "
        "UNION ALL SELECT 1 FROM triolet_step WHERE execution_id = ?1 "
        "AND decision_sequence = ?2",
        (execution_id, decision.sequence),
    ).fetchone()
    if taken is not None:
        raise DuplicateStep(decision.source)
    try:
        _insert_decision(db, execution_id, decision, now)
    except sqlite3.IntegrityError as exc:
        cited = decision.step_id
        if cited is None or exc.sqlite_errorname != "SQLITE_CONSTRAINT_FOREIGNKEY":
            raise
        raise StepUnknown(cited) from exc


def _insert_decision(
    db: sqlite3.Connection, execution_id: int, decision: NewDecision, now: int
) -> None:
    reused = decision.reused
    db.execute(
        "INSERT INTO triolet_decision VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            execution_id,
            decision.sequence,
            decision.source,
            decision.visit,
            decision.step_id,
            decision.kind.value,
            decision.outcome,
            encode_target(decision.target),
            decision.digest,
            None if reused is None else reused.execution_id,
            None if reused is None else reused.sequence,
            now,
        ),
    )


def _start(
    db: sqlite3.Connection, execution_id: int, step: NextStep, now: int
) -> StepStarted | StartLimitReached:
    if step.limit < UNLIMITED:
        (rows,) = db.execute(
            "SELECT count(*) FROM triolet_step s "
            "JOIN triolet_execution e ON e.id = s.execution_id "
            "WHERE e.instance_id = (SELECT instance_id FROM triolet_execution "
            "WHERE id = ?) AND s.node = ? AND s.visit = ?",
            (execution_id, step.node, step.visit),
        ).fetchone()
        if rows >= step.limit:
            return StartLimitReached(step.node, step.limit)
    return insert_step(db, execution_id, step, now)


_FRESH = """
INSERT INTO triolet_step (execution_id, node, visit, name, status, created_at,
    started_at, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_INHERITED = """
INSERT INTO triolet_step (execution_id, node, visit, name, status, created_at,
    started_at, version, read_count, process_count, write_count, filter_count,
    commit_count, rollback_count, checkpoint, context)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, s.read_count, s.process_count, s.write_count,
    s.filter_count, s.commit_count, s.rollback_count, s.checkpoint, s.context
FROM triolet_step s JOIN triolet_execution e ON e.id = s.execution_id
WHERE s.id = ? AND e.instance_id =
    (SELECT instance_id FROM triolet_execution WHERE id = ?)
"""


def insert_step(
    db: sqlite3.Connection, execution_id: int, step: NextStep, now: int
) -> StepStarted:
    """Create a step's row, fresh or continuing an earlier attempt."""
    status = BatchStatus.STARTING if step.starting else BatchStatus.STARTED
    started_at, version = (None, 0) if step.starting else (now, 1)
    state = (status.value, now, started_at, version)
    values = (execution_id, step.node, step.visit, step.name, *state)
    try:
        if step.inherit is None:
            cursor = db.execute(_FRESH, values)
        else:
            cursor = db.execute(_INHERITED, (*values, step.inherit, execution_id))
    except sqlite3.IntegrityError as exc:
        if exc.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE":
            raise DuplicateStep(step.node) from exc
        raise
    if cursor.rowcount != 1 or cursor.lastrowid is None:
        raise StepUnknown(step.inherit or 0)
    return StepStarted(cursor.lastrowid, now)


def _end(db: sqlite3.Connection, execution_id: int, end: JobEnd, now: int) -> None:
    row = db.execute(
        "SELECT status FROM triolet_execution WHERE id = ?", (execution_id,)
    ).fetchone()
    check_transition(BatchStatus(row[0]), end.status)
    instant = "max(?, coalesce(started_at, created_at))"
    db.execute(
        "UPDATE triolet_execution SET status = ?, exit_code = ?, read_count = ?, "
        "process_count = ?, write_count = ?, filter_count = ?, commit_count = ?, "
        "rollback_count = ?, failure = coalesce(?, failure), "
        f"ended_at = CASE WHEN ? THEN {instant} END, version = version + 2 "
        "WHERE id = ?",
        (
            end.status.value,
            end.exit_code,
            *end.counts.all(),
            encode_failure(end.failure),
            end.status.finished,
            now,
            execution_id,
        ),
    )


_CHUNK = f"""
UPDATE triolet_step SET read_count = :c0, process_count = :c1, write_count = :c2,
    filter_count = :c3, commit_count = :c4, rollback_count = :c5,
    checkpoint = :checkpoint, version = version + 1
WHERE id = :step AND execution_id = :execution AND version = :version
    AND status = 'STARTED' AND {_FENCE}
"""


def commit_chunk(
    db: sqlite3.Connection, command: CommitChunk, now: int
) -> ChunkCommitted:
    """Make a chunk durable: the enlisted rows, then the checkpoint.

    The rows come first, so that user code that ends the transaction in spite of its
    contract takes its own rows with it and nothing of ours.
    """
    if command.write is not None:
        _check_chunk(db, command)
        write_enlisted(db, command.write)
    counts = command.counts
    changed = db.execute(
        _CHUNK,
        {
            "execution": command.execution_id,
            "owner": command.owner_id,
            "step": command.step_id,
            "version": command.version,
            "c0": counts.read,
            "c1": counts.processed,
            "c2": counts.written,
            "c3": counts.filtered,
            "c4": counts.committed,
            "c5": counts.rolled_back,
            "checkpoint": command.checkpoint,
        },
    )
    if changed.rowcount != 1:
        _check_chunk(db, command)
        raise InternalError("a chunk matched no row")
    return ChunkCommitted(now)


def _check_chunk(db: sqlite3.Connection, command: CommitChunk) -> None:
    _check_fence(db, command.execution_id, command.owner_id)
    status, version = _step_state(db, command.execution_id, command.step_id)
    if status is not BatchStatus.STARTED:
        raise IllegalTransition(status, BatchStatus.STARTED)
    if version != command.version:
        raise StaleVersion(command.version, version)


def enlist(db: sqlite3.Connection, command: Enlist, now: int) -> Enlisted:
    """Let user code write under the owner's fence."""
    _check_fence(db, command.execution_id, command.owner_id)
    write_enlisted(db, command.write)
    return Enlisted()


def write_enlisted(db: sqlite3.Connection, write: EnlistedWrite) -> None:
    """Call user code with a cursor and make sure that it left the transaction open.

    Raises:
        WriteFailed: What the user code raised; the caller rolls everything back.
    """
    cursor = db.cursor()
    try:
        write(cursor)
    except (Exception, SystemExit) as exc:
        raise WriteFailed(exc) from exc
    finally:
        cursor.close()
    if not db.in_transaction:
        error = RuntimeError("the enlisted write ended the transaction")
        raise WriteFailed(error)
