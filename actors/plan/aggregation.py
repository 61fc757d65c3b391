"""One result of many: what the branches of a split or all partitions come to.

Only declared order and keys decide, never which result came first.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TypeVar

from attrs import frozen

from ...storage.model.errors import InvalidValue
from ...storage.model.execution import (
    COUNT_MAX,
    NO_COUNTS,
    Counts,
    ExitCode,
    Failure,
)
from ...storage.model.status import BatchStatus


class Severity(IntEnum):
    """How bad a result is; the worst one is that of all."""

    COMPLETED = 0
    STOPPED = 1
    FAILED = 2
    UNKNOWN = 3

    @classmethod
    def of(cls, status: BatchStatus) -> "Severity":
        """Rank the status of something that is over.

        Raises:
            InvalidValue: It is not over, or was abandoned.
        """
        if status.name not in cls.__members__:
            raise InvalidValue("an aggregate", f"has no place for what is {status}")
        return cls[status.name]


@frozen
class BranchResult:
    """How one branch ended: with its last step that ran or was reused."""

    status: BatchStatus
    exit_code: str
    failure: Failure | None = None


@frozen
class PartitionResult:
    """How one partition ended; one that is STARTING was never given to a worker."""

    key: str
    status: BatchStatus
    exit_code: str
    counts: Counts = NO_COUNTS
    failure: Failure | None = None


R = TypeVar("R", BranchResult, PartitionResult)


@frozen
class Aggregate:
    """The one result."""

    status: BatchStatus
    exit_code: str
    """Of the first branch or partition that has the worst status."""
    failure: Failure | None = None
    counts: Counts = NO_COUNTS
    """Of all partitions; a split has none of its own."""


def aggregate_branches(results: Sequence[BranchResult]) -> Aggregate:
    """Make one result of all branches.

    Args:
        results: One for every branch, in declared order, however they came in.

    Raises:
        InvalidValue: There are none, or one is not over.
    """
    worst = _first_of_the_worst(results)
    return Aggregate(worst.status, worst.exit_code, worst.failure)


def aggregate_partitions(results: Iterable[PartitionResult]) -> Aggregate:
    """Make one result of all partitions; the first one is the first by key.

    A partition that was never given to a worker counts as STOPPED, so that the whole
    is never COMPLETED while work is left.

    Args:
        results: One for every partition, in any order.

    Raises:
        InvalidValue: There are none, one is at work, or the sum of a count is beyond
            what the store holds.
    """
    # By code points, which is the order of the bytes of UTF-8, too.
    ordered = [_settled(one) for one in sorted(results, key=lambda one: one.key)]
    worst = _first_of_the_worst(ordered)
    counts = sum((one.counts for one in ordered), NO_COUNTS)
    if max(counts.all()) > COUNT_MAX:
        reason = f"exceed {COUNT_MAX}, the most that the store holds"
        raise InvalidValue("the summed counts of the partitions", reason)
    return Aggregate(worst.status, worst.exit_code, worst.failure, counts)


def _settled(one: PartitionResult) -> PartitionResult:
    if one.status is not BatchStatus.STARTING:
        return one
    return PartitionResult(one.key, BatchStatus.STOPPED, ExitCode.STOPPED)


def _first_of_the_worst(results: Sequence[R]) -> R:
    if not results:
        raise InvalidValue("an aggregate", "must be of at least one result")
    # Of equals, max gives the first one.
    return max(results, key=lambda one: Severity.of(one.status))
