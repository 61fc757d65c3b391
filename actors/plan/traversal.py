"""The traversal engine: which step, decision or end comes next, and what is committed.

Pure: it knows the plan and the instance's history, is fed outcomes, and answers with
the next action. A step's result is durable before its transition, and a transition
before its target's code runs; result, transition and the next step's row travel in one
command wherever that order allows it.
"""

from collections.abc import Callable

from attrs import define, evolve

from ...storage.commands import (
    Advance,
    Advanced,
    JobEnd,
    NextStep,
    Opened,
    StartLimitReached,
    StepStarted,
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
    Commit,
    Decide,
    Finished,
    LatestRow,
    OpenStep,
    RunStep,
    StepReport,
    StepResult,
)
from .draft import Draft, next_step
from .failures import FlowFailures
from .history import History
from .plan import DecisionNode, Plan, StepNode


def entry_step(plan: Plan) -> NextStep | None:
    """Give the step that starts with a new instance's first attempt, if one does."""
    node = plan.nodes[plan.entry]
    return next_step(node, None) if isinstance(node, StepNode) else None


@define(eq=False)
class _Sent:
    """The command under way, and how to go on when it is durable."""

    command: Advance
    then: Callable[[Advanced], Action]
    step: OpenStep | None
    """Whose result it carries."""


class Traversal:
    """One attempt's way through a plan.

    Call `begin` once, then answer every action with the method that belongs to it
    (`stepped`; `decided`, `undecided` or `refused`; `committed` or `unwritten`) until
    it is `Finished`.

    Args:
        plan: The graph.
        opened: The reply that began the attempt.
        owner_id: Fences every command.
        parameters: The projection digest of the launch parameters.
        new_failure_id: Draws ids for failures.
    """

    def __init__(
        self,
        plan: Plan,
        opened: Opened,
        owner_id: int,
        parameters: bytes,
        new_failure_id: Callable[[], int],
    ) -> None:
        self.steps: list[StepReport] = []
        """What this attempt came by so far, in order."""
        self._plan = plan
        self._opened = opened
        self._parameters = parameters
        self._failures = FlowFailures(new_failure_id)
        self._history = History(plan.fingerprint, opened.snapshot)
        self._draft = Draft(opened.execution_id, owner_id)
        self._preceding: LatestRow | None = None
        self._open: OpenStep | None = None
        self._closing: OpenStep | None = None
        self._sent: _Sent | None = None
        self._stopping = False
        self._ended = False

    # What the actor calls

    def begin(self) -> Action:
        """Give the first action."""
        entry = self._plan.entry
        if self._opened.first is not None:
            node = self._plan.nodes[entry]
            assert isinstance(node, StepNode)
            return self._started(node, self._opened.first)
        return self._enter(entry)

    def stepped(self, result: StepResult) -> Action:
        """Take in what came of the step that ran."""
        step = self._open
        assert step is not None, "a step ended that was not open"
        row = self._close(step, result)
        if result.status in (BatchStatus.UNKNOWN, BatchStatus.STOPPED):
            return self._end(result.status, result.failure)
        node = row.node
        self._preceding = row
        target = self._plan.select(node, result.exit_code)
        if target is None:
            return self._unmapped(node, result.exit_code)
        self._draft.fold(target)
        return self._arrive(target, node, result.failure)

    def decided(self, node: DecisionNode, code: str) -> Action:
        """Take in a decider's answer."""
        return self._decide(node, code, None)

    def refused(self, failure: Failure) -> Action:
        """Take in that a decider failed: the job fails, no transition is taken."""
        return self._end(BatchStatus.FAILED, failure)

    def undecided(self) -> Action:
        """Take in that a stop kept a decider from answering."""
        return self._end(BatchStatus.STOPPED, None)

    def committed(self, reply: Advanced) -> Action:
        """Take in that the command is durable."""
        sent = self._sent
        assert sent is not None, "nothing was to be committed"
        self._sent = None
        return sent.then(reply)

    def unwritten(self, result: StepResult) -> Action:
        """Take in that the step's enlisted write raised: its command was refused.

        The step is closed again, with another *result* and without its rows.
        """
        self._take_back()
        return self.stepped(result)

    def _take_back(self) -> None:
        """Open the step again whose command was sent and is known to have failed."""
        sent, self._sent = self._sent, None
        assert sent is not None, "nothing was sent"
        assert sent.step is not None, "no write was sent"
        self._open = sent.step
        self._draft.take_back(sent.command)
        while self.steps.pop().step_id != sent.step.step_id:
            pass

    def stop(self) -> None:
        """End the job before the next node begins."""
        self._stopping = True

    def abort(self, status: BatchStatus, failure: Failure | None) -> Advance | None:
        """Give the last command when the actor cannot go on; None when all is written.

        A command that was sent and not carried out is repeated without its start; a
        step whose rows should have been written with it is closed with *status*
        instead, because without them its result would be a lie. When the outcome is
        unknown, only the job's end is written.

        Args:
            status: STOPPED or FAILED, for the open step and the job; UNKNOWN, for the
                job alone.
            failure: Why, for FAILED and UNKNOWN.
        """
        if self._ended:
            return None
        self._ended = True
        sent = self._sent
        unknown = status is BatchStatus.UNKNOWN
        if sent is not None and sent.command.write is not None and not unknown:
            self._take_back()
            sent = None
        if self._open is not None and not unknown:
            code = _exit_of(status)
            result = StepResult(status=status, exit_code=code, failure=failure)
            self._close(self._open, result)
        end = self._job_end(status, failure)
        if sent is None or unknown:
            return self._draft.send(end=end)
        return evolve(sent.command, start=None, end=end)

    def state_of(self, node: str) -> str | None:
        """Give the envelope of the state that a node committed last, if any."""
        latest = self._history.latest(node)
        return None if latest is None else latest.context

    # Steps

    def _enter(self, node_id: str) -> Action:
        while not self._stopping:
            node = self._plan.nodes[node_id]
            if isinstance(node, DecisionNode):
                return self._enter_decision(node)
            assert isinstance(node, StepNode)
            latest = self._history.latest(node_id)
            reusable = latest is not None and latest.completed
            if latest is None or not reusable or node.allow_start_if_complete:
                return self._start(node, latest)
            target = self._reuse(node, latest)
            if target is None:
                return self._unmapped(node.id, latest.exit_code)
            if isinstance(target, Terminal):
                return self._arrive(target, node.id, None)
            node_id = target.node
        return self._end(BatchStatus.STOPPED, None)

    def _start(self, node: StepNode, latest: LatestRow | None) -> Action:
        if self._history.starts(node.id) >= node.start_limit:
            return self._limited(StartLimitReached(node.id, node.start_limit))
        # A completed step that runs again begins afresh, like one that never ran.
        continued = latest if latest is not None and not latest.completed else None
        inherit = None if continued is None else continued.step_id

        def then(reply: Advanced) -> Action:
            if isinstance(reply.start, StartLimitReached):
                return self._limited(reply.start)
            assert reply.start is not None
            return self._started(node, reply.start, continued)

        return self._commit(then, start=next_step(node, inherit))

    def _started(
        self, node: StepNode, row: StepStarted, continued: LatestRow | None = None
    ) -> Action:
        step = OpenStep(
            node,
            row.step_id,
            self._history.count_start(node.id),
            BatchStatus.STARTING if node.listeners else BatchStatus.STARTED,
            0 if node.listeners else 1,
        )
        if continued is not None:
            step.counts = continued.counts
            step.checkpoint = continued.checkpoint
            step.context = continued.context
        self._open = step
        return RunStep(step)

    def _close(self, step: OpenStep, result: StepResult) -> LatestRow:
        self._draft.finish(step, result)
        row = self._history.close(step, result)
        self._open, self._closing = None, step
        self.steps.append(StepReport(row, result.failure))
        return row

    def _reuse(self, node: StepNode, latest: LatestRow) -> Target | None:
        self._preceding = latest
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

    # Decisions

    def _enter_decision(self, node: DecisionNode) -> Action:
        known = self._history.answer(node.id, self._input_of(node))
        if known is not None:
            return self._decide(node, *known)
        if self._draft.empty:
            return Decide(node, self._preceding)
        return self._commit(lambda _: self._ask(node))

    def _ask(self, node: DecisionNode) -> Action:
        if self._stopping:
            return self._end(BatchStatus.STOPPED, None)
        return Decide(node, self._preceding)

    def _input_of(self, node: DecisionNode) -> bytes:
        before = self._preceding
        return digests.decider_input(
            self._plan.fingerprint,
            node.id,
            node.revision,
            node.input_version,
            self._opened.instance_id,
            self._parameters,
            None if before is None else self._history.digest(before),
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

    def _limited(self, refusal: StartLimitReached) -> Action:
        return self._end(BatchStatus.FAILED, self._failures.limited(refusal))

    def _end(self, status: BatchStatus, failure: Failure | None) -> Action:
        end = self._job_end(status, failure)

        def then(reply: Advanced) -> Action:
            self._ended = True
            if reply.stopped:
                stopped = BatchStatus.STOPPED
                return Finished(stopped, _exit_of(stopped), failure, end.counts)
            return Finished(status, end.exit_code, failure, end.counts)

        return self._commit(then, end=end)

    def _job_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd:
        return JobEnd(
            status=status,
            exit_code=_exit_of(status),
            counts=self._history.total(),
            failure=failure,
        )

    def _commit(
        self,
        then: Callable[[Advanced], Action],
        start: NextStep | None = None,
        end: JobEnd | None = None,
    ) -> Commit:
        command = self._draft.send(start, end)
        step = self._closing if command.finish is not None else None
        self._sent = _Sent(command, then, step)
        return Commit(command)


def _exit_of(status: BatchStatus) -> str:
    match status:
        case BatchStatus.COMPLETED | BatchStatus.STOPPED | BatchStatus.UNKNOWN:
            return ExitCode(status.value).value
        case _:
            return ExitCode.FAILED.value
