"""The next command of a traversal, gathered part by part until it is sent."""

from ...storage.commands import (
    Advance,
    Folded,
    JobEnd,
    NewDecision,
    NextStep,
    StepEnd,
)
from ...storage.model.execution import DecisionRef, Target, TransitionKind
from ...storage.model.partition import PartitionRef
from ...storage.model.status import BatchStatus
from .actions import OpenStep, StepResult
from .plan import StepNode


def next_step(
    node: StepNode,
    inherit: int | None,
    partition: PartitionRef | None = None,
    visit: int = 1,
) -> NextStep:
    """Make the row to be created for a node.

    Args:
        node: The step.
        inherit: The row that it continues.
        partition: That it works on, if it is a worker.
        visit: Which visit of the node it is.
    """
    return NextStep(
        node=node.id,
        visit=visit,
        name=node.name,
        limit=node.start_limit,
        inherit=inherit,
        starting=bool(node.listeners),
        partition=partition,
    )


DECISIONS_MAX = 2048
"""A flow without loops never has so many in one command."""


class Draft:
    """Results and transitions that are decided but not yet sent.

    Args:
        execution_id: The attempt.
        owner_id: Fences its commands.
        partition: That takes over what comes of the step, a worker.
    """

    def __init__(
        self, execution_id: int, owner_id: int, partition: PartitionRef | None = None
    ) -> None:
        self._partition = partition
        self._execution_id = execution_id
        self._owner_id = owner_id
        self._sequence = 0
        self._step: OpenStep | None = None
        self._result: StepResult | None = None
        self._folded: Folded | None = None
        self._decisions: list[NewDecision] = []

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be sent."""
        return self._step is None and not self._decisions

    @property
    def full(self) -> bool:
        """Whether it should be sent, lest one command hold all visits of a loop."""
        return len(self._decisions) >= DECISIONS_MAX

    def reserve(self, count: int) -> "Draft":
        """Give another draft, to which the next *count* numbers of transitions belong.

        So that work side by side numbers its transitions alike, whatever ends first.
        """
        other = Draft(self._execution_id, self._owner_id)
        other._sequence = self._sequence
        self._sequence += count
        return other

    def finish(self, step: OpenStep, result: StepResult) -> None:
        """Add a step's result."""
        self._step = step
        self._result = result

    def fold(self, target: Target) -> None:
        """Add the transition that follows from the result, in the same row."""
        self._sequence += 1
        self._folded = Folded(self._sequence, target)

    def decide(
        self,
        source: str,
        kind: TransitionKind,
        outcome: str,
        target: Target,
        *,
        digest: bytes,
        visit: int = 1,
        step_id: int | None = None,
        reused: DecisionRef | None = None,
    ) -> None:
        """Add a transition with a row of its own."""
        self._sequence += 1
        self._decisions.append(
            NewDecision(
                sequence=self._sequence,
                source=source,
                visit=visit,
                step_id=step_id,
                kind=kind,
                outcome=outcome,
                target=target,
                digest=digest,
                reused=reused,
            )
        )

    def send(self, start: NextStep | None = None, end: JobEnd | None = None) -> Advance:
        """Make the command of all parts, and begin an empty draft."""
        step, result = self._step, self._result
        begin = finish = write = None
        if step is not None and result is not None:
            stopped = result.status is BatchStatus.STOPPED
            if stopped and step.status is BatchStatus.STARTING:
                # A row that never began is STARTED before it is STOPPED.
                begin = step.step_id
            finish = StepEnd(
                step_id=step.step_id,
                version=step.version + (begin is not None),
                status=result.status,
                exit_code=result.exit_code,
                counts=step.counts,
                context=result.context,
                failure=result.failure,
                decision=self._folded,
                partition=self._partition,
            )
            write = result.write
        command = Advance(
            execution_id=self._execution_id,
            owner_id=self._owner_id,
            begin=begin,
            finish=finish,
            decisions=tuple(self._decisions),
            start=start,
            end=end,
            write=write,
        )
        self._step = self._result = self._folded = None
        self._decisions.clear()
        return command

    def take_back(self, command: Advance) -> None:
        """Forget the transitions of a refused command: their numbers are free again."""
        folded = command.finish is not None and command.finish.decision is not None
        self._sequence -= folded + len(command.decisions)
