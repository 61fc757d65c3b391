"""A synchronous client of one backend, and commands with all that does not matter.

Whatever a store refuses must change nothing: `Client.refusal` proves it each time.
"""

from typing import Any, TypeVar
from uuid import UUID

from attrs import define, field

from tests.storage.backends import Clock, dump_of
from triolet.storage.backend import Backend, drive
from triolet.storage.commands import (
    Advance,
    Advanced,
    Command,
    Definition,
    Folded,
    JobEnd,
    NewDecision,
    NextStep,
    Opened,
    OpenExecution,
    OwnerFacts,
    RegisterOwner,
    StepEnd,
    StepStarted,
)
from triolet.storage.dump import Dump
from triolet.storage.model.digests import step_input
from triolet.storage.model.errors import TrioletError
from triolet.storage.model.execution import (
    NO_COUNTS,
    Counts,
    ExitCode,
    Failure,
    JobExecution,
    StepExecution,
    Terminal,
    TransitionKind,
)
from triolet.storage.model.parameters import ParameterSet, parameters_of
from triolet.storage.model.status import BatchStatus, FailureCategory

T = TypeVar("T")

JOB = "settlement"
LEASE = 30_000_000
FACTS = OwnerFacts(host="mill", pid=42, boot_id="b", process_start="17")
DIGEST = b"d" * 32
DAY = parameters_of({"day": "2026-11-30"})


def definition(mark: str = "f", revision: str = "1") -> Definition:
    """Make a definition whose fingerprint repeats *mark*."""
    return Definition(
        revision=revision,
        format=2,
        fingerprint=mark.encode() * 32,
        manifest=f'{{"mark":"{mark}"}}',
    )


def next_step(node: str = "load", **changes: Any) -> NextStep:
    return NextStep(**{"node": node, "name": f"{node} it", **changes})


def step_end(step_id: int, **changes: Any) -> StepEnd:
    fields: dict[str, Any] = {
        "step_id": step_id,
        "version": 1,
        "status": BatchStatus.COMPLETED,
        "exit_code": "COMPLETED",
        "counts": NO_COUNTS,
        "context": None,
    }
    return StepEnd(**(fields | changes))


def job_end(status: BatchStatus = BatchStatus.COMPLETED, **changes: Any) -> JobEnd:
    fields: dict[str, Any] = {
        "status": status,
        "exit_code": status.value,
        "counts": NO_COUNTS,
    }
    return JobEnd(**(fields | changes))


def folded(sequence: int = 1) -> Folded:
    return Folded(sequence, Terminal.COMPLETE)


def digest_of(step: StepExecution) -> bytes:
    """Digest a finished step under the plan that all tests here share."""
    return step_input(
        definition().fingerprint,
        step.node,
        step.id,
        step.version,
        step.status,
        step.exit_code,
        step.counts,
        step.context,
    )


def new_decision(sequence: int = 1, **changes: Any) -> NewDecision:
    fields: dict[str, Any] = {
        "sequence": sequence,
        "source": "enough",
        "step_id": None,
        "kind": TransitionKind.DECIDER,
        "outcome": "YES",
        "target": Terminal.COMPLETE,
        "digest": DIGEST,
    }
    return NewDecision(**(fields | changes))


FAILURE = Failure(FailureCategory.USER_COMPONENT, 77, where="load", type="ValueError")


@define
class Client:
    """Asks one backend, one batch after the other."""

    backend: Backend
    clock: Clock
    batch_id: UUID = field(default=UUID(int=0))

    def apply(self, *batch: Command[Any]) -> list[object]:
        self.batch_id = UUID(int=self.batch_id.int + 1)
        return list(drive(self.backend.apply(self.batch_id, batch)))

    def ask(self, command: Command[T]) -> T:
        (outcome,) = self.apply(command)
        if isinstance(outcome, TrioletError):
            raise outcome
        reply: T = outcome  # type: ignore[assignment]  # the port promises the pairing
        return reply

    def refusal(self, command: Command[Any]) -> TrioletError:
        before = self.dump()
        (outcome,) = self.apply(command)
        assert isinstance(outcome, TrioletError), outcome
        assert self.dump() == before
        return outcome

    def dump(self) -> Dump:
        return dump_of(self.backend)

    def execution(self, execution_id: int) -> JobExecution:
        return self.dump().executions[execution_id - 1]

    def step(self, step_id: int) -> StepExecution:
        return self.dump().steps[step_id - 1]

    def owner(self, lease: int = LEASE) -> int:
        return self.ask(RegisterOwner(FACTS, lease)).owner_id

    def opening(self, parameters: ParameterSet = DAY, **changes: Any) -> OpenExecution:
        """Make the command that opens; the newest owner sends it."""
        fields: dict[str, Any] = {
            "job": JOB,
            "parameters": parameters,
            "definition": definition(),
            "owner_id": len(self.dump().owners),
            "failure_id": 9,
        }
        return OpenExecution(**(fields | changes))

    def open(self, parameters: ParameterSet = DAY, **changes: Any) -> Opened:
        """Open, by a new owner when there is none yet."""
        if not self.dump().owners:
            self.owner()
        return self.ask(self.opening(parameters, **changes))

    def advancing(self, opened: Opened, **parts: Any) -> Advance:
        """Make the command that its present owner would send."""
        owner_id = self.execution(opened.execution_id).owner_id
        fields = {"execution_id": opened.execution_id, "owner_id": owner_id}
        return Advance(**(fields | parts))

    def advance(self, opened: Opened, **parts: Any) -> Advanced:
        return self.ask(self.advancing(opened, **parts))

    def start(self, opened: Opened, node: str = "load", **changes: Any) -> int:
        """Start a step and give its id."""
        reply = self.advance(opened, start=next_step(node, **changes))
        assert isinstance(reply.start, StepStarted)
        return reply.start.step_id

    def fail(self, opened: Opened) -> None:
        """End an execution so that another attempt may follow."""
        failed = job_end(BatchStatus.FAILED, failure=FAILURE)
        self.advance(opened, end=failed)


SOME_COUNTS = Counts(10, 9, 8, 1, 2, 3)
FAILED = ExitCode.FAILED
