"""What a launch would do: the traversal engine, fed with successes that nobody had."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import count

from attrs import define, field, frozen

from ...storage.commands import Advance, Advanced, Opened, StepStarted
from ...storage.model.execution import (
    ExitCode,
    StepExecution,
    Stop,
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
from .branch import BranchTraversal
from .plan import Plan, target_text
from .stepping import Stepping
from .traversal import Traversal


class Verdict(StrEnum):
    """What a launch would do with a node."""

    RUN = "run"
    REUSE = "reuse"
    KEEP = "keep"
    """A decision whose answer is kept."""
    ASK = "ask"
    """A decision that is asked: from here on nothing is known."""
    REPEAT = "repeat"
    """A node that would be run once more: how often, nobody knows."""


@frozen
class PreviewedNode:
    """One node on the way, and why it is treated so."""

    node: str
    verdict: Verdict
    why: str
    visit: int = 1


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
    """How the job would end; None where a decision has to be asked first, and where the
    flow goes round."""
    why: str | None
    """Why it would not complete."""
    continuations: tuple[tuple[str, str], ...]
    """(answers, where they lead) of the decision that would be asked."""


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
    ids: Iterator[int] = field(factory=lambda: count(1))
    why: str | None = None
    """Where a stop lets the next launch go on."""
    ran: set[str] = field(factory=set)
    """Nodes that would be run."""
    latest: Mapping[tuple[str, int], StepExecution] = field(init=False)

    @latest.default
    def _by_visit(self) -> Mapping[tuple[str, int], StepExecution]:
        return {(one.node, one.visit): one for one in self.opened.snapshot.steps}

    def result(self) -> Preview:
        engine = Traversal(self.plan, self.opened, 0, self.parameters, lambda: 1)
        action = engine.begin()
        while not isinstance(action, Decide | Finished) and not self._repeats(action):
            if isinstance(action, RunSplit):
                action = engine.joined([self._branch(one) for one in action.branches])
            elif isinstance(action, PlanPartitions):
                action = engine.planned(_any_plan(action.node.partition_count or 1))
            elif isinstance(action, RunPartitions):
                action = engine.partitioned(self._partitions(action))
            else:
                action = self._followed(engine, action)
        ends = why = None
        continuations: tuple[tuple[str, str], ...] = ()
        if isinstance(action, Finished):
            ends = action.status
            failure = action.failure
            why = self.why
            if failure is not None:
                why = failure.message or failure.code
        elif isinstance(action, Decide):
            reason = "it has no answer yet for what it would be asked about"
            self._add(action.node.id, Verdict.ASK, reason, action.visit)
            continuations = tuple(
                (one.pattern, target_text(one.target))
                for one in self.plan.transitions[action.node.id]
            )
        return Preview(
            job=self.plan.job,
            attempt=self.opened.attempt,
            restart_of=self.opened.restart_of,
            took_over=self.opened.took_over,
            nodes=tuple(self.nodes),
            ends=ends,
            why=why,
            continuations=continuations,
        )

    def _add(self, node: str, verdict: Verdict, why: str, visit: int) -> None:
        self.nodes.append(PreviewedNode(node, verdict, why, visit))

    def _repeats(self, action: Action) -> bool:
        """Tell whether a node would be run that has been run before, in a loop."""
        match action:
            case RunStep(step):
                node, visit = step.node.id, step.visit
            case RunSplit(split, branches):
                node, visit = split.id, branches[0].visit
            case RunPartitions(divided, _, _, _, _, visit):
                node = divided.id
            case _:
                return False
        if node in self.ran:
            reason = "the flow goes round, and nobody knows how often"
            self._add(node, Verdict.REPEAT, reason, visit)
            return True
        self.ran.add(node)
        return False

    def _branch(self, engine: BranchTraversal) -> LineResult:
        action = engine.begin()
        while not isinstance(action, Ended):
            action = self._followed(engine, action)
        for step in action.result.steps:
            if step.reused:
                why = "it has completed"
                self._add(step.node, Verdict.REUSE, why, step.visit)
        return action.result

    def _partitions(self, action: RunPartitions) -> list[LineResult]:
        node, left = action.node, len(action.partitions)
        why = self._why(node.id, action.visit)
        snapshot = self.opened.snapshot
        every = len(snapshot.partitions_of(node.id, action.visit)) or left
        if left < every:
            why = f"{every - left} of its {every} partitions have completed"
        self._add(node.id, Verdict.RUN, why, action.visit)
        code = ExitCode.COMPLETED
        return [LineResult(status=BatchStatus.COMPLETED, exit_code=code)] * left

    def _followed(self, engine: Stepping, action: Action) -> Action:
        match action:
            case RunStep(step):
                node, visit = step.node.id, step.visit
                self._add(node, Verdict.RUN, self._why(node, visit), visit)
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
        folded = None if command.finish is None else command.finish.decision
        for made in (folded, *command.decisions):
            if made is not None and isinstance(made.target, Stop):
                self.why = f"the next launch goes on at {made.target.resume_at!r}"
        for one in command.decisions:
            if one.kind is TransitionKind.COMPLETED_STEP_REUSE:
                why = self._reused(one.source, one.visit)
                self._add(one.source, Verdict.REUSE, why, one.visit)
            elif one.kind is TransitionKind.DECIDER:
                why = f"it answered {one.outcome} to the same input"
                self._add(one.source, Verdict.KEEP, why, one.visit)

    def _reused(self, node: str, visit: int) -> str:
        latest = self.latest.get((node, visit))
        if latest is None or latest.status is BatchStatus.COMPLETED:
            return "it has completed"
        return f"it {latest.status} before, and the job stopped there"

    def _why(self, node: str, visit: int) -> str:
        latest = self.latest.get((node, visit))
        if latest is None:
            return "it has not run yet"
        if latest.status is BatchStatus.COMPLETED:
            return "it runs again in every attempt"
        if latest.counts.committed:
            return (
                f"it goes on after {latest.counts.read:,} items, {latest.status} before"
            )
        return f"it {latest.status} before"


def _any_plan(count: int) -> list[NewPartition]:
    return [NewPartition(f"{number:04}", "{}") for number in range(count)]
