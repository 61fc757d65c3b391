"""`Advance` as one statement, for each combination of parts that is common."""

from collections.abc import Sequence

from ..codec import encode_failure, encode_target
from ..commands import (
    UNLIMITED,
    Advance,
    Advanced,
    JobEnd,
    NextStep,
    StartLimitReached,
    StepEnd,
    StepStarted,
)
from ..sql.session import Value
from .advance_text import DECISION, Shape, advance_likeness, advance_text
from .arrays import array_of
from .chain import Compact, number_of


def advance_statement(command: Advance) -> Compact[Advanced] | None:
    """Give the one statement; None for a combination that needs several."""
    if _needs_several(command):
        return None
    finish, start, end = command.finish, command.start, command.end
    assign = None if start is None else start.partition
    publish = None if finish is None else finish.partition
    shape = Shape(
        begin=command.begin is not None,
        finish=None if finish is None else finish.status,
        decisions=bool(command.decisions),
        first_visit=command.first_visit,
        start=start is not None,
        inherit=start is not None and start.inherit is not None,
        limited=start is not None and start.limit < UNLIMITED,
        end=None if end is None else end.status,
        publish=publish is not None,
        assign=assign is not None,
    )
    values: list[Value] = [command.execution_id, command.owner_id]
    if command.begin is not None:
        values.append(command.begin)
    if finish is not None:
        values += _finish_values(finish)
    if publish is not None:
        values += (publish.manager_id, publish.ordinal)
    if command.decisions:
        values += _decision_values(command)
    if end is not None:
        values += _end_values(end)
    if start is not None:
        values += start_values(start)
    if assign is not None:
        values += (assign.manager_id, assign.ordinal)

    def read(fields: Sequence[int | None]) -> Advanced:
        at, step_id = number_of(fields[0]), fields[1]
        if start is None:
            return Advanced(at)
        if step_id is None:
            return Advanced(at, StartLimitReached(start.node, start.limit))
        return Advanced(at, StepStarted(step_id, at))

    part = publish or assign
    return Compact(
        (advance_text(shape), values),
        read,
        advance_likeness(shape),
        command.execution_id,
        None if part is None else (part.manager_id, part.ordinal),
    )


def _needs_several(command: Advance) -> bool:
    """Tell whether one statement would not see what it changes itself, or not say why."""
    finish, start = command.finish, command.start
    if (command.begin and finish) or (start and command.end) or _twice(command):
        return True
    if start is None:
        return False
    if start.plan is not None:
        return True
    if start.limit < UNLIMITED and (start.partition or start.inherit):
        return True  # two reasons for which no row is made
    finished = finish and finish.step_id
    if start.partition and start.partition.manager_id in (command.begin, finished):
        return True
    return start.inherit is not None and start.inherit == finished


def _twice(command: Advance) -> bool:
    """Tell whether one number is given to two decisions, which is refused."""
    numbers = [one.sequence for one in command.decisions]
    if command.finish is not None and command.finish.decision is not None:
        numbers.append(command.finish.decision.sequence)
    return len(set(numbers)) < len(numbers)


def _finish_values(finish: StepEnd) -> list[Value]:
    decision = finish.decision
    return [
        finish.step_id,
        finish.version,
        finish.exit_code,
        *finish.counts.all(),
        finish.context,
        encode_failure(finish.failure),
        None if decision is None else decision.sequence,
        None if decision is None else encode_target(decision.target),
    ]


def _decision_values(command: Advance) -> list[Value]:
    every = command.decisions
    reused = [one.reused for one in every]
    columns: tuple[Sequence[Value], ...] = (
        [one.sequence for one in every],
        [one.source for one in every],
        [one.visit for one in every],
        [one.step_id for one in every],
        [one.kind.value for one in every],
        [one.outcome for one in every],
        [encode_target(one.target) for one in every],
        [one.digest for one in every],
        [None if one is None else one.execution_id for one in reused],
        [None if one is None else one.sequence for one in reused],
    )
    return list(map(array_of, DECISION, columns))


def start_values(start: NextStep) -> list[Value]:
    """Give what a new step row binds: five values, then limit and source if any."""
    values: list[Value] = [
        start.node,
        start.visit,
        start.name,
        "STARTING" if start.starting else "STARTED",
        0 if start.starting else 1,
    ]
    if start.limit < UNLIMITED:
        values.append(start.limit)
    if start.inherit is not None:
        values.append(start.inherit)
    return values


def _end_values(end: JobEnd) -> list[Value]:
    return [end.exit_code, *end.counts.all(), encode_failure(end.failure)]
