"""Partitions for people: all of a few, a sum of many, and what went wrong.

A partition is called by its step and its key: the rows of its workers have derived
names, which are never shown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from attrs import evolve, frozen

from ...storage.commands import ExecutionDetail
from ...storage.model.execution import Counts, Failure, StepExecution
from ...storage.model.partition import PartitionExecution, is_worker
from ...storage.model.status import BatchStatus
from ..job.report import LaunchReport
from ..job.wording import failure_text
from .formats import counts_text, exit_text, table
from .formats import took as how_long

SHOWN_MAX = 20


class Waiting(StrEnum):
    """How a partition stands that nobody works on yet, or any more."""

    PENDING = "pending"


Standing: TypeAlias = BatchStatus | Waiting

_ORDER: tuple[Standing, ...] = (
    BatchStatus.COMPLETED,
    BatchStatus.UNKNOWN,
    BatchStatus.FAILED,
    BatchStatus.STOPPED,
    BatchStatus.ABANDONED,
    BatchStatus.STOPPING,
    BatchStatus.STARTED,
    Waiting.PENDING,
)
"""In which they are counted and listed: what is bad comes early."""


@frozen(kw_only=True)
class ShownPartition:
    """A partition as it is shown."""

    node: str
    """Of the partitioned step."""
    visit: int = 1
    key: str
    ordinal: int
    status: Standing
    exit_code: str
    counts: Counts
    failure: Failure | None
    reused: bool
    """Completed in an earlier attempt."""
    started_at: int | None = None
    ended_at: int | None = None

    @property
    def completed(self) -> bool:
        """Whether nothing is left of it."""
        return self.status is BatchStatus.COMPLETED


def partitions_in(detail: ExecutionDetail) -> tuple[ShownPartition, ...]:
    """Give the partitions of an execution, with what their workers' rows tell."""
    workers = {step.id: step for step in detail.steps}
    return tuple(
        _shown(one, None if one.worker_id is None else workers.get(one.worker_id))
        for one in detail.partitions
    )


def _shown(one: PartitionExecution, worker: StepExecution | None) -> ShownPartition:
    shown = ShownPartition(
        node=one.node,
        visit=one.visit,
        key=one.key,
        ordinal=one.ordinal,
        status=_standing(one.status),
        exit_code=one.exit_code,
        counts=one.counts,
        failure=None,
        reused=one.worker_id is not None and worker is None,
    )
    if worker is None:
        return shown
    return evolve(
        shown,
        # Those of the partition are not there before its end.
        counts=worker.counts,
        failure=_told(worker.failure, one.node),
        started_at=worker.started_at,
        ended_at=worker.ended_at,
    )


def _told(failure: Failure | None, node: str) -> Failure | None:
    """Let a failure name the step, where it names the row of a worker."""
    if failure is None or not is_worker(failure.where or ""):
        return failure
    return evolve(failure, where=node)


def _standing(status: BatchStatus) -> Standing:
    return Waiting.PENDING if status is BatchStatus.STARTING else status


def partitions_reported(report: LaunchReport) -> tuple[ShownPartition, ...]:
    """Give the partitions of a launch."""
    return tuple(
        ShownPartition(
            node=one.node,
            visit=one.visit,
            key=one.key,
            ordinal=one.ordinal,
            status=one.status if one.began else Waiting.PENDING,
            exit_code=one.exit_code,
            counts=one.counts,
            failure=one.failure,
            reused=one.reused,
        )
        for one in report.partitions
    )


def without_workers(detail: ExecutionDetail) -> ExecutionDetail:
    """Leave out the rows of workers, of which `partitions_in` tells."""
    steps = tuple(step for step in detail.steps if not is_worker(step.node))
    return evolve(detail, steps=steps)


def called_by_key(
    step: StepExecution, partitions: Iterable[PartitionExecution]
) -> StepExecution | None:
    """Give a step; the row of a worker is called by the step and key of its partition.

    Returns:
        None for a worker of none of the partitions.
    """
    if not is_worker(step.node):
        return step
    for one in partitions:
        if one.worker_id == step.id:
            name = f"{one.node}, partition {one.key}"
            failure = _told(step.failure, one.node)
            return evolve(step, node=one.node, name=name, failure=failure)
    return None


def open_lines(partitions: Iterable[ShownPartition], node: str) -> Iterator[str]:
    """Write the partitions of one step that are at work or UNKNOWN."""
    own = [
        one
        for one in partitions
        if one.node == node
        if isinstance(one.status, BatchStatus) and not one.status.finished
    ]
    own.sort(key=lambda one: (_ORDER.index(one.status), one.key))
    for one in own[:SHOWN_MAX]:
        yield f"    partition {one.key}: {one.status}"
    yield from _more(own)


def tally(partitions: Iterable[ShownPartition]) -> str:
    """Count partitions by status: ``1,020 COMPLETED, 3 FAILED, 1 pending``."""
    counts = Counter(one.status for one in partitions)
    return ", ".join(f"{counts[one]:,} {one}" for one in _ORDER if counts[one])


def shown_lines(
    partitions: Sequence[ShownPartition], node: str, visit: int = 1
) -> Iterator[str]:
    """Write the partitions of one step: all of a few, else what is not completed."""
    own = _of(partitions, node, visit)
    few = len(own) <= SHOWN_MAX
    yield from _lines(own, [one for one in own if few or not one.completed])


def reported_lines(
    partitions: Sequence[ShownPartition], node: str, visit: int = 1
) -> Iterator[str]:
    """Write what a launch did to the partitions of one step, and what went wrong."""
    own = _of(partitions, node, visit)
    bad = [
        one
        for one in own
        if one.failure is not None
        or not (one.completed or one.status is Waiting.PENDING)
    ]
    yield from _lines(own, bad)


def _of(
    partitions: Iterable[ShownPartition], node: str, visit: int
) -> list[ShownPartition]:
    own = (one for one in partitions if (one.node, one.visit) == (node, visit))
    return sorted(own, key=lambda one: one.key)


def _lines(
    every: Sequence[ShownPartition], shown: Sequence[ShownPartition]
) -> Iterator[str]:
    if not every:
        return
    reused = sum(one.reused for one in every)
    before = f" ({reused:,} reused)" if reused else ""
    yield f"    partitions: {tally(every)}{before}"
    if len(shown) < len(every):
        shown = sorted(shown, key=lambda one: _ORDER.index(one.status))
    first = shown[:SHOWN_MAX]
    for line, one in zip(table([_row(one) for one in first]), first, strict=True):
        yield line
        if one.failure is not None:
            yield "        failure: " + failure_text(one.failure)
    yield from _more(shown, "      ")


def _more(every: Sequence[ShownPartition], indent: str = "    ") -> Iterator[str]:
    if len(every) > SHOWN_MAX:
        yield f"{indent}...and {len(every) - SHOWN_MAX:,} more"


def _row(one: ShownPartition) -> list[str]:
    code = ""
    took = "reused" if one.reused else ""
    if isinstance(one.status, BatchStatus) and not one.status.active:
        code = exit_text(one.status, one.exit_code)
        if one.ended_at is not None:
            took = how_long(one.started_at, one.ended_at, one.failure)
    return [
        "      " + one.key,
        one.status.value,
        code,
        took,
        counts_text(one.counts),
    ]
