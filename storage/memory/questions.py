"""Making records of rows: answers, snapshots, the dump."""

from ..commands import (
    ExecutionDetail,
    ExecutionLine,
    ExecutionPage,
    LatestExecution,
    ListExecutions,
    ShowExecution,
    Snapshot,
)
from ..dump import Dump, StoredUpgrade
from ..model.digests import step_input
from ..model.execution import ANSWERS, Decision, StepExecution, TransitionKind
from .partitions import latest_plans, partitions_of
from .tables import ExecutionRow, InstanceRow, StepRow, Tables


def list_executions(
    tables: Tables, question: ListExecutions, now: int
) -> ExecutionPage:
    """List executions, newest first, one more than asked to know whether there are."""
    newest = len(tables.executions)
    if question.before is not None:
        newest = min(newest, question.before - 1)
    lines: list[ExecutionLine] = []
    for execution_id in range(newest, 0, -1):
        row = tables.executions[execution_id]
        if _matches(row, question):
            lines.append(ExecutionLine(row.record, row.instance.stored.instance))
            if len(lines) > question.limit:
                break
    return ExecutionPage(tuple(lines[: question.limit]), len(lines) > question.limit)


def _matches(row: ExecutionRow, question: ListExecutions) -> bool:
    return question.job in (None, row.instance.stored.instance.job) and (
        question.status in (None, row.record.status)
    )


def latest_execution(
    tables: Tables, question: LatestExecution, now: int
) -> ExecutionLine | None:
    """Give the latest execution of one instance."""
    row = tables.instances.get((question.job, question.instance_key))
    if row is None:
        return None
    return ExecutionLine(row.executions[-1].record, row.stored.instance)


def show_execution(
    tables: Tables, question: ShowExecution, now: int
) -> ExecutionDetail:
    """Collect everything that is known of one execution."""
    row = tables.execution(question.execution_id)
    own = [row.decisions[sequence] for sequence in sorted(row.decisions)]
    steps = tuple(step_of(step) for step in row.steps.values())
    folded = [step.decision for step in steps if step.decision is not None]
    return ExecutionDetail(
        execution=row.record,
        instance=row.instance.stored.instance,
        owner=tables.owner(row.record.owner_id).facts,
        steps=steps,
        decisions=tuple(sorted(own + folded, key=lambda one: one.sequence)),
        reused=tuple(
            step_of(tables.steps[decision.step_id])
            for decision in own
            if decision.kind is TransitionKind.COMPLETED_STEP_REUSE
            and decision.step_id is not None
        ),
        partitions=partitions_of(tables, row),
    )


def snapshot_of(tables: Tables, instance: InstanceRow) -> Snapshot:
    """Collect what the instance has behind it."""
    return Snapshot(
        tuple(step_of(instance.latest[key]) for key in sorted(instance.latest)),
        tuple((*key, instance.starts[key]) for key in sorted(instance.starts)),
        tuple(
            execution.decisions[sequence]
            for execution in reversed(instance.executions)
            for sequence in sorted(execution.decisions, reverse=True)
            if execution.decisions[sequence].kind in ANSWERS
        ),
        latest_plans(tables, instance),
    )


def step_of(row: StepRow) -> StepExecution:
    """Make the record of a step, with the transition that is folded into it."""
    return StepExecution(
        id=row.id,
        execution_id=row.execution.record.id,
        node=row.node,
        visit=row.visit,
        name=row.name,
        status=row.status,
        exit_code=row.exit_code,
        counts=row.counts,
        checkpoint=row.checkpoint,
        context=row.context,
        failure=row.failure,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        version=row.version,
        decision=_folded(row),
    )


def _folded(row: StepRow) -> Decision | None:
    if row.decision is None:
        return None
    assert row.ended_at is not None
    return Decision(
        execution_id=row.execution.record.id,
        sequence=row.decision.sequence,
        source=row.node,
        visit=row.visit,
        step_id=row.id,
        kind=TransitionKind.STEP_EXIT,
        outcome=row.exit_code,
        target=row.decision.target,
        digest=step_input(
            row.execution.record.fingerprint,
            row.node,
            row.id,
            row.version,
            row.status,
            row.exit_code,
            row.counts,
            row.context,
        ),
        fingerprint=row.execution.record.fingerprint,
        decided_at=row.ended_at,
    )


def dump_of(tables: Tables) -> Dump:
    """Give every row as a record."""
    return Dump(
        owners=tuple(tables.owners.values()),
        definitions=tuple(tables.definitions.values()),
        upgrades=tuple(
            StoredUpgrade(
                source_id=source_id, target_id=target_id, key=edge.key, steps=edge.steps
            )
            for (source_id, target_id), edge in sorted(
                tables.upgrades.items(), key=lambda item: item[0]
            )
        ),
        instances=tuple(row.stored for row in tables.instances.values()),
        executions=tuple(row.record for row in tables.executions.values()),
        steps=tuple(step_of(row) for row in tables.steps.values()),
        decisions=tuple(
            execution.decisions[sequence]
            for execution in tables.executions.values()
            for sequence in sorted(execution.decisions)
        ),
        stops=tuple(tables.stops[key] for key in sorted(tables.stops)),
        recoveries=tuple(
            sorted(tables.recoveries, key=lambda one: (one.execution_id, one.version))
        ),
        operations=tuple(tables.operations.values()),
        requests=tuple(tables.requests.values()),
        partitions=tuple(
            one.record()
            for manager in sorted(tables.partitions)
            for _, one in sorted(tables.partitions[manager].items())
        ),
    )
