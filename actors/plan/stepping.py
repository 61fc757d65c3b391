"""One step after the other: what a traversal, a branch and a partition have in common.

Pure: a step is started, runs, and is closed by the command that goes on; until that
command is known to be durable it can be taken back or sent once more as the last word.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from attrs import define, evolve

from ...storage.commands import (
    Advance,
    Advanced,
    JobEnd,
    NextStep,
    StartLimitReached,
    StepStarted,
)
from ...storage.model.execution import ExitCode, Failure
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    Commit,
    LatestRow,
    OpenStep,
    RunStep,
    StepReport,
    StepResult,
)
from .draft import Draft, next_step
from .failures import StartRefusal, StepNotRestartable
from .history import History
from .plan import StepNode


@define(eq=False)
class Sent:
    """The command under way, and how to go on when it is durable."""

    command: Advance
    then: Callable[[Advanced], Action]
    step: OpenStep | None
    """Whose result it carries."""


class Stepping(ABC):
    """Opens and closes steps, one at a time.

    Args:
        history: What the instance has behind it; it is kept up to date.
        draft: Gathers the next command.
    """

    def __init__(self, history: History, draft: Draft) -> None:
        self.steps: list[StepReport] = []
        """What this attempt came by so far, in order."""
        self._history = history
        self._draft = draft
        self._visit = 1
        """Of the node where it is."""
        self._open: OpenStep | None = None
        self._closing: OpenStep | None = None
        self._sent: Sent | None = None
        self._stopping = False
        self._ended = False

    @property
    def visit(self) -> int:
        """Which visit it is of the node where it is."""
        return self._visit

    # What the actor calls

    @abstractmethod
    def begin(self) -> Action:
        """Give the first action."""

    def stepped(self, result: StepResult) -> Action:
        """Take in what came of the step that ran."""
        step = self._open
        assert step is not None, "a step ended that was not open"
        return self._after(self._close(step, result), result)

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

    def stop(self) -> None:
        """End before the next step begins."""
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
            result = StepResult(
                status=status, exit_code=exit_of(status), failure=failure
            )
            self._close(self._open, result)
        end = self._last_end(status, failure)
        if sent is not None and not unknown:
            return evolve(sent.command, start=None, end=end)
        if end is None and (unknown or self._draft.empty):
            return None
        return self._draft.send(end=end)

    # What the kinds of engines say

    @abstractmethod
    def _after(self, row: LatestRow, result: StepResult) -> Action:
        """Say what follows a step's result."""

    @abstractmethod
    def _not_started(self, refusal: StartRefusal) -> Action:
        """Say what follows when a step may not be started."""

    @abstractmethod
    def _last_end(self, status: BatchStatus, failure: Failure | None) -> JobEnd | None:
        """Give the end of the job, where it is this engine's to write."""

    # Steps

    def _start(self, node: StepNode, latest: LatestRow | None) -> Action:
        # A completed step that runs again begins afresh, like one that never ran.
        continued = latest if latest is not None and not latest.completed else None
        if continued is not None and not node.restartable:
            return self._not_started(StepNotRestartable(node.id, continued.status))
        if self._history.begun.count(node.id, self._visit) >= node.start_limit:
            return self._not_started(StartLimitReached(node.id, node.start_limit))
        inherit = None if continued is None else continued.step_id

        def then(reply: Advanced) -> Action:
            if isinstance(reply.start, StartLimitReached):
                return self._not_started(reply.start)
            assert reply.start is not None
            return self._started(node, reply.start, continued)

        return self._commit(then, start=self._next_step(node, inherit))

    def _next_step(self, node: StepNode, inherit: int | None) -> NextStep:
        return next_step(node, inherit, visit=self._visit)

    def _starting(self, node: StepNode) -> bool:
        """Tell whether listeners come between the step's row and its beginning."""
        return bool(node.listeners)

    def _started(
        self, node: StepNode, row: StepStarted, continued: LatestRow | None = None
    ) -> Action:
        self._history.begin(node.id, self._visit)
        starting = self._starting(node)
        step = OpenStep(
            node,
            row.step_id,
            self._history.begun.add(node.id, self._visit),
            BatchStatus.STARTING if starting else BatchStatus.STARTED,
            0 if starting else 1,
            spent=self._history.begun.spent(node.id, self._visit, row.at),
            visit=self._visit,
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
        report = StepReport(row, result.failure, overridden=result.overridden)
        self.steps.append(report)
        return row

    def _commit(
        self,
        then: Callable[[Advanced], Action],
        start: NextStep | None = None,
        end: JobEnd | None = None,
    ) -> Action:
        command = self._draft.send(start, end)
        step = self._closing if command.finish is not None else None
        self._sent = Sent(command, then, step)
        return Commit(command)

    def _take_back(self) -> None:
        """Open the step again whose command was sent and is known to have failed."""
        sent, self._sent = self._sent, None
        assert sent is not None, "nothing was sent"
        assert sent.step is not None, "no write was sent"
        self._open = sent.step
        self._draft.take_back(sent.command)
        while self.steps.pop().step_id != sent.step.step_id:
            pass


def exit_of(status: BatchStatus) -> str:
    """Give the framework's exit code for a status that something ended with."""
    match status:
        case BatchStatus.COMPLETED | BatchStatus.STOPPED | BatchStatus.UNKNOWN:
            return ExitCode(status.value).value
        case _:
            return ExitCode.FAILED.value
