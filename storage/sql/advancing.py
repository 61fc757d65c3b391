"""Moving an execution on in SQL, one statement for each part of a command.

The common path is one UPDATE and one INSERT: fence, version and matrix are conditions
of the statement, and only when it changed nothing does a second look find out why.
"""

from attrs import evolve

from ..backend import Waits
from ..codec import encode_failure, encode_target
from ..commands import (
    UNLIMITED,
    Advance,
    Advanced,
    DuplicateStep,
    JobEnd,
    NewDecision,
    NextStep,
    StaleVersion,
    StartLimitReached,
    StepEnd,
    StepStarted,
    StepUnknown,
)
from ..model.errors import InternalError
from ..model.status import (
    BatchStatus,
    check_transition,
)
from .fencing import FENCE, check_fence, sources, step_state
from .partitions import assign, insert_plan, publish
from .session import Session, UniqueViolation, Value


def _finish_statement(target: BatchStatus) -> str:
    instant = "coalesce(ended_at, greatest($14, coalesce(started_at, created_at)))"
    return f"""
UPDATE triolet.step SET status = '{target.value}', exit_code = $5,
    read_count = $6, process_count = $7, write_count = $8, filter_count = $9,
    commit_count = $10, rollback_count = $11, context = coalesce($12, context),
    failure = coalesce($13, failure), version = version + 2,
    ended_at = CASE WHEN {str(target.finished).upper()} THEN {instant} END,
    decision_sequence = coalesce($15, decision_sequence),
    decision_target = coalesce($16, decision_target)
WHERE id = $3 AND execution_id = $1 AND version = $4
    AND {sources(target)} AND {FENCE}
"""


_FINISH = {status: _finish_statement(status) for status in BatchStatus}


def write_first(db: Session, command: Advance, now: int) -> Waits[Advance]:
    """Carry out a command's enlisted write, unless it is refused; give the rest.

    The write may take long, and the step has not ended before it has. Whether the rest
    is refused is tried out before user code runs.
    """
    assert command.write is not None
    rest = evolve(command, write=None)
    yield from db.savepoint()
    yield from advance(db, rest, now)
    yield from db.undo()
    yield from db.write(command.write)
    return rest


def advance(db: Session, command: Advance, now: int) -> Waits[Advanced]:
    """Carry out the parts in order."""
    if command.finish is None or command.begin is not None:
        yield from check_fence(db, command.execution_id, command.owner_id)
    if command.begin is not None:
        yield from _begin(db, command.execution_id, command.begin, now)
    if command.finish is not None:
        yield from _finish(db, command, command.finish, now)
    taken = _TAKEN if command.first_visit else _TAKEN_APART
    for decision in command.decisions:
        values = (command.execution_id, decision.sequence)
        if _is_folded(command, decision) or (yield from db.fetch(taken, values)):
            raise DuplicateStep(decision.source)
        yield from _decide(db, command.execution_id, decision, now)
    started = None
    if command.start is not None:
        started = yield from _start(db, command.execution_id, command.start, now)
    stopped = False
    if command.end is not None:
        stopped = yield from _end(db, command.execution_id, command.end, now)
    return Advanced(now, started, stopped)


_BEGIN = (
    "UPDATE triolet.step SET status = 'STARTED', "
    "started_at = greatest($1, created_at), version = version + 1 WHERE id = $2"
)


def _begin(db: Session, execution_id: int, step_id: int, now: int) -> Waits[None]:
    status, _ = yield from step_state(db, execution_id, step_id)
    check_transition(status, BatchStatus.STARTED)
    yield from db.change(_BEGIN, (now, step_id))


def _finish(db: Session, command: Advance, finish: StepEnd, now: int) -> Waits[None]:
    decision = finish.decision
    changed = yield from db.change(
        _FINISH[finish.status],
        (
            command.execution_id,
            command.owner_id,
            finish.step_id,
            finish.version,
            finish.exit_code,
            *finish.counts.all(),
            finish.context,
            encode_failure(finish.failure),
            now,
            None if decision is None else decision.sequence,
            None if decision is None else encode_target(decision.target),
        ),
    )
    if changed == 1:
        if finish.partition is not None:
            yield from publish(db, finish.partition, finish.step_id)
        return
    yield from check_fence(db, command.execution_id, command.owner_id)
    status, version = yield from step_state(db, command.execution_id, finish.step_id)
    if version != finish.version:
        raise StaleVersion(finish.version, version)
    check_transition(status, finish.status)
    raise InternalError("a step's end matched no row")


_TAKEN_APART = (
    "SELECT 1 FROM triolet.decision WHERE execution_id = $1 AND sequence = $2"
)
_TAKEN = (
    f"{_TAKEN_APART} UNION ALL SELECT 1 FROM triolet.step WHERE execution_id = $1 "
    "AND decision_sequence = $2"
)
_CITED = "SELECT 1 FROM triolet.step WHERE id = $1"
_DECIDE = (
    "INSERT INTO triolet.decision "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
)


def _is_folded(command: Advance, decision: NewDecision) -> bool:
    """Tell whether the number is that of the result's own transition."""
    folded = None if command.finish is None else command.finish.decision
    return folded is not None and folded.sequence == decision.sequence


def _decide(
    db: Session, execution_id: int, decision: NewDecision, now: int
) -> Waits[None]:
    cited = decision.step_id
    if cited is not None and not (yield from db.fetch(_CITED, (cited,))):
        raise StepUnknown(cited)
    reused = decision.reused
    yield from db.change(
        _DECIDE,
        (
            execution_id,
            decision.sequence,
            decision.source,
            decision.visit,
            cited,
            decision.kind.value,
            decision.outcome,
            encode_target(decision.target),
            decision.digest,
            None if reused is None else reused.execution_id,
            None if reused is None else reused.sequence,
            now,
        ),
    )


_ROWS = (
    "SELECT count(*) FROM triolet.step s "
    "JOIN triolet.execution e ON e.id = s.execution_id "
    "WHERE e.instance_id = (SELECT instance_id FROM triolet.execution WHERE id = $1) "
    "AND s.node = $2 AND s.visit = $3"
)


def _start(
    db: Session, execution_id: int, step: NextStep, now: int
) -> Waits[StepStarted | StartLimitReached]:
    if step.limit < UNLIMITED:
        ((rows,),) = yield from db.fetch(_ROWS, (execution_id, step.node, step.visit))
        if rows >= step.limit:
            return StartLimitReached(step.node, step.limit)
    return (yield from insert_step(db, execution_id, step, now))


_FRESH = """
INSERT INTO triolet.step (execution_id, node, visit, name, status, created_at,
    started_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_INHERITED = """
INSERT INTO triolet.step (execution_id, node, visit, name, status, created_at,
    started_at, version, read_count, process_count, write_count, filter_count,
    commit_count, rollback_count, checkpoint, context)
SELECT $1, $2, CAST($3 AS bigint), $4, $5, CAST($6 AS bigint), CAST($7 AS bigint),
    CAST($8 AS bigint), s.read_count, s.process_count, s.write_count, s.filter_count,
    s.commit_count, s.rollback_count, s.checkpoint, s.context
FROM triolet.step s JOIN triolet.execution e ON e.id = s.execution_id
WHERE s.id = $9 AND e.instance_id =
    (SELECT instance_id FROM triolet.execution WHERE id = $1)
"""


def insert_step(
    db: Session, execution_id: int, step: NextStep, now: int
) -> Waits[StepStarted]:
    """Create a step's row, fresh or continuing an earlier attempt."""
    status = BatchStatus.STARTING if step.starting else BatchStatus.STARTED
    started_at, version = (None, 0) if step.starting else (now, 1)
    values: tuple[Value, ...] = (
        execution_id,
        step.node,
        step.visit,
        step.name,
        status.value,
        now,
        started_at,
        version,
    )
    try:
        if step.inherit is None:
            step_id = yield from db.insert(_FRESH, values)
        else:
            step_id = yield from db.insert(_INHERITED, (*values, step.inherit))
    except UniqueViolation as exc:
        raise DuplicateStep(step.node) from exc
    if step_id is None:
        raise StepUnknown(step.inherit or 0)
    if step.partition is not None:
        yield from assign(db, execution_id, step.partition, step_id)
    if step.plan is not None:
        yield from insert_plan(db, execution_id, step.node, step_id, step.plan)
    return StepStarted(step_id, now)


_STATUS = "SELECT status FROM triolet.execution WHERE id = $1"


def _end_statement(finished: bool) -> str:
    instant = "greatest($10, coalesce(started_at, created_at))"
    return f"""
UPDATE triolet.execution SET status = $1, exit_code = $2, read_count = $3,
    process_count = $4, write_count = $5, filter_count = $6, commit_count = $7,
    rollback_count = $8, failure = coalesce($9, failure),
    ended_at = CASE WHEN {str(finished).upper()} THEN {instant} END,
    version = version + 2
WHERE id = $11
"""


_END = {finished: _end_statement(finished) for finished in (True, False)}


def _end(db: Session, execution_id: int, wanted: JobEnd, now: int) -> Waits[bool]:
    """Write the end; tell whether a stop made another one of it."""
    ((status,),) = yield from db.fetch(_STATUS, (execution_id,))
    found = BatchStatus(status)
    end = wanted.after(found)
    check_transition(found, end.status)
    values = (
        end.status.value,
        end.exit_code,
        *end.counts.all(),
        encode_failure(end.failure),
        now,
        execution_id,
    )
    yield from db.change(_END[end.status.finished], values)
    return end is not wanted
