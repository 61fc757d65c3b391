"""What a launch would find, asked before it is launched."""

from collections.abc import Iterable

from attrs import evolve, frozen

from ..model.execution import ExitCode, StepExecution
from ..model.status import BatchStatus
from .command import Question
from .opening import (
    NotRestartable,
    Opened,
    OpenExecution,
    OutcomeUnresolved,
    Snapshot,
)


@frozen
class PreviewOpening(Question["Opened"]):
    """Give the reply that an opening would get, or refuse as it would be refused.

    Nothing is written: the reply's execution has the id 0, and its first step is not
    started. The owner need not be registered.
    """

    opening: OpenExecution


def opened_by(
    opening: OpenExecution,
    *,
    instance_id: int,
    run: int | None,
    previous: tuple[int, int] | None,
    took_over: int | None,
    snapshot: Snapshot,
    now: int,
) -> Opened:
    """Make the reply.

    Args:
        opening: What is asked about.
        instance_id: 0 for one that is not there yet.
        run: The number that a new run would get.
        previous: Id and number of the latest attempt.
        took_over: The execution that would be closed first.
        snapshot: As it is now; what a takeover would close is shown closed.
        now: By the store's clock.

    Raises:
        OutcomeUnresolved: The takeover would find a step whose outcome is unknown.
        NotRestartable: Nothing may follow what would be taken over.
    """
    steps: Iterable[StepExecution] = snapshot.steps
    if took_over is not None:
        steps = [_closed(step, took_over) for step in snapshot.steps]
        if not opening.restartable:
            raise NotRestartable(opening.job, took_over)
    return Opened(
        instance_id=instance_id,
        execution_id=0,
        attempt=1 if previous is None else previous[1] + 1,
        run=run,
        at=now,
        restart_of=None if previous is None else previous[0],
        took_over=took_over,
        snapshot=evolve(snapshot, steps=tuple(steps)),
        first=None,
    )


def _closed(step: StepExecution, execution_id: int) -> StepExecution:
    if step.execution_id != execution_id:
        return step
    if step.status is BatchStatus.UNKNOWN:
        raise OutcomeUnresolved(execution_id)
    if step.status.active:
        return evolve(step, status=BatchStatus.FAILED, exit_code=ExitCode.FAILED)
    return step
