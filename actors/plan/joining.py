"""What a split comes to as a whole, once all of its branches have ended."""

from collections.abc import Sequence

from ...storage.model import digests
from .actions import LineResult, SplitResult
from .aggregation import BranchResult, aggregate_branches
from .history import History
from .plan import SplitNode


def joined(
    node: SplitNode,
    fingerprint: bytes,
    history: History,
    branches: Sequence[LineResult],
) -> SplitResult:
    """Make one result of all branches: the worst, and of equal ones the first declared.

    Args:
        node: The split.
        fingerprint: Of the plan.
        history: Knows the digests of the steps.
        branches: In the order of declaration, in which order they may have ended.
    """
    worst = aggregate_branches(
        [BranchResult(one.status, one.exit_code, one.failure) for one in branches]
    )
    digest = digests.split_aggregate(
        fingerprint,
        node.join,
        [
            digests.BranchInput(
                one.status,
                one.exit_code,
                tuple(history.digest(step.row) for step in one.steps),
            )
            for one in branches
        ],
    )
    return SplitResult(
        status=worst.status,
        exit_code=worst.exit_code,
        failure=worst.failure,
        digest=digest,
        branches=tuple(branches),
    )
