"""The traversal engine: which step, decision or end comes next, and what is committed.

Pure: it knows the plan and the instance's history, is fed outcomes, and answers with
the next action. A step's result is durable before its transition, and a transition
before its target's code runs; result, transition and the next step's row travel in one
command wherever that order allows it. A job and a branch of a split are walked alike.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve

from ...storage.commands import Advanced
from ...storage.model.execution import (
    DecisionRef,
    Failure,
    NodeTarget,
    Stop,
    Target,
    Terminal,
    TransitionKind,
)
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    Decide,
    LatestRow,
    LineResult,
    RunSplit,
    SplitResult,
    StepReport,
    StepResult,
)
from .attempt import Attempt
from .dividing import Dividing
from .draft import Draft
from .failures import StartRefusal
from .history import Answer
from .joining import joined, recalled
from .plan import (
    Branch,
    DecisionNode,
    PartitionedNode,
    PlanNode,
    SplitNode,
    StepNode,
    resumed,
)

if TYPE_CHECKING:
    from .branch_traversal import BranchTraversal

Way: TypeAlias = NodeTarget | Action
"""The next node, or what has to be done before there is one."""

_STATUSES = {
    Terminal.COMPLETE: BatchStatus.COMPLETED,
    Terminal.STOP: BatchStatus.STOPPED,
    Terminal.FAIL: BatchStatus.FAILED,
}


class Traversal(Dividing):
    """One attempt's way through the nodes of a graph, until it comes to a terminal.

    Call `begin` once, then answer every action with the method that belongs to it
    (`stepped`; `decided`, `undecided` or `refused`; `joined`; `planned`, `unplanned`
    or `undecided`; `partitioned`; `committed` or `unwritten`) until it has ended.

    Args:
        attempt: That it is a part of.
        draft: Of its own commands.
        visit: Of its nodes, until it comes to one more often.
    """

    records = True
    """Whether its transitions are written down."""

    def __init__(self, attempt: Attempt, draft: Draft, visit: int = 1) -> None:
        super().__init__(attempt.history, attempt.failures, attempt.ids, draft)
        self._visit = visit
        self._attempt = attempt
        self._plan = attempt.plan
        self._preceding: LatestRow | None = None
        self._split: SplitResult | None = None
        self._splitting: SplitNode | None = None

    # What the actor calls

    def decided(self, node: DecisionNode, code: str) -> Action:
        """Take in a decider's answer."""
        return self._go(self._decide(node, code, None))

    def joined(self, branches: Sequence[LineResult]) -> Action:
        """Take in what came of all branches of the split, in declared order."""
        node, self._splitting = self._splitting, None
        assert node is not None, "no split was to be run"
        for branch in branches:
            self.steps.extend(branch.steps)
            self.partitions.extend(branch.partitions)
        result = joined(node, self._plan.fingerprint, self._history, branches)
        if result.status is BatchStatus.STOPPED:
            return self._stopped(result.failure, result.exit_code)
        if result.status is BatchStatus.UNKNOWN:
            return self._end(result.status, result.failure, result.exit_code)
        known = self._history.answer(node.join, self._visit, result.digest)
        return self._go(self._meet(node, result, known))

    def refused(self, failure: Failure) -> Action:
        """Take in that a decider or a job listener failed: so does the whole."""
        return self._end(BatchStatus.FAILED, failure)

    def undecided(self) -> Action:
        """Take in that a stop kept a decider or a planner from answering."""
        return self._stopped()

    def _stopped(
        self, failure: Failure | None = None, code: str | None = None
    ) -> Action:
        """Come to the end because of a stop; *code* is of the node that heeded it."""
        return self._end(BatchStatus.STOPPED, failure, code)

    # Nodes

    def _go(self, way: Way) -> Action:
        """Pass by whatever an earlier attempt has settled."""
        while isinstance(way, NodeTarget):
            if self._stopping:
                return self._stopped()
            if self._draft.full:
                return self._commit(partial(self._further, way))
            way = self._enter(way.node)
        return way

    def _further(self, way: Way, _: Advanced) -> Action:
        return self._go(way)

    def _enter(self, node_id: str) -> Way:
        node = self._plan.every[node_id]
        refused = self._come_to(node)
        if refused is not None:
            return refused
        if isinstance(node, StepNode):
            return self._enter_step(node)
        if isinstance(node, DecisionNode):
            return self._enter_decision(node)
        if isinstance(node, SplitNode):
            return self._enter_split(node)
        assert isinstance(node, PartitionedNode)
        return self._enter_step(node)

    def _come_to(self, node: PlanNode) -> Action | None:
        """Find out which visit of a node it is; give what comes instead of it, if any."""
        return None

    # Steps

    def _enter_step(self, node: StepNode | PartitionedNode) -> Way:
        latest = self._history.latest(node.id, self._visit)
        if latest is not None and latest.resumed:
            return self._reuse(node, latest)
        if latest is None or not latest.completed or node.allow_start_if_complete:
            if isinstance(node, PartitionedNode):
                return self._divide(node, latest)
            return self._start(node, latest)
        return self._reuse(node, latest)

    def _after(self, row: LatestRow, result: StepResult) -> Action:
        if result.status is BatchStatus.STOPPED:
            return self._stopped(result.failure, result.exit_code)
        if result.status is BatchStatus.UNKNOWN:
            return self._end(result.status, result.failure, result.exit_code)
        self._preceding, self._split = row, None
        target = self._select(row.node, result.status, result.exit_code)
        if target is None:
            return self._unmapped(row.node, result.exit_code)
        if self.records:
            self._draft.fold(target)
        return self._go(self._arrive(target, row.node, result))

    def _select(self, node: str, status: BatchStatus, code: str) -> Target | None:
        """Say where a step leads that is COMPLETED or FAILED."""
        return self._plan.select(node, code)

    def _reuse(self, node: StepNode | PartitionedNode, latest: LatestRow) -> Way:
        self._preceding, self._split = latest, None
        self._history.pass_by(latest)
        self.steps.append(StepReport(latest, reused=True))
        target = self._select(node.id, latest.status, latest.exit_code)
        if target is None:
            return self._unmapped(node.id, latest.exit_code)
        target = resumed(target)
        if self.records:
            self._draft.decide(
                node.id,
                TransitionKind.COMPLETED_STEP_REUSE,
                latest.exit_code,
                target,
                digest=self._history.digest(latest),
                visit=self._visit,
                step_id=latest.step_id,
                reused=latest.decision,
            )
        return self._arrive(target, node.id, _completed(latest.exit_code))

    # Splits

    def _enter_split(self, node: SplitNode) -> Way:
        stop = self._history.answer(node.join, self._visit, None)
        if stop is not None:
            lines = recalled(node, self._history, self._visit)
            result = joined(node, self._plan.fingerprint, self._history, lines)
            for line in lines:
                self.steps.extend(line.steps)
            return self._meet(node, evolve(result, exit_code=stop[0]), stop)
        if self._draft.empty:
            return self._fork(node)
        return self._commit(lambda _: self._fork(node))

    def _fork(self, node: SplitNode) -> Action:
        if self._stopping:
            return self._stopped()
        self._splitting = node
        return RunSplit(node, tuple(map(self._branch, node.branches)))

    @abstractmethod
    def _branch(self, branch: Branch) -> "BranchTraversal":
        """Make the engine of a branch of the split to which this one has come."""

    def _meet(self, node: SplitNode, result: SplitResult, known: Answer | None) -> Way:
        self._preceding, self._split = None, result
        target = self._plan.select(node.join, result.exit_code)
        if target is None:
            return self._unmapped(node.join, result.exit_code)
        if known is not None:
            target = resumed(target)
        self._draft.decide(
            node.join,
            TransitionKind.SPLIT_AGGREGATE,
            result.exit_code,
            target,
            digest=result.digest,
            visit=self._visit,
            reused=None if known is None else known[1],
        )
        return self._arrive(target, node.join, result)

    # Decisions

    def _enter_decision(self, node: DecisionNode) -> Way:
        known = self._history.answer(node.id, self._visit, self._input_of(node))
        if known is not None:
            return self._decide(node, *known)
        if self._draft.empty:
            return self._ask(node)
        return self._commit(lambda _: self._ask(node))

    def _ask(self, node: DecisionNode) -> Action:
        if self._stopping:
            return self._stopped()
        return Decide(node, self._preceding, self._split, self._visit)

    def _input_of(self, node: DecisionNode) -> bytes:
        before = self._preceding
        preceding = None if self._split is None else self._split.digest
        if before is not None:
            preceding = self._history.digest(before)
        return self._attempt.decider_input(node, self._visit, preceding)

    def _decide(self, node: DecisionNode, code: str, reused: DecisionRef | None) -> Way:
        target = self._plan.select(node.id, code)
        if target is None:
            return self._unmapped(node.id, code)
        if reused is not None:
            target = resumed(target)
        self._draft.decide(
            node.id,
            TransitionKind.DECIDER,
            code,
            target,
            digest=self._input_of(node),
            visit=self._visit,
            reused=reused,
        )
        return self._arrive(target, node.id, _completed(code))

    # Ends

    def _arrive(
        self, target: Target, source: str, result: StepResult | SplitResult
    ) -> Way:
        if isinstance(target, NodeTarget):
            return target
        end = Terminal.STOP if isinstance(target, Stop) else target
        status, failure = _STATUSES[end], None
        if target is Terminal.FAIL:
            failure = self._failure_of(source, result.failure)
        # What is routed to another end than its own gives no exit code to it.
        code = result.exit_code if status is result.status else None
        return self._end(status, failure, code)

    def _failure_of(self, source: str, failure: Failure | None) -> Failure:
        return self._failures.fail_terminal(source, failure)

    def _unmapped(self, node: str, code: str) -> Action:
        patterns = self._plan.patterns(node)
        failure = self._failures.unmapped(node, code, patterns)
        return self._end(BatchStatus.FAILED, failure)

    def _not_started(self, refusal: StartRefusal) -> Action:
        return self._end(BatchStatus.FAILED, self._failures.not_started(refusal))

    @abstractmethod
    def _end(
        self, status: BatchStatus, failure: Failure | None, code: str | None = None
    ) -> Action:
        """Come to the end; *code* is of the node that led there, if it ended alike."""


# A restart passes by many steps, nearly all of which ended alike.
@lru_cache(maxsize=64)
def _completed(code: str) -> StepResult:
    return StepResult(status=BatchStatus.COMPLETED, exit_code=code)
