"""Partitions for people: all of a few, a summary of many, and what went wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from ...storage.commands import ExecutionDetail
from ...storage.model.execution import Counts, Failure
from ...storage.model.partition import is_worker
from ...storage.model.status import BatchStatus
from ..job.report import LaunchReport
from ..job.wording import failure_text
from .formats import elapsed, table

SHOWN_MAX = 20
PENDING = "pending"


@frozen(kw_only=True)
class ShownPartition:
    """A partition as it is shown."""

    node: str
    """Of the partitioned step."""
    key: str
    ordinal: int
    status: BatchStatus
    exit_code: str
    counts: Counts
    took: str = ""
    failure: Failure | None = None

    @property
    def state(self) -> str:
        """Write the status; nobody works yet on one that is STARTING."""
        pending = self.status is BatchStatus.STARTING
        return PENDING if pending else self.status.value


def partitions_in(detail: ExecutionDetail) -> tuple[ShownPartition, ...]:
    """Give the partitions of an execution, with what their workers' rows tell."""
    workers = {step.id: step for step in (*detail.steps, *detail.reused)}
    shown = []
    for one in detail.partitions:
        worker = workers.get(one.worker_id or 0)
        shown.append(
            ShownPartition(
                node=one.node,
                key=one.key,
                ordinal=one.ordinal,
                status=one.status,
                exit_code=one.exit_code,
                counts=one.counts,
                took=""
                if worker is None
                else elapsed(worker.started_at, worker.ended_at),
                failure=None if worker is None else worker.failure,
            )
        )
    return tuple(shown)


def partitions_reported(report: LaunchReport) -> tuple[ShownPartition, ...]:
    """Give the partitions of a launch."""
    return tuple(
        ShownPartition(
            node=one.node,
            key=one.key,
            ordinal=one.ordinal,
            status=one.status if one.began else BatchStatus.STARTING,
            exit_code=one.exit_code,
            counts=one.counts,
            took="reused" if one.reused else "",
            failure=one.failure,
        )
        for one in report.partitions
    )


def without_workers(detail: ExecutionDetail) -> ExecutionDetail:
    """Leave out the rows of workers, whose names say nothing to people."""
    return evolve(
        detail,
        steps=tuple(step for step in detail.steps if not is_worker(step.node)),
        reused=tuple(step for step in detail.reused if not is_worker(step.node)),
    )


def tally(partitions: Iterable[ShownPartition]) -> str:
    """Count partitions by status: ``1,020 COMPLETED, 3 FAILED, 1 pending``."""
    counts = Counter(one.state for one in partitions)
    return ", ".join(f"{counts[state]:,} {state}" for state in sorted(counts))


def partition_lines(
    partitions: Sequence[ShownPartition], node: str, few: int = SHOWN_MAX
) -> Iterator[str]:
    """Write the partitions of one step: all of a few, else what is not completed."""
    own = [one for one in partitions if one.node == node]
    if not own:
        return
    yield f"    partitions: {tally(own)}"
    shown = own
    if len(own) > few:
        shown = [one for one in own if one.status is not BatchStatus.COMPLETED]
    ordered = sorted(shown, key=lambda one: one.key)
    rows = [
        [
            "      " + one.key,
            one.state,
            "" if one.exit_code in (one.status.value, "UNKNOWN") else one.exit_code,
            one.took,
        ]
        for one in ordered[:SHOWN_MAX]
    ]
    for line, one in zip(table(rows) if rows else (), ordered, strict=False):
        yield line
        if one.failure is not None:
            yield "        failure: " + failure_text(one.failure)
    if len(ordered) > SHOWN_MAX:
        yield f"      ... and {len(ordered) - SHOWN_MAX:,} more"
