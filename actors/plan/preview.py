"""What a launch would do: the traversal engine, fed with successes that nobody had."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import count

from attrs import define, field, frozen

from ...storage.commands import Advance, Advanced, Opened, StepStarted
from ...storage.model.execution import (
    ExitCode,
    NodeTarget,
    StepExecution,
    Target,
    TransitionKind,
)
from ...storage.model.partition import NewPartition
from ...storage.model.status import BatchStatus
from .actions import (
    Action,
    Commit,
    Decide,
    Ended,
    Finished,
    LineResult,
    PlanPartitions,
    RunPartitions,
    RunSplit,
    RunStep,
    StepResult,
)
from .job_traversal import JobTraversal
from .plan import DecisionNode, Plan
from .stepping import Stepping
from .traversal import BranchTraversal, Traversal


class Verdict(StrEnum):
    """What a launch would do with a node."""

    RUN = "run"
    REUSE = "reuse"
    KEEP = "keep"
    """A decision whose answer is kept."""
    ASK = "ask"
    """A decision that is asked: from here on nothing is known."""


@frozen
class PreviewedNode:
    """One node on the way, and why it is treated so."""

    node: str
    verdict: Verdict
    why: str


@frozen(kw_only=True)
class Preview:
    """What a launch would do if every step that it runs succeeded."""

    job: str
    attempt: int
    restart_of: int | None
    took_over: int | None
    nodes: tuple[PreviewedNode, ...]
    """In the order in which the attempt would come by."""
    ends: BatchStatus | None
    """How the job would end; None where a decision has to be asked first."""
    why: str | None
    """Why it would not complete."""
    continuations: tuple[tuple[str, str, str], ...]
    """(decision, answers, where they lead) of the decisions that would be asked; there
    may be one in each branch of a split."""


def preview_of(plan: Plan, opened: Opened, parameters: bytes) -> Preview:
    """Follow the flow through an instance's history.

    Args:
        plan: The graph.
        opened: What an opening would reply; its history is what counts.
        parameters: The projection digest of the launch parameters.
    """
    return _Walk(plan, opened, parameters).result()


@define
class _Walk:
    plan: Plan
    opened: Opened
    parameters: bytes
    nodes: list[PreviewedNode] = field(factory=list)
    continuations: list[tuple[str, str, str]] = field(factory=list)
    ids: Iterator[int] = field(factory=lambda: count(1))

    def result(self) -> Preview:
        engine = JobTraversal(self.plan, self.opened, 0, self.parameters, lambda: 1)
        end = self._end_of(engine)
        ends = why = None
        if isinstance(end, Finished):
            ends, failure = end.status, end.failure
            why = None if failure is None else failure.message or failure.code
        return Preview(
            job=self.plan.job,
            attempt=self.opened.attempt,
            restart_of=self.opened.restart_of,
            took_over=self.opened.took_over,
            nodes=tuple(self.nodes),
            ends=ends,
            why=why,
            continuations=tuple(self.continuations),
        )

    def _end_of(self, engine: Traversal) -> Finished | Ended | None:
        """Go to the end; None where a decision has to be asked first."""
        action = engine.begin()
        while not isinstance(action, Finished | Ended):
            match action:
                case Decide(node):
                    self._ask(node)
                    return None
                case RunSplit(branches=branches):
                    ends = list(map(self._branch, branches))
                    results = [one for one in ends if one is not None]
                    if len(results) < len(ends):
                        return None
                    action = engine.joined(results)
                case PlanPartitions(node):
                    action = engine.planned(_any_plan(node.partition_count or 1))
                case RunPartitions():
                    action = engine.partitioned(self._partitions(action))
                case _:
                    action = self._followed(engine, action)
        return action

    def _ask(self, node: DecisionNode) -> None:
        reason = "it has no answer yet for what it would be asked about"
        self.nodes.append(PreviewedNode(node.id, Verdict.ASK, reason))
        self.continuations += [
            (node.id, one.pattern, _name(one.target))
            for one in self.plan.rules[node.id]
        ]

    def _branch(self, engine: BranchTraversal) -> LineResult | None:
        before = len(self.nodes)
        end = self._end_of(engine)
        if end is None:
            return None
        assert isinstance(end, Ended)
        if not engine.records:
            # No command tells of the steps that it reuses.
            ran = {one.node: one for one in self.nodes[before:]}
            self.nodes[before:] = [
                ran.get(step.node)
                or PreviewedNode(step.node, Verdict.REUSE, "it has completed")
                for step in end.result.steps
            ]
        return end.result

    def _partitions(self, action: RunPartitions) -> list[LineResult]:
        node, left = action.node, len(action.partitions)
        why = self._why(node.id)
        every = len(self.opened.snapshot.partitions_of(node.id)) or left
        if left < every:
            why = f"{every - left} of its {every} partitions have completed"
        self.nodes.append(PreviewedNode(node.id, Verdict.RUN, why))
        code = ExitCode.COMPLETED
        return [LineResult(status=BatchStatus.COMPLETED, exit_code=code)] * left

    def _followed(self, engine: Stepping, action: Action) -> Action:
        match action:
            case RunStep(step):
                node = step.node.id
                self.nodes.append(PreviewedNode(node, Verdict.RUN, self._why(node)))
                return engine.stepped(
                    StepResult(
                        status=BatchStatus.COMPLETED, exit_code=ExitCode.COMPLETED
                    )
                )
            case Commit(command):
                self._note(command)
                started = None
                if command.start is not None:
                    started = StepStarted(next(self.ids), self.opened.at)
                return engine.committed(Advanced(self.opened.at, started))
        raise AssertionError(f"{action} is not followed")

    def _note(self, command: Advance) -> None:
        for one in command.decisions:
            if one.kind is TransitionKind.COMPLETED_STEP_REUSE:
                why = "it has completed"
                self.nodes.append(PreviewedNode(one.source, Verdict.REUSE, why))
            elif one.kind is TransitionKind.DECIDER:
                why = f"it answered {one.outcome} to the same input"
                self.nodes.append(PreviewedNode(one.source, Verdict.KEEP, why))

    def _why(self, node: str) -> str:
        latest = self._latest(node)
        if latest is None:
            return "it has not run yet"
        if latest.status is BatchStatus.COMPLETED:
            return "it runs again in every attempt"
        if latest.counts.committed:
            return (
                f"it goes on after {latest.counts.read:,} items, {latest.status} before"
            )
        return f"it {latest.status} before"

    def _latest(self, node: str) -> StepExecution | None:
        for step in self.opened.snapshot.steps:
            if step.node == node:
                return step
        return None


def _any_plan(count: int) -> list[NewPartition]:
    return [NewPartition(f"{number:04}", "{}") for number in range(count)]


def _name(target: Target) -> str:
    return target.node if isinstance(target, NodeTarget) else target.name
