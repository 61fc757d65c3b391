"""The ways through the branches of a split, which may have splits inside again."""

from collections.abc import Sequence

from ...storage.commands import JobEnd
from ...storage.model.execution import Failure, NodeTarget, Target, Terminal
from ...storage.model.status import BatchStatus
from .actions import Action, Ended, LineResult
from .attempt import Attempt
from .draft import Draft
from .plan import Branch, Graph, StepNode, transitions_most
from .stepping import exit_of
from .traversal import Traversal


class Forking(Traversal):
    """A way on which splits are come to: that through a job, or through a branch."""

    def _branch(self, branch: Branch) -> "BranchTraversal":
        draft = self._draft.reserve(transitions_most(branch))
        if not isinstance(branch, Graph):
            return LineTraversal(self._attempt, draft, branch, self._visit)
        engine = BranchTraversal(self._attempt, draft, branch.entry, self._visit)
        # A decision at its beginning looks back on what came before the split.
        engine._preceding, engine._split = self._preceding, self._split
        return engine


class BranchTraversal(Forking):
    """One attempt's way through one branch of a split.

    Args:
        attempt: That it is a part of; each branch touches its own nodes only.
        draft: Of its own commands.
        entry: Its first node.
        visit: Of the split.
    """

    def __init__(self, attempt: Attempt, draft: Draft, entry: str, visit: int) -> None:
        super().__init__(attempt, draft, visit)
        self._entry = entry

    def begin(self) -> Action:
        """Give the first action."""
        return self._go(NodeTarget(self._entry))

    def _failure_of(self, source: str, failure: Failure | None) -> Failure:
        # Whatever it leads to in the end gives it an id of its own.
        return failure or super()._failure_of(source, failure)

    def _end(
        self, status: BatchStatus, failure: Failure | None, code: str | None = None
    ) -> Action:
        def ended() -> Ended:
            self._ended = True
            return Ended(
                LineResult(
                    status=status,
                    exit_code=exit_of(status) if code is None else code,
                    failure=failure,
                    steps=tuple(self.steps),
                    partitions=tuple(self.partitions),
                )
            )

        if self._draft.empty:
            return ended()
        return self._commit(lambda _: ended())

    def _last_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd | None:
        return None


class LineTraversal(BranchTraversal):
    """The way through a branch of steps in order, with nothing to route.

    It ends at its first step that is not COMPLETED. What an earlier attempt completed
    is reused without a word in the store: the step's own row says it.

    Args:
        attempt: That it is a part of.
        draft: Of its own commands.
        steps: Of the branch.
        visit: Of the split.
    """

    records = False

    def __init__(
        self, attempt: Attempt, draft: Draft, steps: Sequence[StepNode], visit: int
    ) -> None:
        super().__init__(attempt, draft, steps[0].id, visit)
        ways: list[Target] = [NodeTarget(step.id) for step in steps[1:]]
        ways.append(Terminal.COMPLETE)
        self._ways = {step.id: way for step, way in zip(steps, ways, strict=True)}

    def _select(self, node: str, status: BatchStatus, code: str) -> Target | None:
        return self._ways[node] if status is BatchStatus.COMPLETED else Terminal.FAIL
