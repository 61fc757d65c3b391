"""What a split comes to as a whole, once all of its branches have ended."""

from collections.abc import Sequence

from ...storage.model import digests
from ...storage.model.execution import ExitCode
from ...storage.model.status import BatchStatus
from .actions import LineResult, SplitResult, StepReport
from .aggregation import BranchResult, aggregate_branches
from .history import History
from .plan import Graph, SplitNode, StepNode


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


def recalled(node: SplitNode, history: History, visit: int) -> tuple[LineResult, ...]:
    """Give what came of the branches of a split in an earlier attempt, from their rows.

    A split of which a branch has rules of its own is not resumed elsewhere, and so never
    recalled.
    """
    lines = [branch for branch in node.branches if not isinstance(branch, Graph)]
    return tuple(_recalled(line, history, visit) for line in lines)


def _recalled(branch: Sequence[StepNode], history: History, visit: int) -> LineResult:
    steps: list[StepReport] = []
    status, code = BatchStatus.COMPLETED, ExitCode.COMPLETED.value
    for node in branch:
        latest = history.latest(node.id, visit)
        if latest is None:
            status, code = BatchStatus.STOPPED, ExitCode.STOPPED.value
            break
        history.pass_by(latest)
        steps.append(StepReport(latest, reused=True))
        status, code = latest.status, latest.exit_code
        if not latest.completed:
            break
    return LineResult(status=status, exit_code=code, steps=tuple(steps))
