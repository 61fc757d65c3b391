"""What a launch would do: the traversal engine, fed with successes that nobody had."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import count

from attrs import define, evolve, field, frozen

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
    StepReport,
    StepResult,
)
from .branch_traversal import BranchTraversal
from .definition import FailurePolicy
from .job_traversal import JobTraversal
from .partitioned import PartitionTraversal
from .plan import (
    DecisionNode,
    JobDeclaration,
    Plan,
    SplitNode,
    nodes_inside,
    target_text,
)
from .stepping import Stepping
from .traversal import Traversal

_SUCCESS = StepResult(status=BatchStatus.COMPLETED, exit_code=ExitCode.COMPLETED)


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
    why: str | None = None
    """Where a stop lets the next launch go on."""
    ran: set[str] = field(factory=set)
    """Nodes that would be run."""
    walked: set[tuple[str, int]] = field(factory=set)
    """Joins and their visits, of splits whose branches are walked through."""
    latest: Mapping[tuple[str, int], StepExecution] = field(init=False)

    @latest.default
    def _by_visit(self) -> Mapping[tuple[str, int], StepExecution]:
        return {(one.node, one.visit): one for one in self.opened.snapshot.steps}

    def result(self) -> Preview:
        engine = JobTraversal(self.plan, self.opened, 0, self.parameters, lambda: 1)
        end = self._end_of(engine)
        ends = why = None
        if isinstance(end, Finished):
            ends, failure = end.status, end.failure
            if ends is BatchStatus.STOPPED:
                why = self.why
            if failure is not None:
                why = failure.message or failure.code
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

    def _add(self, node: str, verdict: Verdict, why: str, visit: int) -> None:
        self.nodes.append(PreviewedNode(node, verdict, why, visit))

    def _repeats(self, action: Action) -> bool:
        """Tell whether a node would be run that has been run before, in a loop."""
        match action:
            case RunStep(step):
                node, visit = step.node.id, step.visit
            case RunSplit(split, branches):
                node, visit = split.id, branches[0].visit
            case RunPartitions(divided, visit=visit):
                node = divided.id
            case _:
                return False
        if node in self.ran:
            reason = "the flow goes round, and nobody knows how often"
            self._add(node, Verdict.REPEAT, reason, visit)
            return True
        self.ran.add(node)
        return False

    def _end_of(self, engine: Traversal) -> Finished | Ended | None:
        """Go to the end; None where nobody knows how it goes on."""
        action = engine.begin()
        while not isinstance(action, Finished | Ended):
            if self._repeats(action):
                return None
            match action:
                case Decide(node, visit=visit):
                    self._ask(node, visit)
                    return None
                case RunSplit(split, branches):
                    self.walked.add((split.join, branches[0].visit))
                    results = self._branches(split, branches)
                    if results is None:
                        return None
                    action = engine.joined(results)
                case PlanPartitions(node):
                    action = engine.planned(_any_plan(node.partition_count or 1))
                case RunPartitions():
                    action = engine.partitioned(self._partitions(action))
                case _:
                    action = self._followed(engine, action)
        return action

    def _ask(self, node: DecisionNode, visit: int) -> None:
        reason = "it has no answer yet for what it would be asked about"
        self._add(node.id, Verdict.ASK, reason, visit)
        self.continuations += [
            (node.id, one.pattern, target_text(one.target))
            for one in self.plan.rules[node.id]
        ]

    def _branches(
        self, split: SplitNode, branches: Sequence[BranchTraversal]
    ) -> list[LineResult] | None:
        """Go through all branches; None where nobody knows what they come to."""
        ends: list[LineResult] = []
        others: list[int] = []
        for branch in branches:
            before = len(self.nodes)
            end = self._branch(branch)
            if end is not None:
                ends.append(end)
            if end is None or end.status is not BatchStatus.FAILED:
                others += range(before, len(self.nodes))
        if all(one.status is not BatchStatus.FAILED for one in ends):
            return ends if len(ends) == len(branches) else None
        # One that is bound to fail settles it, whatever the others come to.
        if split.failure_policy is FailurePolicy.CANCEL_SIBLINGS:
            for at in others:
                self.nodes[at] = _cancelled(self.nodes[at])
        return ends

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
                or PreviewedNode(
                    step.node, Verdict.REUSE, "it has completed", step.visit
                )
                for step in end.result.steps
            ]
        return end.result

    def _partitions(self, action: RunPartitions) -> list[LineResult]:
        node, left = action.node, len(action.partitions)
        why = self._why(node.id, action.visit)
        if action.total > left:
            why = (
                f"{action.total - left} of its {action.total} partitions have completed"
            )
        results = [self._worked(one) for one in action.partitions]
        barred = sum(one.status is BatchStatus.FAILED for one in results)
        if barred:
            why = f"{why}, {barred} must not run again"
        self._add(node.id, Verdict.RUN, why, action.visit)
        return results

    def _worked(self, engine: PartitionTraversal) -> LineResult:
        action = engine.begin()
        while not isinstance(action, Ended):
            if isinstance(action, RunStep):
                action = engine.stepped(_SUCCESS)
            else:
                assert isinstance(action, Commit)
                action = engine.committed(self._reply(action.command))
        return action.result

    def _followed(self, engine: Stepping, action: Action) -> Action:
        match action:
            case RunStep(step):
                node, visit = step.node.id, step.visit
                why = self._why(node, visit)
                if isinstance(step.node.declaration, JobDeclaration):
                    why = f"{why}; it runs job {step.node.declaration.job}"
                self._add(node, Verdict.RUN, why, visit)
                return engine.stepped(_SUCCESS)
            case Commit(command):
                self._note(command, engine.steps)
                return engine.committed(self._reply(command))
        raise AssertionError(f"{action} is not followed")

    def _reply(self, command: Advance) -> Advanced:
        started = None
        if command.start is not None:
            started = StepStarted(next(self.ids), self.opened.at)
        return Advanced(self.opened.at, started)

    def _note(self, command: Advance, steps: Sequence[StepReport]) -> None:
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
            elif (
                one.kind is TransitionKind.SPLIT_AGGREGATE
                and (one.source, one.visit) not in self.walked
            ):
                self._recall(one.source, one.visit, steps)

    def _recall(self, join: str, visit: int, steps: Sequence[StepReport]) -> None:
        """Add the steps of a split whose branches are not walked through again."""
        every = self.plan.every.values()
        split = next(
            one for one in every if isinstance(one, SplitNode) and one.join == join
        )
        inside = {(one.id, visit) for one in nodes_inside(split)}
        for step in steps:
            if (step.node, step.visit) in inside:
                why = self._reused(step.node, step.visit)
                self._add(step.node, Verdict.REUSE, why, step.visit)

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


def _cancelled(one: PreviewedNode) -> PreviewedNode:
    if one.verdict in (Verdict.REUSE, Verdict.KEEP):
        return one
    return evolve(one, why=f"{one.why}; cancelled as soon as another branch fails")


def _any_plan(count: int) -> list[NewPartition]:
    return [NewPartition(f"{number:04}", "{}") for number in range(count)]
