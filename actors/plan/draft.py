"""The next command of a traversal, gathered part by part until it is sent."""

from attrs import evolve

from ...storage.commands import (
    Advance,
    EnlistedWrite,
    Folded,
    JobEnd,
    NewDecision,
    NextStep,
    StepEnd,
)
from ...storage.model.execution import DecisionRef, Target, TransitionKind
from ...storage.model.status import BatchStatus
from .actions import OpenStep
from .plan import StepNode


def next_step(node: StepNode, inherit: int | None) -> NextStep:
    """Make the row to be created for a node; *inherit* is the row that it continues."""
    return NextStep(
        node=node.id,
        name=node.name,
        limit=node.start_limit,
        inherit=inherit,
        starting=bool(node.listeners),
    )


class Draft:
    """Results and transitions that are decided but not yet sent.

    Args:
        execution_id: The attempt.
        owner_id: Fences its commands.
    """

    def __init__(self, execution_id: int, owner_id: int) -> None:
        self._execution_id = execution_id
        self._owner_id = owner_id
        self._sequence = 0
        self._begin: int | None = None
        self._finish: StepEnd | None = None
        self._decisions: list[NewDecision] = []
        self._write: EnlistedWrite | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be sent."""
        return self._finish is None and not self._decisions

    def finish(
        self,
        step: OpenStep,
        end: StepEnd,
        write: EnlistedWrite | None,
    ) -> None:
        """Add a step's result. A row that never began is STARTED before it stops."""
        if step.status is BatchStatus.STARTING and end.status is BatchStatus.STOPPED:
            self._begin = step.step_id
            end = evolve(end, version=end.version + 1)
        self._finish = end
        self._write = write

    def fold(self, target: Target, digest: bytes) -> None:
        """Add the transition that follows from the result, in the same row."""
        assert self._finish is not None, "there is no result to fold into"
        self._sequence += 1
        folded = Folded(self._sequence, target, digest)
        self._finish = evolve(self._finish, decision=folded)

    def decide(
        self,
        source: str,
        kind: TransitionKind,
        outcome: str,
        target: Target,
        *,
        digest: bytes,
        step_id: int | None = None,
        reused: DecisionRef | None = None,
    ) -> None:
        """Add a transition with a row of its own."""
        self._sequence += 1
        self._decisions.append(
            NewDecision(
                sequence=self._sequence,
                source=source,
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
        command = Advance(
            execution_id=self._execution_id,
            owner_id=self._owner_id,
            begin=self._begin,
            finish=self._finish,
            decisions=tuple(self._decisions),
            start=start,
            end=end,
            write=self._write,
        )
        self._begin = self._finish = self._write = None
        self._decisions = []
        return command

    def take_back(self, command: Advance) -> None:
        """Forget the transitions of a refused command: their numbers are free again."""
        folded = command.finish is not None and command.finish.decision is not None
        self._sequence -= folded + len(command.decisions)
