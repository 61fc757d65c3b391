"""The split actor: runs the branches of one split side by side."""

from ..kernel.inspecting import ActorKind
from ..plan.actions import RunSplit
from ..plan.compile import CompiledJob
from .fan import Fan, Line
from .step import Environment


class Split(Fan):
    """Runs the branches of one split.

    Args:
        action: The split and the engines of its branches.
        job: The compiled job.
        environment: Of the job.
    """

    kind = ActorKind.SPLIT
    line_kind = ActorKind.BRANCH

    def __init__(
        self, action: RunSplit, job: CompiledJob, environment: Environment
    ) -> None:
        node = action.node
        budget = job.splits[node.id].max_parallel
        super().__init__(
            node.id, action.branches, budget, node.failure_policy, environment
        )
        self._branches = action.branches
        self._node = node
        self._job = job

    def _line(self, at: int) -> Line:
        return Line(self._job, self._branches[at], self._environment)

    def _name_of(self, at: int) -> str:
        return self._node.branches[at][0].id
