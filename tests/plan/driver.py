"""Drives the traversal engine alone: scripted user code, a memory store, no actor."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TypeAlias
from uuid import UUID

from attrs import define, field

from tests.plan.definitions import work
from tests.storage.backends import Clock
from triolet.actors.plan.actions import (
    Action,
    Commit,
    Conclude,
    Decide,
    Ended,
    Finished,
    LineResult,
    OpenStep,
    PlanPartitions,
    RunPartitions,
    RunSplit,
    RunStep,
    StepResult,
)
from triolet.actors.plan.compile import compile_job
from triolet.actors.plan.definition import Decision, Job, Node, Step
from triolet.actors.plan.job_traversal import JobTraversal, entry_step
from triolet.actors.plan.stepping import Stepping
from triolet.actors.plan.traversal import Traversal
from triolet.storage.backend import run
from triolet.storage.commands import (
    Advance,
    Advanced,
    Definition,
    Opened,
    OpenExecution,
    OwnerFacts,
    RegisterOwner,
)
from triolet.storage.dump import Dump
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.execution import Decision as MadeDecision
from triolet.storage.model.execution import Failure, Target
from triolet.storage.model.parameters import ParameterSet
from triolet.storage.model.partition import NewPartition
from triolet.storage.model.status import BatchStatus, FailureCategory

FACTS = OwnerFacts(host="mill", pid=42, boot_id="b", process_start="17")
MINUTE = 60_000_000
BOOM = Failure(FailureCategory.USER_COMPONENT, 77, "tasklet_failed", "a")

Answers: TypeAlias = Mapping[str, str | StepResult]
"""By node id: an exit code, or how else a step ended; COMPLETED by default."""


def completed(code: str = "COMPLETED") -> StepResult:
    return StepResult(status=BatchStatus.COMPLETED, exit_code=code)


FAILED = StepResult(status=BatchStatus.FAILED, exit_code="FAILED", failure=BOOM)
STOPPED = StepResult(status=BatchStatus.STOPPED, exit_code="STOPPED")
UNKNOWN = StepResult(status=BatchStatus.UNKNOWN, exit_code="UNKNOWN", failure=BOOM)


def step(name: str, **changes: object) -> Step:
    return Step(name, work, **changes)  # type: ignore[arg-type]  # as the caller says


def decision(name: str, then: Mapping[str, object]) -> Decision:
    return Decision(name, work, then=then)  # type: ignore[arg-type]  # likewise


@define(eq=False)
class Attempt:
    """One attempt: the engine, and everything that it asked for."""

    backend: MemoryBackend
    engine: JobTraversal
    opened: Opened
    trail: list[str] = field(factory=list)
    """Runs and questions, in order: ``run a``, ``ask d``."""
    commands: list[Advance] = field(factory=list)
    before: Callable[[str], object] = lambda happening: None
    """Called before user code runs: ``run a``, ``ask d``."""

    def perform(
        self, action: Action, answers: Answers, engine: Stepping | None = None
    ) -> Action:
        """Do what an engine asks for, once."""
        engine = engine or self.engine
        match action:
            case Commit(command):
                return self.commit(command, engine)
            case RunStep(row):
                self._happens(f"run {row.node.id}")
                given = answers.get(row.node.id, "COMPLETED")
                result = completed(given) if isinstance(given, str) else given
                return engine.stepped(result)
            case Conclude():
                return self.engine.concluded(None)
            case Finished() | Ended():
                raise AssertionError("nothing is left to do")
        assert isinstance(engine, Traversal)
        return self._flow(action, answers, engine)

    def _flow(self, action: Action, answers: Answers, engine: Traversal) -> Action:
        match action:
            case Decide(node):
                self._happens(f"ask {node.id}")
                code = answers[node.id]
                assert isinstance(code, str)
                return engine.decided(node, code)
            case RunSplit(_, branches):
                return engine.joined([self.line(one, answers) for one in branches])
            case PlanPartitions(node):
                self._happens(f"plan {node.id}")
                count = range(node.partition_count or 0)
                return engine.planned([NewPartition(f"{at}", "{}") for at in count])
            case RunPartitions(_, partitions):
                return engine.partitioned(
                    [self.line(one, answers) for one in partitions]
                )
        raise AssertionError(f"nobody performs {action}")

    def line(self, engine: Stepping, answers: Answers) -> LineResult:
        """Go through one branch of a split, or one partition."""
        action = engine.begin()
        while not isinstance(action, Ended):
            action = self.perform(action, answers, engine)
        return action.result

    def commit(self, command: Advance, engine: Stepping | None = None) -> Action:
        """Have a command carried out and go on."""
        self.commands.append(command)
        return (engine or self.engine).committed(self.apply(command))

    def apply(self, command: Advance) -> Advanced:
        return run(self.backend, UUID(int=0), command)

    def until(
        self, kind: type, answers: Answers, action: Action | None = None
    ) -> Action:
        """Go on until the engine asks for an action of *kind*."""
        action = action or self.engine.begin()
        while not isinstance(action, kind):
            action = self.perform(action, answers)
        return action

    def finish(self, answers: Answers, action: Action | None = None) -> Finished:
        """Go on to the end."""
        end = self.until(Finished, answers, action)
        assert isinstance(end, Finished)
        return end

    def abort(self, status: BatchStatus, failure: Failure | None = None) -> Advance:
        """Write the last word of an attempt that cannot go on."""
        command = self.engine.abort(status, failure)
        assert command is not None
        self.apply(command)
        return command

    def _happens(self, happening: str) -> None:
        self.before(happening)
        self.trail.append(happening)


@define(eq=False)
class Instance:
    """One instance of a job in a store of its own."""

    nodes: Sequence[Node]
    backend: MemoryBackend = field(factory=lambda: MemoryBackend(Clock()))

    def attempt(self) -> Attempt:
        """Open the next attempt."""
        compiled = compile_job(Job("demo", self.nodes))
        plan = compiled.plan
        facts = RegisterOwner(FACTS, MINUTE)
        owner_id = run(self.backend, UUID(int=0), facts).owner_id
        command = OpenExecution(
            job=plan.job,
            parameters=ParameterSet(()),
            definition=Definition(
                revision="1",
                format=plan.format,
                fingerprint=plan.fingerprint,
                manifest=plan.manifest,
            ),
            owner_id=owner_id,
            failure_id=1,
            first=entry_step(plan),
        )
        opened = run(self.backend, UUID(int=0), command)
        failures = count(100)
        projection = command.parameters.projection()
        engine = JobTraversal(
            plan, opened, owner_id, projection, lambda: next(failures)
        )
        return Attempt(self.backend, engine, opened)

    @property
    def dump(self) -> Dump:
        return self.backend.dump()

    @property
    def ends(self) -> list[BatchStatus]:
        """The status of every attempt."""
        return [one.status for one in self.dump.executions]

    @property
    def steps(self) -> list[tuple[str, BatchStatus]]:
        """Node and status of every step row."""
        return [(one.node, one.status) for one in self.dump.steps]

    def made(self, attempt: Attempt) -> list[tuple[str, str, str, Target]]:
        """Give the transitions of an attempt: source, kind, outcome, target."""
        return [
            (one.source, one.kind.value, one.outcome, one.target)
            for one in self.decisions(attempt)
        ]

    def decisions(self, attempt: Attempt) -> list[MadeDecision]:
        """Give the transitions of an attempt in their order."""
        dump = self.dump
        folded = [one.decision for one in dump.steps if one.decision is not None]
        mine = [
            one
            for one in [*folded, *dump.decisions]
            if one.execution_id == attempt.opened.execution_id
        ]
        return sorted(mine, key=lambda one: one.sequence)


def line(*names: str) -> Instance:
    return Instance([step(name) for name in names])


def running(action: Action) -> OpenStep:
    """Give the step that the engine wants to be run."""
    assert isinstance(action, RunStep)
    return action.step


def command_of(action: Action) -> Advance:
    """Give the command that the engine wants to be carried out."""
    assert isinstance(action, Commit)
    return action.command
