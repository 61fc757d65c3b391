"""The traversal engine: which step, decision or end comes next, and what is committed.

Pure: it knows the plan and the instance's history, is fed outcomes, and answers with
the next action. A step's result is durable before its transition, and a transition
before its target's code runs; result, transition and the next step's row travel in one
command wherever that order allows it.
"""

from collections.abc import Callable, Sequence

from attrs import evolve

from ...storage.commands import (
    Advanced,
    JobEnd,
    NextStep,
    Opened,
)
from ...storage.model import digests
from ...storage.model.execution import (
    DecisionRef,
    ExitCode,
    Failure,
    NodeTarget,
    Target,
    Terminal,
    TransitionKind,
)
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    Conclude,
    Decide,
    Finished,
    LatestRow,
    LineResult,
    Overridden,
    RunSplit,
    SplitResult,
    StepReport,
    StepResult,
)
from .branch import branches_of, joined
from .dividing import Dividing
from .draft import next_step
from .failures import FlowFailures, StartRefusal
from .history import History
from .plan import DecisionNode, PartitionedNode, Plan, SplitNode, StepNode
from .stepping import exit_of


def entry_step(plan: Plan, *, heard: bool = False) -> NextStep | None:
    """Give the step that starts with a new instance's first attempt, if one does.

    Args:
        plan: The graph.
        heard: Whether the job has listeners; they come after the row of a job of one
            step, which so has not begun yet.
    """
    node = plan.nodes[plan.entry]
    if not isinstance(node, StepNode):
        return None
    first = next_step(node, None)
    return evolve(first, starting=True) if heard and plan.one_step else first


class Traversal(Dividing):
    """One attempt's way through a plan.

    Call `begin` once, then answer every action with the method that belongs to it
    (`stepped`; `decided`, `undecided` or `refused`; `joined`; `planned`, `unplanned`
    or `undecided`; `partitioned`; `concluded`; `committed` or `unwritten`) until it is
    `Finished`. An attempt that is `refused` or `undecided` need not be begun.

    Args:
        plan: The graph.
        opened: The reply that began the attempt.
        owner_id: Fences every command.
        parameters: The projection digest of the launch parameters.
        new_failure_id: Draws ids for failures.
        heard: Whether it asks to `Conclude` before it ends.
    """

    def __init__(
        self,
        plan: Plan,
        opened: Opened,
        owner_id: int,
        parameters: bytes,
        new_failure_id: Callable[[], int],
        *,
        heard: bool = False,
    ) -> None:
        super().__init__(
            History(plan.fingerprint, opened.snapshot),
            FlowFailures(new_failure_id),
            (opened.execution_id, owner_id),
        )
        self._plan = plan
        self._opened = opened
        self._parameters = parameters
        self._preceding: LatestRow | None = None
        self._split: SplitResult | None = None
        self._splitting: SplitNode | None = None
        self._heard = heard
        self._concluding: Conclude | None = None

    # What the actor calls

    def begin(self) -> Action:
        """Give the first action."""
        entry = self._plan.entry
        if self._opened.first is not None:
            node = self._plan.nodes[entry]
            assert isinstance(node, StepNode)
            return self._started(node, self._opened.first)
        return self._enter(entry)

    def decided(self, node: DecisionNode, code: str) -> Action:
        """Take in a decider's answer."""
        return self._decide(node, code, None)

    def joined(self, branches: Sequence[LineResult]) -> Action:
        """Take in what came of all branches of the split, in declared order."""
        node, self._splitting = self._splitting, None
        assert node is not None, "no split was to be run"
        for branch in branches:
            self.steps.extend(branch.steps)
        result = joined(node, self._plan.fingerprint, self._history, branches)
        if result.status in (BatchStatus.UNKNOWN, BatchStatus.STOPPED):
            return self._end(result.status, result.failure)
        self._preceding, self._split = None, result
        target = self._plan.select(node.join, result.exit_code)
        if target is None:
            return self._unmapped(node.join, result.exit_code)
        known = self._history.answer(node.join, result.digest)
        self._draft.decide(
            node.join,
            TransitionKind.SPLIT_AGGREGATE,
            result.exit_code,
            target,
            digest=result.digest,
            reused=None if known is None else known[1],
        )
        return self._arrive(target, node.join, result.failure)

    def refused(self, failure: Failure) -> Action:
        """Take in that a decider or a job listener failed: so does the job.

        The step of a job of one step, whose row was there before the listeners, fails
        with it, and the after-listeners are not asked for.
        """
        if self._plan.one_step:
            self._heard = False
        if self._open is not None:
            exit_code = ExitCode.FAILED
            return self.stepped(
                StepResult(
                    status=BatchStatus.FAILED, exit_code=exit_code, failure=failure
                )
            )
        return self._end(BatchStatus.FAILED, failure)

    def undecided(self) -> Action:
        """Take in that a stop kept a decider or a planner from answering."""
        return self._stopped_before()

    def concluded(self, failure: Failure | None) -> Action:
        """Take in that the after-listeners were called, and the first failure."""
        end, self._concluding = self._concluding, None
        assert end is not None, "nothing was to be concluded"
        if failure is not None and end.status is BatchStatus.COMPLETED:
            before = Overridden(end.status, end.exit_code, end.failure)
            return self._finish(BatchStatus.FAILED, failure, before)
        return self._finish(end.status, end.failure)

    def _stopped_before(self) -> Action:
        return self._end(BatchStatus.STOPPED, None)

    def state_of(self, node: str) -> str | None:
        """Give the envelope of the state that a node committed last, if any."""
        latest = self._history.latest(node)
        return None if latest is None else latest.context

    # Steps

    def _starting(self, node: StepNode) -> bool:
        return super()._starting(node) or (self._heard and self._plan.one_step)

    def _next_step(self, node: StepNode, inherit: int | None) -> NextStep:
        step = super()._next_step(node, inherit)
        return evolve(step, starting=self._starting(node))

    def _enter(self, node_id: str) -> Action:
        while not self._stopping:
            node = self._plan.nodes[node_id]
            if isinstance(node, DecisionNode):
                return self._enter_decision(node)
            if isinstance(node, SplitNode):
                return self._enter_split(node)
            assert isinstance(node, StepNode | PartitionedNode)
            latest = self._history.latest(node_id)
            reusable = latest is not None and latest.completed
            if latest is None or not reusable or node.allow_start_if_complete:
                if isinstance(node, PartitionedNode):
                    return self._divide(node, latest)
                return self._start(node, latest)
            target = self._reuse(node, latest)
            if target is None:
                return self._unmapped(node.id, latest.exit_code)
            if isinstance(target, Terminal):
                return self._arrive(target, node.id, None)
            node_id = target.node
        return self._end(BatchStatus.STOPPED, None)

    def _after(self, row: LatestRow, result: StepResult) -> Action:
        if result.status in (BatchStatus.UNKNOWN, BatchStatus.STOPPED):
            return self._end(result.status, result.failure)
        self._preceding, self._split = row, None
        target = self._plan.select(row.node, result.exit_code)
        if target is None:
            return self._unmapped(row.node, result.exit_code)
        self._draft.fold(target)
        return self._arrive(target, row.node, result.failure)

    def _reuse(
        self, node: StepNode | PartitionedNode, latest: LatestRow
    ) -> Target | None:
        self._preceding, self._split = latest, None
        self.steps.append(StepReport(latest, reused=True))
        target = self._plan.select(node.id, latest.exit_code)
        if target is not None:
            self._draft.decide(
                node.id,
                TransitionKind.COMPLETED_STEP_REUSE,
                latest.exit_code,
                target,
                digest=self._history.digest(latest),
                step_id=latest.step_id,
                reused=latest.decision,
            )
        return target

    # Splits

    def _enter_split(self, node: SplitNode) -> Action:
        if self._draft.empty:
            return self._fork(node)
        return self._commit(lambda _: self._fork(node))

    def _fork(self, node: SplitNode) -> Action:
        if self._stopping:
            return self._end(BatchStatus.STOPPED, None)
        self._splitting = node
        branches = branches_of(node, self._history, self._failures, *self._ids)
        return RunSplit(node, branches)

    # Decisions

    def _enter_decision(self, node: DecisionNode) -> Action:
        known = self._history.answer(node.id, self._input_of(node))
        if known is not None:
            return self._decide(node, *known)
        if self._draft.empty:
            return Decide(node, self._preceding, self._split)
        return self._commit(lambda _: self._ask(node))

    def _ask(self, node: DecisionNode) -> Action:
        if self._stopping:
            return self._end(BatchStatus.STOPPED, None)
        return Decide(node, self._preceding, self._split)

    def _input_of(self, node: DecisionNode) -> bytes:
        before = self._preceding
        preceding = None if self._split is None else self._split.digest
        if before is not None:
            preceding = self._history.digest(before)
        return digests.decider_input(
            self._plan.fingerprint,
            node.id,
            node.revision,
            node.input_version,
            self._opened.instance_id,
            self._parameters,
            preceding,
        )

    def _decide(
        self, node: DecisionNode, code: str, reused: DecisionRef | None
    ) -> Action:
        target = self._plan.select(node.id, code)
        if target is None:
            return self._unmapped(node.id, code)
        self._draft.decide(
            node.id,
            TransitionKind.DECIDER,
            code,
            target,
            digest=self._input_of(node),
            reused=reused,
        )
        return self._arrive(target, node.id, None)

    # Ends

    def _arrive(self, target: Target, source: str, failure: Failure | None) -> Action:
        match target:
            case NodeTarget(node):
                return self._enter(node)
            case Terminal.COMPLETE:
                return self._end(BatchStatus.COMPLETED, None)
            case Terminal.STOP:
                return self._end(BatchStatus.STOPPED, None)
            case Terminal.FAIL:
                failure = self._failures.fail_terminal(source, failure)
                return self._end(BatchStatus.FAILED, failure)

    def _unmapped(self, node: str, code: str) -> Action:
        patterns = self._plan.patterns(node)
        failure = self._failures.unmapped(node, code, patterns)
        return self._end(BatchStatus.FAILED, failure)

    def _not_started(self, refusal: StartRefusal) -> Action:
        return self._end(BatchStatus.FAILED, self._failures.not_started(refusal))

    def _end(self, status: BatchStatus, failure: Failure | None) -> Action:
        if not self._heard:
            return self._finish(status, failure)
        end = self._concluding = Conclude(status, exit_of(status), failure)
        return end if self._draft.empty else self._commit(lambda _: end)

    def _finish(
        self,
        status: BatchStatus,
        failure: Failure | None,
        overridden: Overridden | None = None,
    ) -> Action:
        end = self._job_end(status, failure)

        def then(reply: Advanced) -> Action:
            self._ended = True
            if reply.stopped:
                stopped = BatchStatus.STOPPED
                return Finished(stopped, exit_of(stopped), failure, end.counts)
            return Finished(status, end.exit_code, failure, end.counts, overridden)

        return self._commit(then, end=end)

    def _last_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd:
        return self._job_end(status, failure)

    def _job_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd:
        return JobEnd(
            status=status,
            exit_code=exit_of(status),
            counts=self._history.total(),
            failure=failure,
        )
