"""The traversal of a whole job: it opens with a row, and ends the execution."""

from collections.abc import Callable

from attrs import evolve

from ...storage.commands import Advanced, JobEnd, NextStep, Opened
from ...storage.model.execution import Failure, NodeTarget
from ...storage.model.status import BatchStatus
from .actions import Action, Conclude, Finished, Overridden, StepResult
from .attempt import Attempt
from .branch_traversal import Forking
from .draft import Draft, next_step
from .failures import FlowFailures, VisitLimitReached
from .history import History
from .plan import Plan, PlanNode, StepNode, visit_limit_of
from .stepping import exit_of
from .visits import Visits


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


class JobTraversal(Forking):
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
        self._expired: Failure | None = None
        self._visits = Visits()
        self._brief = 0
        """How many of its steps have left out their states."""
        since = opened.snapshot.since
        self.spent = 0 if since is None else max(0, opened.at - since)
        """Microseconds that had passed in attempts that died, when this one began."""

    def begin(self) -> Action:
        """Give the first action."""
        entry = self._plan.entry
        if self._opened.first is not None:
            node = self._plan.nodes[entry]
            assert isinstance(node, StepNode)
            self._visits.come_to(entry)
            self._visits.settle()
            return self._started(node, self._opened.first)
        return self._go(NodeTarget(entry))

    def refused(self, failure: Failure) -> Action:
        """Take in that a decider or a job listener failed: so does the job.

        The step of a job of one step, whose row was there before the listeners, fails
        with it, and the after-listeners are not asked for.
        """
        if self._plan.one_step:
            self._heard = False
        if self._open is None:
            return super().refused(failure)
        status = BatchStatus.FAILED
        return self.stepped(
            StepResult(status=status, exit_code=exit_of(status), failure=failure)
        )

    def _starting(self, node: StepNode) -> bool:
        return bool(node.listeners) or (self._heard and self._plan.one_step)

    def _next_step(self, node: StepNode, inherit: int | None) -> NextStep:
        step = super()._next_step(node, inherit)
        heard = self._heard and self._plan.one_step
        return evolve(step, starting=True) if heard else step

    def expire(self, failure: Failure) -> None:
        """End before the next node begins, and as FAILED: the job's time is over."""
        self._expired = failure
        self.stop()

    def concluded(self, failure: Failure | None) -> Action:
        """Take in that the after-listeners were called, and the first failure."""
        end, self._concluding = self._concluding, None
        assert end is not None, "nothing was to be concluded"
        if failure is not None and end.status is BatchStatus.COMPLETED:
            before = Overridden(end.status, end.exit_code, end.failure)
            return self._finish(BatchStatus.FAILED, failure, before)
        return self._finish(end.status, end.failure)

    def state_of(self, node: str) -> str | None:
        """Give the envelope of the state that a node committed last, if any."""
        last = self._history.last(node)
        return None if last is None else last.context

    def committed(self, reply: Advanced) -> Action:
        """Take in that the command is durable."""
        self._visits.settle()
        if self._visits.repeated:
            self._shorten()
        return super().committed(reply)

    def _shorten(self) -> None:
        """Leave out what only the first visits are reported with."""
        # Not before: what is made of them, as the digest of a split, is of all they hold.
        self.steps[self._brief :] = [one.brief() for one in self.steps[self._brief :]]
        self._brief = len(self.steps)

    def _take_back(self) -> None:
        self._visits.take_back()
        super()._take_back()

    def _come_to(self, node: PlanNode) -> Action | None:
        limit = visit_limit_of(node)
        if limit is not None and self._visits.next_of(node.id) > limit:
            failure = self._failures.not_started(VisitLimitReached(node.id, limit))
            return self._end(BatchStatus.FAILED, failure)
        self._visit = self._visits.come_to(node.id)
        return None

    def _stopped(
        self, failure: Failure | None = None, code: str | None = None
    ) -> Action:
        if self._expired is not None:
            return self._end(BatchStatus.FAILED, self._expired)
        return super()._stopped(failure, code)

    def _end(
        self, status: BatchStatus, failure: Failure | None, code: str | None = None
    ) -> Action:
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
