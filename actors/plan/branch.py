"""The engine of one branch of a split: its steps in order, and nothing to route.

A branch ends at its first step that is not COMPLETED. What an earlier attempt completed
is reused without a word in the store: the step's own row says it.
"""

from collections.abc import Sequence

from ...storage.commands import JobEnd
from ...storage.model import digests
from ...storage.model.execution import ExitCode, Failure
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    Ended,
    LatestRow,
    LineResult,
    SplitResult,
    StepReport,
    StepResult,
)
from .aggregation import BranchResult, aggregate_branches
from .draft import Draft
from .failures import FlowFailures, StartRefusal
from .history import History
from .plan import SplitNode, StepNode
from .stepping import Stepping


class BranchTraversal(Stepping):
    """One attempt's way through one branch.

    Args:
        nodes: The steps of the branch.
        history: Of the instance; each branch touches its own steps only.
        draft: Of the branch's own commands.
        failures: Makes the failures of routing.
        visit: Which visit of the split it is.
    """

    def __init__(
        self,
        nodes: Sequence[StepNode],
        history: History,
        draft: Draft,
        failures: FlowFailures,
        visit: int,
    ) -> None:
        super().__init__(history, draft)
        self._visit = visit
        self._nodes = nodes
        self._failures = failures
        self._at = 0

    def begin(self) -> Action:
        """Give the first action."""
        return self._enter(ExitCode.COMPLETED)

    def _enter(self, code: str) -> Action:
        """Go on behind a step that completed with that exit code."""
        while self._at < len(self._nodes):
            if self._stopping:
                return self._conclude(BatchStatus.STOPPED, ExitCode.STOPPED, None)
            node = self._nodes[self._at]
            self._at += 1
            latest = self._history.latest(node.id, self._visit)
            if latest is None or not latest.completed or node.allow_start_if_complete:
                return self._start(node, latest)
            self._history.pass_by(latest)
            self.steps.append(StepReport(latest, reused=True))
            code = latest.exit_code
        return self._conclude(BatchStatus.COMPLETED, code, None)

    def _after(self, row: LatestRow, result: StepResult) -> Action:
        if result.status is BatchStatus.COMPLETED:
            return self._enter(result.exit_code)
        return self._conclude(result.status, result.exit_code, result.failure)

    def _not_started(self, refusal: StartRefusal) -> Action:
        failure = self._failures.not_started(refusal)
        return self._conclude(BatchStatus.FAILED, ExitCode.FAILED, failure)

    def _conclude(
        self, status: BatchStatus, code: str, failure: Failure | None
    ) -> Action:
        def ended() -> Ended:
            self._ended = True
            steps = tuple(self.steps)
            return Ended(
                LineResult(status=status, exit_code=code, failure=failure, steps=steps)
            )

        if self._draft.empty:
            return ended()
        return self._commit(lambda _: ended())

    def _last_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd | None:
        return None


def branches_of(
    node: SplitNode,
    history: History,
    failures: FlowFailures,
    ids: tuple[int, int],
    visit: int,
) -> tuple[BranchTraversal, ...]:
    """Make the engines of a split's branches, in the order of declaration."""
    return tuple(
        BranchTraversal(branch, history, Draft(*ids), failures, visit)
        for branch in node.branches
    )


def recalled(node: SplitNode, history: History, visit: int) -> tuple[LineResult, ...]:
    """Give what came of the branches of a split in an earlier attempt, from their rows."""
    return tuple(_recalled(branch, history, visit) for branch in node.branches)


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
