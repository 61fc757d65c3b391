"""Rows of the SQL stores as records, and the columns that make them."""

from typing import Any, TypeAlias

from ..codec import (
    decode_failure,
    decode_launch_refusal,
    decode_parameters,
    decode_refusal,
    decode_target,
)
from ..model.digests import step_input
from ..model.execution import (
    NO_COUNTS,
    Counts,
    Decision,
    DecisionRef,
    JobExecution,
    JobInstance,
    StepExecution,
    TransitionKind,
)
from ..model.launch_request import LaunchRequest, RequestStatus, Withdrawal
from ..model.operation import Action, Operation, RecoveryDecision, StopRequest
from ..model.partition import PartitionExecution
from ..model.status import BatchStatus

Row: TypeAlias = tuple[Any, ...]

COUNTS = (
    "read_count, process_count, write_count, filter_count, commit_count, rollback_count"
)

STEP = """
SELECT s.id, s.execution_id, s.node, s.visit, s.name, s.status, s.exit_code,
    s.read_count, s.process_count, s.write_count, s.filter_count, s.commit_count,
    s.rollback_count, s.checkpoint, s.context, s.failure, s.created_at, s.started_at,
    s.ended_at, s.version, s.decision_sequence, s.decision_target, d.fingerprint
FROM triolet.step s
JOIN triolet.execution e ON e.id = s.execution_id
JOIN triolet.definition d ON d.id = e.definition_id
"""

DECISION = """
SELECT c.execution_id, c.sequence, c.source, c.visit, c.step_id, c.kind, c.outcome,
    c.target, c.digest, c.reused_execution, c.reused_sequence, c.decided_at,
    d.fingerprint
FROM triolet.decision c
JOIN triolet.execution e ON e.id = c.execution_id
JOIN triolet.definition d ON d.id = e.definition_id
"""

EXECUTION = """
SELECT e.id, e.instance_id, e.attempt, e.restart_of, e.status, e.exit_code,
    e.read_count, e.process_count, e.write_count, e.filter_count, e.commit_count,
    e.rollback_count, e.failure, e.owner_id, e.created_at, e.started_at, e.ended_at,
    e.version, e.parameters, d.revision, d.fingerprint,
    i.id, i.job, i.instance_key, i.run, i.created_at
FROM triolet.execution e
JOIN triolet.instance i ON i.id = e.instance_id
JOIN triolet.definition d ON d.id = e.definition_id
"""


STOP = """
SELECT p.execution_id, p.owner_id, p.actor, p.reason, p.requested_at
FROM triolet.stop_request p
"""

RECOVERY = """
SELECT r.execution_id, r.version, r.prior_status, r.result_status, r.actor, r.reason,
    r.evidence, r.decided_at
FROM triolet.recovery_decision r
"""

OPERATION = """
SELECT o.action, o.operation_id, o.execution_id, o.actor, o.reason, o.digest,
    o.observed_version, o.prior_status, o.result_status, o.refusal, o.requested_at
FROM triolet.operator_request o
"""


_REQUEST_COLUMNS = """
r.id, r.job, r.parameters, r.anew, r.status, r.requested_at, r.owner_id,
    r.claimed_at, r.execution_id, r.ended_at, r.refusal, r.withdrawn_by, r.withdrawn_why
"""
REQUEST = f"SELECT {_REQUEST_COLUMNS} FROM triolet.launch_request r"
REQUEST_AND_OUTCOME = f"""
SELECT {_REQUEST_COLUMNS}, e.status FROM triolet.launch_request r
LEFT JOIN triolet.execution e ON e.id = r.execution_id
"""


PARTITION = """
SELECT p.manager_id, s.node, p.ordinal, p.partition_key, p.context, p.status,
    p.exit_code, p.read_count, p.process_count, p.write_count, p.filter_count,
    p.commit_count, p.rollback_count, p.worker_id, p.version, s.visit
FROM triolet.partition p
JOIN triolet.step s ON s.id = p.manager_id
"""


def step_of(row: Row) -> StepExecution:
    """Make the record of a row of STEP."""
    status = BatchStatus(row[5])
    counts = Counts(*row[7:13]) if any(row[7:13]) else NO_COUNTS
    decision = None
    if row[20] is not None:
        decision = Decision(
            execution_id=row[1],
            sequence=row[20],
            source=row[2],
            visit=row[3],
            step_id=row[0],
            kind=TransitionKind.STEP_EXIT,
            outcome=row[6],
            target=decode_target(row[21]),
            digest=step_input(
                row[22], row[2], row[0], row[19], status, row[6], counts, row[14]
            ),
            fingerprint=row[22],
            decided_at=row[18],
        )
    return StepExecution(
        id=row[0],
        execution_id=row[1],
        node=row[2],
        visit=row[3],
        name=row[4],
        status=status,
        exit_code=row[6],
        counts=counts,
        checkpoint=row[13],
        context=row[14],
        failure=decode_failure(row[15]),
        created_at=row[16],
        started_at=row[17],
        ended_at=row[18],
        version=row[19],
        decision=decision,
    )


def decision_of(row: Row) -> Decision:
    """Make the record of a row of DECISION."""
    reused = None if row[9] is None else DecisionRef(row[9], row[10])
    return Decision(
        execution_id=row[0],
        sequence=row[1],
        source=row[2],
        visit=row[3],
        step_id=row[4],
        kind=TransitionKind(row[5]),
        outcome=row[6],
        target=decode_target(row[7]),
        digest=row[8],
        fingerprint=row[12],
        reused=reused,
        decided_at=row[11],
    )


def execution_of(row: Row) -> JobExecution:
    """Make the execution's record of a row of EXECUTION."""
    return JobExecution(
        id=row[0],
        instance_id=row[1],
        attempt=row[2],
        restart_of=row[3],
        status=BatchStatus(row[4]),
        exit_code=row[5],
        counts=Counts(*row[6:12]),
        failure=decode_failure(row[12]),
        owner_id=row[13],
        created_at=row[14],
        started_at=row[15],
        ended_at=row[16],
        version=row[17],
        parameters=decode_parameters(row[18]),
        revision=row[19],
        fingerprint=row[20],
    )


def instance_of(row: Row) -> JobInstance:
    """Make the instance's record of a row of EXECUTION."""
    return JobInstance(
        id=row[21], job=row[22], key=row[23], run=row[24], created_at=row[25]
    )


def stop_of(row: Row) -> StopRequest:
    """Make the record of a row of STOP."""
    return StopRequest(
        execution_id=row[0],
        owner_id=row[1],
        actor=row[2],
        reason=row[3],
        requested_at=row[4],
    )


def recovery_of(row: Row) -> RecoveryDecision:
    """Make the record of a row of RECOVERY."""
    return RecoveryDecision(
        execution_id=row[0],
        version=row[1],
        prior=BatchStatus(row[2]),
        result=BatchStatus(row[3]),
        actor=row[4],
        reason=row[5],
        evidence=row[6],
        decided_at=row[7],
    )


def operation_of(row: Row) -> Operation:
    """Make the record of a row of OPERATION."""
    return Operation(
        action=Action(row[0]),
        operation_id=row[1],
        execution_id=row[2],
        actor=row[3],
        reason=row[4],
        digest=row[5],
        observed_version=row[6],
        prior=None if row[7] is None else BatchStatus(row[7]),
        result=None if row[8] is None else BatchStatus(row[8]),
        refusal=None if row[9] is None else decode_refusal(row[9]),
        requested_at=row[10],
    )


def request_of(row: Row) -> LaunchRequest:
    """Make the record of a row of REQUEST, or of REQUEST_AND_OUTCOME."""
    return LaunchRequest(
        id=row[0],
        job=row[1],
        parameters=decode_parameters(row[2]),
        anew=bool(row[3]),
        status=RequestStatus(row[4]),
        requested_at=row[5],
        owner_id=row[6],
        claimed_at=row[7],
        execution_id=row[8],
        ended_at=row[9],
        refusal=decode_launch_refusal(row[10]),
        withdrawal=None if row[11] is None else Withdrawal(row[11], row[12]),
    )


def partition_of(row: Row) -> PartitionExecution:
    """Make the record of a row of PARTITION."""
    return PartitionExecution(
        manager_id=row[0],
        node=row[1],
        ordinal=row[2],
        key=row[3],
        context=row[4],
        status=BatchStatus(row[5]),
        exit_code=row[6],
        counts=Counts(*row[7:13]),
        worker_id=row[13],
        version=row[14],
        visit=row[15],
    )
