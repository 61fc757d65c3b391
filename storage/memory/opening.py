"""Beginning an attempt in memory: instance, takeover, snapshot.

Everything that may refuse comes before the first change.
"""

from attrs import frozen

from ..codec import decode_parameters, encode_parameters
from ..commands import (
    AlreadyRunning,
    IncompatibleDefinition,
    InstanceAbandoned,
    InstanceComplete,
    NotRestartable,
    Opened,
    OpenExecution,
    OutcomeUnresolved,
    PartitionStale,
    PlanUnknown,
    RunUnknown,
    Snapshot,
    StepUnknown,
)
from ..dump import StoredDefinition, StoredInstance
from ..model.execution import (
    NO_COUNTS,
    ExitCode,
    JobExecution,
    JobInstance,
)
from ..model.parameters import ParameterSet
from ..model.partition import CopiedPlan
from ..model.status import BatchStatus
from .closing import holds_unknown, take_over
from .requesting import check_claim, note_execution
from .tables import ExecutionRow, InstanceRow, Tables
from .upgrading import history_of, insert_definition, registered


@frozen
class Occurrence:
    """Which instance is meant, whether there is one yet or not."""

    parameters: ParameterSet
    key: bytes
    run: int | None
    row: InstanceRow | None


def open_execution(
    tables: Tables, command: OpenExecution, now: int
) -> Opened | OutcomeUnresolved | NotRestartable:
    """Find or create the instance and begin a new attempt at it."""
    tables.owner(command.owner_id)
    definition = registered(tables, command.job, command.definition)
    occurrence = occurrence_of(tables, command)
    if command.existing and occurrence.row is None:
        raise RunUnknown(command.job)
    previous = None if occurrence.row is None else occurrence.row.executions[-1]
    dead = None
    if previous is not None and may_follow(tables, command, previous, definition, now):
        dead = previous
    if command.request_id is not None:
        check_claim(tables, command.request_id, command.owner_id)
    if dead is not None and holds_unknown(dead):
        take_over(tables, dead, command.failure_id, now)
        return OutcomeUnresolved(dead.record.id)
    if dead is not None and not command.restartable:
        take_over(tables, dead, command.failure_id, now)
        return NotRestartable(command.job, dead.record.id)
    # Only a secret is stored otherwise than given; the text is made for its limits.
    text = encode_parameters(occurrence.parameters, identifying_only=False)
    secret = any(one.secret for one in occurrence.parameters)
    stored = decode_parameters(text) if secret else occurrence.parameters
    first = command.first if previous is None else None
    if first is not None and first.inherit is not None:
        raise StepUnknown(first.inherit)
    if first is not None and first.partition is not None:
        raise PartitionStale(first.partition.manager_id, first.partition.ordinal)
    if first is not None and isinstance(first.plan, CopiedPlan):
        raise PlanUnknown(first.plan.manager_id)

    if dead is not None:
        take_over(tables, dead, command.failure_id, now)
    if definition is None:
        definition = insert_definition(tables, command.job, command.definition, now)
    instance = occurrence.row
    if instance is None:
        instance = _insert_instance(tables, command.job, occurrence, stored, now)
    snapshot = Snapshot()
    if previous is not None:
        snapshot = history_of(tables, instance, command.definition.fingerprint)
    execution = _insert_execution(
        tables, command.owner_id, instance, definition, stored, now
    )
    if command.request_id is not None:
        note_execution(tables, command.request_id, execution.record.id)
    return Opened(
        instance_id=instance.stored.instance.id,
        execution_id=execution.record.id,
        attempt=execution.record.attempt,
        run=occurrence.run,
        at=now,
        restart_of=execution.record.restart_of,
        took_over=None if dead is None else dead.record.id,
        snapshot=snapshot,
        first=None if first is None else tables.insert_step(execution, first, now),
    )


def occurrence_of(tables: Tables, command: OpenExecution) -> Occurrence:
    """Find the instance that is meant."""
    if not command.anew:
        return _find(tables, command.job, command.parameters, None)
    run = tables.runs.get(command.job, 0)
    while True:
        run += 1
        parameters = command.parameters.with_run(run)
        found = _find(tables, command.job, parameters, run)
        if found.row is None:
            return found


def _find(
    tables: Tables, job: str, parameters: ParameterSet, run: int | None
) -> Occurrence:
    key = parameters.instance_key(job)
    return Occurrence(parameters, key, run, tables.instances.get((job, key)))


def may_follow(
    tables: Tables,
    command: OpenExecution,
    previous: ExecutionRow,
    definition: StoredDefinition | None,
    now: int,
) -> bool:
    """Refuse a new attempt, or tell whether *previous* has to be taken over first."""
    record = previous.record
    match record.status:
        case BatchStatus.COMPLETED:
            assert record.ended_at is not None
            raise InstanceComplete(command.job, record.id, record.ended_at)
        case BatchStatus.ABANDONED:
            raise InstanceAbandoned(command.job, record.id)
        case BatchStatus.UNKNOWN:
            raise OutcomeUnresolved(record.id)
        case BatchStatus.STOPPED | BatchStatus.FAILED if not command.restartable:
            raise NotRestartable(command.job, record.id)
    if record.status.active:
        owner = tables.owner(record.owner_id)
        if owner.id != command.dead_owner and owner.lease_until > now:
            left = owner.lease_until - now
            raise AlreadyRunning(record.id, owner.id, owner.facts, left)
    ran = tables.definitions[command.job, record.fingerprint]
    wanted = None if definition is None else definition.id
    if ran.id != wanted and (ran.id, wanted) not in tables.upgrades:
        raise IncompatibleDefinition(command.job, record.id, ran.definition.manifest)
    return record.status.active


def _insert_instance(
    tables: Tables, job: str, occurrence: Occurrence, stored: ParameterSet, now: int
) -> InstanceRow:
    instance = JobInstance(
        id=len(tables.instances) + 1,
        job=job,
        key=occurrence.key,
        run=occurrence.run,
        created_at=now,
    )
    identifying = ParameterSet(tuple(one for one in stored if one.identifying))
    row = InstanceRow(StoredInstance(instance=instance, parameters=identifying))
    tables.instances[job, occurrence.key] = row
    if occurrence.run is not None:
        tables.runs[job] = occurrence.run
    return row


def _insert_execution(
    tables: Tables,
    owner_id: int,
    instance: InstanceRow,
    definition: StoredDefinition,
    stored: ParameterSet,
    now: int,
) -> ExecutionRow:
    previous = instance.executions[-1].record if instance.executions else None
    record = JobExecution(
        id=len(tables.executions) + 1,
        instance_id=instance.stored.instance.id,
        attempt=1 if previous is None else previous.attempt + 1,
        restart_of=None if previous is None else previous.id,
        status=BatchStatus.STARTED,
        exit_code=ExitCode.UNKNOWN,
        counts=NO_COUNTS,
        failure=None,
        owner_id=owner_id,
        created_at=now,
        started_at=now,
        ended_at=None,
        version=1,
        parameters=stored,
        revision=definition.definition.revision,
        fingerprint=definition.definition.fingerprint,
    )
    row = ExecutionRow(record, instance)
    instance.executions.append(row)
    tables.executions[record.id] = row
    return row
