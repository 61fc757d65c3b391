"""The part of a traversal that divides a step: its plan, its workers, its one result.

The planner is asked before the manager's row is there, so that row and plan are made by
one command: no manager is ever without a plan that a restart could copy.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from ...storage.commands import Advanced, NextStep, StartLimitReached
from ...storage.model.execution import NO_COUNTS, Counts, ExitCode, Failure
from ...storage.model.partition import CopiedPlan, NewPartition, PartitionExecution
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    LatestRow,
    LineResult,
    OpenStep,
    PartitionReport,
    PlanPartitions,
    RunPartitions,
    StepResult,
)
from .draft import Draft, next_step
from .failures import FlowFailures
from .history import History
from .partitioned import (
    PartitionTraversal,
    aggregated,
    copied,
    engines_of,
    manager_of,
    planned,
    reported,
)
from .plan import PartitionedNode
from .stepping import Stepping


@frozen
class _Work:
    """A partitioned step under way."""

    partitions: tuple[PartitionExecution, ...]
    engines: tuple[PartitionTraversal, ...]

    @property
    def counts(self) -> Counts:
        """Sum up what was done so far."""
        ended = [one.steps[-1].counts for one in self.engines if one.steps]
        done = [
            one.counts for one in self.partitions if one.status is BatchStatus.COMPLETED
        ]
        return sum(ended + done, NO_COUNTS)


class Dividing(Stepping):
    """Divides steps into partitions.

    Args:
        history: What the instance has behind it.
        failures: Makes the failures of routing.
        ids: Of the execution and its owner.
        draft: Gathers the next command.
    """

    def __init__(
        self,
        history: History,
        failures: FlowFailures,
        ids: tuple[int, int],
        draft: Draft,
    ) -> None:
        super().__init__(history, draft)
        self.partitions: list[PartitionReport] = []
        """Of all partitioned steps so far, each in the order of its keys."""
        self._failures = failures
        self._ids = ids
        self._planning: PartitionedNode | None = None
        self._work: _Work | None = None

    # What the actor calls

    def planned(self, entries: Sequence[NewPartition]) -> Action:
        """Take in what the planner of a partitioned step returned."""
        node, self._planning = self._planning, None
        assert node is not None, "nothing was to be planned"
        start = evolve(self._managing(node), plan=tuple(entries) or None)
        return self._manage(
            node, start, lambda key: planned(node, key, entries, self._visit)
        )

    def unplanned(self, failure: Failure) -> Action:
        """Take in that the planner failed: so does its step, and routes by that."""
        node, self._planning = self._planning, None
        assert node is not None, "nothing was to be planned"
        manager = manager_of(node)

        def then(reply: Advanced) -> Action:
            if isinstance(reply.start, StartLimitReached):
                return self._not_started(reply.start)
            assert reply.start is not None
            self._started(manager, reply.start)
            code = ExitCode.FAILED
            return self.stepped(
                StepResult(status=BatchStatus.FAILED, exit_code=code, failure=failure)
            )

        return self._commit(then, start=self._managing(node))

    @abstractmethod
    def undecided(self) -> Action:
        """Take in that a stop kept the planner from answering."""

    def partitioned(
        self, results: Sequence[LineResult], expired: Failure | None = None
    ) -> Action:
        """Take in what came of all workers, in the order of their engines.

        Args:
            results: Of the workers.
            expired: Why the step failed if they were stopped: its time was over.
        """
        work, self._work = self._work, None
        assert work is not None, "no partitions were to be run"
        reports = reported(work.partitions, work.engines, results)
        self.partitions.extend(reports)
        one = aggregated(reports)
        assert self._open is not None, "the manager is not open"
        self._open.counts = one.counts
        if expired is not None and one.status is BatchStatus.STOPPED:
            return self.stepped(
                StepResult(
                    status=BatchStatus.FAILED,
                    exit_code=ExitCode.FAILED,
                    failure=expired,
                )
            )
        return self.stepped(
            StepResult(status=one.status, exit_code=one.exit_code, failure=one.failure)
        )

    # What comes next

    def _divide(self, node: PartitionedNode, latest: LatestRow | None) -> Action:
        if self._history.begun.count(node.id, self._visit) >= node.start_limit:
            return self._not_started(StartLimitReached(node.id, node.start_limit))
        # A completed step that runs again is planned again.
        done = latest is not None and latest.completed
        plan = () if done else self._history.plan(node.id, self._visit)
        if plan:
            source = CopiedPlan(plan[0].manager_id)
            start = evolve(self._managing(node), plan=source)
            return self._manage(node, start, lambda key: copied(key, plan))
        if self._draft.empty:
            return self._ask_planner(node)
        return self._commit(lambda _: self._ask_planner(node))

    def _managing(self, node: PartitionedNode) -> NextStep:
        return next_step(manager_of(node), None, visit=self._visit)

    def _ask_planner(self, node: PartitionedNode) -> Action:
        if self._stopping:
            return self.undecided()
        self._planning = node
        return PlanPartitions(node, self._visit)

    def _manage(
        self,
        node: PartitionedNode,
        start: NextStep,
        made: Callable[[int], tuple[PartitionExecution, ...]],
    ) -> Action:
        """Start the manager together with its plan, then run what is not completed."""

        def then(reply: Advanced) -> Action:
            if isinstance(reply.start, StartLimitReached):
                return self._not_started(reply.start)
            assert reply.start is not None
            self._started(manager_of(node), reply.start)
            partitions = made(reply.start.step_id)
            engines = engines_of(
                node, partitions, self._history, self._failures, self._ids
            )
            work = self._work = _Work(partitions, engines)
            spent = self._history.begun.spent(node.id, self._visit, reply.start.at)
            total = len(partitions)
            return RunPartitions(
                node,
                engines,
                reply.start.step_id,
                total,
                work.counts,
                spent,
                self._visit,
            )

        return self._commit(then, start=start)

    def _close(self, step: OpenStep, result: StepResult) -> LatestRow:
        if self._work is not None:
            # The way out of a manager whose workers were cancelled.
            step.counts = self._work.counts
            self._work = None
        return super()._close(step, result)
