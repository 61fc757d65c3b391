"""Moving an execution on in memory.

Each command is checked as a whole before its first change, enlisted write included,
so that a refusal leaves nothing to undo.
"""

from attrs import evolve

from ..commands import (
    Advance,
    Advanced,
    ChunkCommitted,
    CommitChunk,
    DuplicateStep,
    Enlist,
    Enlisted,
    JobEnd,
    LeaseLost,
    NewDecision,
    NextStep,
    StaleVersion,
    StartLimitReached,
    StepEnd,
    StepUnknown,
)
from ..model.execution import Decision
from ..model.partition import CopiedPlan
from ..model.status import BatchStatus, IllegalTransition, check_transition
from .partitions import check_assigned, check_copied, check_published, publish
from .tables import ExecutionRow, StepRow, Tables


def advance(tables: Tables, command: Advance, now: int) -> Advanced:
    """Carry out the parts in order."""
    execution = fenced(tables, command.execution_id, command.owner_id)
    begun = finished = limited = started = end = None
    if command.begin is not None:
        begun = _check_begin(tables, execution, command.begin)
    if command.finish is not None:
        finished = _check_finish(tables, execution, command.finish, begun)
    if command.decisions:
        _check_decisions(tables, execution, command, finished)
    if command.start is not None:
        limited = _check_start(tables, execution, command.start, (begun, finished))
    if command.end is not None:
        end = command.end.after(execution.record.status)
        check_transition(execution.record.status, end.status)
    if command.write is not None:
        tables.business.write(command.write)
        now = tables.clock()

    if begun is not None:
        _begin(begun, now)
    if finished is not None and command.finish is not None:
        _finish(finished, command.finish, now)
        if command.finish.partition is not None:
            publish(tables, command.finish.partition, finished)
    for decision in command.decisions:
        _decide(execution, decision, now)
    if command.start is not None and limited is None:
        started = tables.insert_step(execution, command.start, now)
    if end is not None:
        _end(execution, end, now)
    return Advanced(now, limited or started, end is not command.end)


def fenced(tables: Tables, execution_id: int, owner_id: int) -> ExecutionRow:
    """Find an execution that is active and this owner's.

    Raises:
        ExecutionNotFound: There is no such execution.
        LeaseLost: It has ended, or it is somebody else's.
    """
    execution = tables.execution(execution_id)
    record = execution.record
    if record.owner_id != owner_id or not record.status.active:
        raise LeaseLost(execution_id, record.status)
    return execution


def _step_of(tables: Tables, execution: ExecutionRow, step_id: int) -> StepRow:
    row = tables.steps.get(step_id)
    if row is None or row.execution is not execution:
        raise StepUnknown(step_id)
    return row


def _check_begin(tables: Tables, execution: ExecutionRow, step_id: int) -> StepRow:
    row = _step_of(tables, execution, step_id)
    if row.status is not BatchStatus.STARTING:
        raise IllegalTransition(row.status, BatchStatus.STARTED)
    return row


def _check_finish(
    tables: Tables, execution: ExecutionRow, finish: StepEnd, begun: StepRow | None
) -> StepRow:
    row = _step_of(tables, execution, finish.step_id)
    status, version = row.status, row.version
    if row is begun:
        status, version = BatchStatus.STARTED, version + 1
    if version != finish.version:
        raise StaleVersion(finish.version, version)
    check_transition(status, finish.status)
    if finish.partition is not None:
        check_published(tables, finish.partition, row.id)
    return row


def _check_decisions(
    tables: Tables, execution: ExecutionRow, command: Advance, finished: StepRow | None
) -> None:
    added, freed = set(), None
    folded = None if command.finish is None else command.finish.decision
    if finished is not None and folded is not None:
        added.add(folded.sequence)
        freed = None if finished.decision is None else finished.decision.sequence
    checked = command.first_visit
    for decision in command.decisions:
        sequence = decision.sequence
        taken = checked and sequence in execution.folded and sequence != freed
        if taken or sequence in execution.decisions or sequence in added:
            raise DuplicateStep(decision.source)
        if decision.step_id is not None and decision.step_id not in tables.steps:
            raise StepUnknown(decision.step_id)
        added.add(sequence)


def _check_start(
    tables: Tables,
    execution: ExecutionRow,
    step: NextStep,
    before: tuple[StepRow | None, StepRow | None],
) -> StartLimitReached | None:
    key = (step.node, step.visit)
    if execution.instance.starts.get(key, 0) >= step.limit:
        return StartLimitReached(step.node, step.limit)
    if step.inherit is not None:
        earlier = tables.steps.get(step.inherit)
        if earlier is None or earlier.execution.instance is not execution.instance:
            raise StepUnknown(step.inherit)
    if key in execution.steps:
        raise DuplicateStep(step.node)
    if step.partition is not None:
        check_assigned(tables, execution, step.partition, *before)
    if isinstance(step.plan, CopiedPlan):
        check_copied(tables, execution, step.node, step.plan)
    return None


def _begin(row: StepRow, now: int) -> None:
    row.status = BatchStatus.STARTED
    row.started_at = row.no_earlier(now)
    row.version += 1


def _finish(row: StepRow, finish: StepEnd, now: int) -> None:
    row.status = finish.status
    row.exit_code = finish.exit_code
    row.counts = finish.counts
    row.version += 2
    if finish.context is not None:
        row.context = finish.context
    if finish.failure is not None:
        row.failure = finish.failure
    if row.ended_at is None and finish.status.finished:
        row.ended_at = row.no_earlier(now)
    if finish.decision is not None:
        folded = row.execution.folded
        if row.decision is not None:
            folded.discard(row.decision.sequence)
        folded.add(finish.decision.sequence)
        row.decision = finish.decision


def _decide(execution: ExecutionRow, decision: NewDecision, now: int) -> None:
    execution.decisions[decision.sequence] = Decision(
        execution_id=execution.record.id,
        sequence=decision.sequence,
        source=decision.source,
        visit=decision.visit,
        step_id=decision.step_id,
        kind=decision.kind,
        outcome=decision.outcome,
        target=decision.target,
        digest=decision.digest,
        fingerprint=execution.record.fingerprint,
        reused=decision.reused,
        decided_at=now,
    )


def _end(execution: ExecutionRow, end: JobEnd, now: int) -> None:
    record = execution.record
    execution.record = evolve(
        record,
        status=end.status,
        exit_code=end.exit_code,
        counts=end.counts,
        failure=end.failure or record.failure,
        ended_at=ended_at(execution, now) if end.status.finished else None,
        version=record.version + 2,
    )


def ended_at(execution: ExecutionRow, now: int) -> int:
    """Give the instant at which an execution ends, clamped to its beginning."""
    record = execution.record
    began = record.created_at if record.started_at is None else record.started_at
    return max(now, began)


def commit_chunk(tables: Tables, command: CommitChunk, now: int) -> ChunkCommitted:
    """Make a chunk durable: counts, checkpoint and enlisted rows."""
    execution = fenced(tables, command.execution_id, command.owner_id)
    row = _step_of(tables, execution, command.step_id)
    if row.status is not BatchStatus.STARTED:
        raise IllegalTransition(row.status, BatchStatus.STARTED)
    if row.version != command.version:
        raise StaleVersion(command.version, row.version)
    if command.write is not None:
        tables.business.write(command.write)
    row.counts = command.counts
    row.checkpoint = command.checkpoint
    row.version += 1
    return ChunkCommitted(now)


def enlist(tables: Tables, command: Enlist, now: int) -> Enlisted:
    """Let user code write under the owner's fence."""
    fenced(tables, command.execution_id, command.owner_id)
    tables.business.write(command.write)
    return Enlisted()
