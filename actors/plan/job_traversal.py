"""The traversal of a whole job: it opens with a row, and ends the execution."""

from collections.abc import Callable

from ...storage.commands import Advanced, JobEnd, NextStep, Opened
from ...storage.model.execution import Failure
from ...storage.model.status import BatchStatus
from .actions import Action, Conclude, Finished
from .attempt import Attempt
from .draft import Draft, next_step
from .failures import FlowFailures
from .history import History
from .plan import Plan, StepNode
from .stepping import exit_of
from .traversal import Traversal


def entry_step(plan: Plan) -> NextStep | None:
    """Give the step that starts with a new instance's first attempt, if one does."""
    node = plan.nodes[plan.entry]
    return next_step(node, None) if isinstance(node, StepNode) else None


class JobTraversal(Traversal):
    """One attempt's way through a plan; it ends with `Finished`.

    Also answers `Conclude`, with `concluded`. An attempt that is `refused` or
    `undecided` need not be begun.

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
        ids = (opened.execution_id, owner_id)
        attempt = Attempt(
            plan=plan,
            history=History(plan.fingerprint, opened.snapshot),
            failures=FlowFailures(new_failure_id),
            ids=ids,
            instance_id=opened.instance_id,
            parameters=parameters,
        )
        super().__init__(attempt, Draft(*ids))
        self._opened = opened
        self._heard = heard
        self._concluding: Conclude | None = None

    def begin(self) -> Action:
        """Give the first action."""
        entry = self._plan.entry
        if self._opened.first is not None:
            node = self._plan.nodes[entry]
            assert isinstance(node, StepNode)
            return self._started(node, self._opened.first)
        return self._enter(entry)

    def concluded(self, failure: Failure | None) -> Action:
        """Take in that the after-listeners were called, and the first failure."""
        end, self._concluding = self._concluding, None
        assert end is not None, "nothing was to be concluded"
        if failure is not None and end.status is BatchStatus.COMPLETED:
            return self._finish(BatchStatus.FAILED, failure)
        return self._finish(end.status, end.failure)

    def state_of(self, node: str) -> str | None:
        """Give the envelope of the state that a node committed last, if any."""
        latest = self._history.latest(node)
        return None if latest is None else latest.context

    def _end(
        self, status: BatchStatus, failure: Failure | None, code: str | None = None
    ) -> Action:
        if not self._heard:
            return self._finish(status, failure)
        end = self._concluding = Conclude(status, exit_of(status), failure)
        return end if self._draft.empty else self._commit(lambda _: end)

    def _finish(self, status: BatchStatus, failure: Failure | None) -> Action:
        end = self._job_end(status, failure)

        def then(reply: Advanced) -> Action:
            self._ended = True
            if reply.stopped:
                stopped = BatchStatus.STOPPED
                return Finished(stopped, exit_of(stopped), failure, end.counts)
            return Finished(status, end.exit_code, failure, end.counts)

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
