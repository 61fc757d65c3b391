"""The engines of a partitioned step: one for each partition that is not completed.

Starting a worker and giving it its partition are one command, and so are its end and
what the partition takes over from it.
"""

from collections.abc import Iterable, Sequence

from attrs import evolve

from ...storage.commands import JobEnd, NextStep
from ...storage.model.digests import partition_worker
from ...storage.model.execution import NO_COUNTS, ExitCode, Failure
from ...storage.model.partition import NewPartition, PartitionExecution
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    Ended,
    LatestRow,
    LineResult,
    PartitionReport,
    StepResult,
)
from .aggregation import Aggregate, PartitionResult, aggregate_partitions
from .draft import Draft, next_step
from .failures import FlowFailures, StartRefusal
from .history import History
from .plan import PartitionedNode, StepNode
from .stepping import Stepping


def manager_of(node: PartitionedNode) -> StepNode:
    """Give the step that stands for all partitions."""
    return StepNode(node.id, node.step_name, node.worker.declaration, node.start_limit)


def planned(
    node: PartitionedNode, manager_id: int, entries: Sequence[NewPartition], visit: int
) -> tuple[PartitionExecution, ...]:
    """Give the partitions as the store makes them of a plan."""
    return tuple(
        PartitionExecution(
            manager_id=manager_id,
            node=node.id,
            visit=visit,
            ordinal=ordinal,
            key=one.key,
            context=one.context,
        )
        for ordinal, one in enumerate(entries, 1)
    )


def copied(
    manager_id: int, earlier: Iterable[PartitionExecution]
) -> tuple[PartitionExecution, ...]:
    """Give the partitions as the store copies them from an earlier attempt."""
    return tuple(
        evolve(one, manager_id=manager_id, version=0)
        if one.status is BatchStatus.COMPLETED
        else PartitionExecution(
            manager_id=manager_id,
            node=one.node,
            visit=one.visit,
            ordinal=one.ordinal,
            key=one.key,
            context=one.context,
        )
        for one in earlier
    )


class PartitionTraversal(Stepping):
    """One attempt at one partition: a single step, the worker.

    Args:
        node: The partitioned step.
        partition: Which of its partitions.
        history: Of the instance; a worker goes on where its last attempt ended.
        draft: Of the worker's own commands.
        failures: Makes the failures of routing.
    """

    def __init__(
        self,
        node: PartitionedNode,
        partition: PartitionExecution,
        history: History,
        draft: Draft,
        failures: FlowFailures,
    ) -> None:
        super().__init__(history, draft)
        self._visit = partition.visit
        name = partition_worker(node.id, partition.key)
        self.node = node.id
        """Of the manager."""
        self.partition = partition
        worker = node.worker
        # Built as a whole, which is quicker than evolving it for each partition.
        self._worker = StepNode(
            name,
            name,
            worker.declaration,
            worker.start_limit,
            worker.allow_start_if_complete,
            worker.listeners,
            worker.restartable,
        )
        self._failures = failures

    def begin(self) -> Action:
        """Give the first action."""
        if self._stopping:
            return self._ended_with(BatchStatus.STOPPED, ExitCode.STOPPED, None)
        return self._start(
            self._worker, self._history.latest(self._worker.id, self._visit)
        )

    def _next_step(self, node: StepNode, inherit: int | None) -> NextStep:
        return next_step(node, inherit, self.partition.ref, self._visit)

    def _after(self, row: LatestRow, result: StepResult) -> Action:
        end = self._ended_with(result.status, result.exit_code, result.failure)
        return self._commit(lambda _: end)

    def _not_started(self, refusal: StartRefusal) -> Action:
        failure = self._failures.worker_not_started(refusal, self.node, self.partition)
        return self._ended_with(BatchStatus.FAILED, ExitCode.FAILED, failure)

    def _ended_with(
        self, status: BatchStatus, code: str, failure: Failure | None
    ) -> Ended:
        self._ended = self._open is None and self._draft.empty
        return Ended(
            LineResult(
                status=status,
                exit_code=code,
                failure=failure,
                steps=tuple(self.steps),
            )
        )

    def _last_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd | None:
        return None


def engines_of(
    node: PartitionedNode,
    partitions: Iterable[PartitionExecution],
    history: History,
    failures: FlowFailures,
    ids: tuple[int, int],
) -> tuple[PartitionTraversal, ...]:
    """Make the engines of all partitions that are not completed, in their order.

    Args:
        node: The partitioned step.
        partitions: All of them.
        history: Of the instance.
        failures: Makes the failures of routing.
        ids: Of the execution and its owner.
    """
    return tuple(
        PartitionTraversal(node, one, history, Draft(*ids, one.ref), failures)
        for one in partitions
        if one.status is not BatchStatus.COMPLETED
    )


def reported(
    partitions: Iterable[PartitionExecution],
    engines: Sequence[PartitionTraversal],
    results: Sequence[LineResult],
) -> tuple[PartitionReport, ...]:
    """Say what came of every partition, in the order of keys."""
    ended = {
        engine.partition.ordinal: result
        for engine, result in zip(engines, results, strict=True)
    }
    reports = []
    for one in sorted(partitions, key=lambda one: one.key):
        result = ended.get(one.ordinal)
        if result is None:
            status, code, counts = one.status, one.exit_code, one.counts
        else:
            status, code = result.status, result.exit_code
            counts = result.steps[-1].counts if result.steps else NO_COUNTS
        reports.append(
            PartitionReport(
                node=one.node,
                visit=one.visit,
                key=one.key,
                ordinal=one.ordinal,
                status=status,
                exit_code=code,
                counts=counts,
                failure=None if result is None else result.failure,
                reused=result is None,
                began=result is None or bool(result.steps),
            )
        )
    return tuple(reports)


def aggregated(reports: Iterable[PartitionReport]) -> Aggregate:
    """Make one result of all partitions; without any, nothing was to be done."""
    reports = tuple(reports)
    if not reports:
        return Aggregate(BatchStatus.COMPLETED, ExitCode.COMPLETED)
    return aggregate_partitions(
        PartitionResult(one.key, one.status, one.exit_code, one.counts, one.failure)
        for one in reports
    )
