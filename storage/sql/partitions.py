"""Partitions in SQL: plans, who works on what, and what came of it."""

from collections.abc import Sequence

from ..backend import Waits
from ..commands.starting import PartitionStale, PlanUnknown
from ..model.digests import WORKER_PREFIX
from ..model.partition import (
    CopiedPlan,
    NewPartition,
    PartitionExecution,
    PartitionRef,
)
from .rows import COUNTS, PARTITION, partition_of
from .session import Session

NO_WORKER = f"substr(s.node, 1, {len(WORKER_PREFIX)}) <> '{WORKER_PREFIX}'"
"""The condition that a step row is not that of a partition's worker."""

_PLANNED = {
    "manager_id": "bigint",
    "ordinal": "bigint",
    "partition_key": "text",
    "context": "text",
    "status": "text",
    "exit_code": "text",
}
_KEPT = COUNTS.split(", ")
_COPY = (
    "INSERT INTO triolet.partition (manager_id, ordinal, partition_key, context, status, "
    f"exit_code, {COUNTS}, worker_id) SELECT CAST($1 AS bigint), p.ordinal, p.partition_key, p.context, "
    "CASE WHEN p.status = 'COMPLETED' THEN 'COMPLETED' ELSE 'STARTING' END, "
    "CASE WHEN p.status = 'COMPLETED' THEN p.exit_code ELSE 'UNKNOWN' END, "
    + ", ".join(
        f"CASE WHEN p.status = 'COMPLETED' THEN p.{one} ELSE 0 END" for one in _KEPT
    )
    + ", CASE WHEN p.status = 'COMPLETED' THEN p.worker_id END "
    "FROM triolet.partition p JOIN triolet.step s ON s.id = p.manager_id "
    "JOIN triolet.execution e ON e.id = s.execution_id "
    "WHERE p.manager_id = $2 AND s.node = $3 AND e.instance_id = "
    "(SELECT instance_id FROM triolet.execution WHERE id = $4)"
)


def insert_plan(
    db: Session,
    execution_id: int,
    node: str,
    manager_id: int,
    plan: Sequence[NewPartition] | CopiedPlan,
) -> Waits[None]:
    """Make the partitions of a manager that has just been started.

    Raises:
        PlanUnknown: There is no plan to copy.
    """
    if isinstance(plan, CopiedPlan):
        values = (manager_id, plan.manager_id, node, execution_id)
        if not (yield from db.change(_COPY, values)):
            raise PlanUnknown(plan.manager_id)
        return
    rows = [
        (manager_id, ordinal, one.key, one.context, "STARTING", "UNKNOWN")
        for ordinal, one in enumerate(plan, 1)
    ]
    yield from db.insert_all("triolet.partition", _PLANNED, rows)


_ASSIGN = (
    "UPDATE triolet.partition SET status = 'STARTED', worker_id = $3, "
    "version = version + 1 WHERE manager_id = $1 AND ordinal = $2 "
    "AND status = 'STARTING' AND EXISTS (SELECT 1 FROM triolet.step m "
    "WHERE m.id = $1 AND m.execution_id = $4 AND m.status = 'STARTED')"
)


def assign(
    db: Session, execution_id: int, one: PartitionRef, worker_id: int
) -> Waits[None]:
    """Give a pending partition to a worker that has just been started.

    Raises:
        PartitionStale: It is not pending, or its manager does not run.
    """
    values = (one.manager_id, one.ordinal, worker_id, execution_id)
    if (yield from db.change(_ASSIGN, values)) != 1:
        raise PartitionStale(one.manager_id, one.ordinal)


_PUBLISH = (
    "UPDATE triolet.partition SET (status, exit_code, "
    f"{COUNTS}) = (SELECT s.status, s.exit_code, {', '.join(f's.{one}' for one in _KEPT)} "
    "FROM triolet.step s WHERE s.id = $3), version = version + 1 "
    "WHERE manager_id = $1 AND ordinal = $2 AND worker_id = $3 AND status = 'STARTED'"
)


def publish(db: Session, one: PartitionRef, worker_id: int) -> Waits[None]:
    """Take over what came of a worker from its own row, which has just ended.

    Raises:
        PartitionStale: That worker does not work on it.
    """
    values = (one.manager_id, one.ordinal, worker_id)
    if (yield from db.change(_PUBLISH, values)) != 1:
        raise PartitionStale(one.manager_id, one.ordinal)


_CLOSE = (
    "UPDATE triolet.partition SET status = 'FAILED', exit_code = 'FAILED', "
    "version = version + 1 WHERE status = 'STARTED' AND manager_id IN "
    "(SELECT id FROM triolet.step WHERE execution_id = $1)"
)


def close_partitions(db: Session, execution_id: int) -> Waits[None]:
    """Close what the workers of a dead owner had begun."""
    yield from db.change(_CLOSE, (execution_id,))


PLANS = (
    f"{PARTITION} WHERE p.manager_id IN (SELECT max(p2.manager_id) "
    "FROM triolet.partition p2 JOIN triolet.step s2 ON s2.id = p2.manager_id "
    "JOIN triolet.execution e2 ON e2.id = s2.execution_id "
    "WHERE e2.instance_id = $1 GROUP BY s2.node, s2.visit) ORDER BY p.manager_id, p.ordinal"
)
"""The latest plan of each node and visit of an instance."""
_OF_EXECUTION = (
    f"{PARTITION} WHERE s.execution_id = $1 ORDER BY p.manager_id, p.ordinal"
)


def partitions_of(
    db: Session, execution_id: int
) -> Waits[tuple[PartitionExecution, ...]]:
    """Give all partitions of one execution, in order."""
    rows = yield from db.fetch(_OF_EXECUTION, (execution_id,))
    return tuple(map(partition_of, rows))
