"""Which events a committed command gives rise to."""

from collections.abc import Iterator, Sequence

from ...storage.commands import Advance, Advanced, StartLimitReached
from ...storage.model.execution import TransitionKind
from ..plan.actions import StepReport
from .events import Event, EventKind


def narrate(
    command: Advance, reply: Advanced, steps: Sequence[StepReport]
) -> Iterator[Event]:
    """Tell what has become durable, in the order of the command's parts.

    Args:
        command: What was carried out.
        reply: Its reply.
        steps: What the traversal has reported so far, for the names of nodes.
    """
    if command.finish is not None:
        yield from _finished(command, reply.at, steps)
    for made in command.decisions:
        reused = made.kind is TransitionKind.COMPLETED_STEP_REUSE
        kinds = [EventKind.DECISION_COMMITTED]
        if reused:
            kinds.append(EventKind.COMPLETED_STEP_REUSED)
        for kind in kinds:
            yield Event(
                kind=kind,
                node=made.source,
                visit=made.visit,
                step_id=made.step_id,
                target=made.target,
                exit_code=made.outcome,
                at=reply.at,
            )
    failure = None if command.end is None else command.end.failure
    if failure is not None and failure.code == StartLimitReached.code:
        yield Event(
            kind=EventKind.START_LIMIT_EXCEEDED,
            node=failure.where,
            message=failure.message,
            at=reply.at,
        )


def _finished(
    command: Advance, at: int, steps: Sequence[StepReport]
) -> Iterator[Event]:
    finish = command.finish
    assert finish is not None
    report = next(one for one in reversed(steps) if one.step_id == finish.step_id)
    message = None if finish.failure is None else finish.failure.message
    yield Event(
        kind=EventKind.STEP_RESULT_COMMITTED,
        node=report.node,
        visit=report.visit,
        step_id=finish.step_id,
        status=finish.status,
        exit_code=finish.exit_code,
        counts=finish.counts,
        message=message,
        at=at,
    )
    if finish.decision is not None:
        yield Event(
            kind=EventKind.DECISION_COMMITTED,
            node=report.node,
            visit=report.visit,
            step_id=finish.step_id,
            target=finish.decision.target,
            exit_code=finish.exit_code,
            at=at,
        )
