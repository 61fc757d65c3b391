"""`Advance` as one statement, for each combination of parts that is common."""

from collections.abc import Sequence
from functools import cache

from attrs import frozen

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
from ..model.status import BatchStatus
from ..sql.fencing import sources
from ..sql.session import Value
from .arrays import array_of
from .chain import AT, COUNTS, Chain, Compact, Numbers, counted, fence, number_of


# What each kind of Advance binds, so that one text can be prepared for each kind.
@frozen
class _Shape:
    begin: bool
    finish: BatchStatus | None
    decisions: bool
    first_visit: bool
    start: bool
    inherit: bool
    limited: bool
    end: BatchStatus | None
    publish: bool
    assign: bool


def advance_statement(command: Advance) -> Compact[Advanced] | None:
    """Give the one statement; None for a combination that needs several."""
    finish, start, end = command.finish, command.start, command.end
    if start is not None and start.plan is not None:
        return None
    assign = None if start is None else start.partition
    publish = None if finish is None else finish.partition
    if assign is not None and start is not None:
        if start.limit < UNLIMITED:
            return None  # two reasons for which no row is made
        if assign.manager_id in (command.begin, finish and finish.step_id):
            return None  # one statement does not see what it changes itself
    if (command.begin and finish) or (start and end) or _twice(command):
        return None
    if start is not None and start.inherit is not None:
        if finish is not None and start.inherit == finish.step_id:
            return None  # one statement does not see what it changes itself
        if start.limit < UNLIMITED:
            return None  # two reasons for which no row is made
    shape = _Shape(
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
    if start is not None:
        values += start_values(start)
    if assign is not None:
        values += (assign.manager_id, assign.ordinal)
    if end is not None:
        values += _end_values(end)

    def read(fields: Sequence[int | None]) -> Advanced:
        at, step_id = number_of(fields[0]), fields[1]
        if start is None:
            return Advanced(at)
        if step_id is None:
            return Advanced(at, StartLimitReached(start.node, start.limit))
        return Advanced(at, StepStarted(step_id, at))

    return Compact((_advance_text(shape), values), read)


def _twice(command: Advance) -> bool:
    """Tell whether one number is given to two decisions, which is refused."""
    numbers = [one.sequence for one in command.decisions]
    if command.finish is not None and command.finish.decision is not None:
        numbers.append(command.finish.decision.sequence)
    return len(set(numbers)) < len(numbers)


@cache
def _advance_text(shape: _Shape) -> str:
    chain, numbers = Chain(), Numbers(2)
    chain.add("fence", fence())
    if shape.begin:
        chain.add("begun", _begin_part(numbers))
    finished = "NULL"
    if shape.finish is not None:
        finished = numbers.take(1)[0]
        chain.add("finished", _finish_part(shape.finish, finished, numbers))
    if shape.publish:
        chain.add("published", _publish_part(numbers))
    if shape.decisions:
        chain.add("decided", _decision_part(shape, chain.last, finished, numbers))
        chain.add("all_decided", "SELECT 1 FROM decided HAVING count(*) > 0")
    if shape.end is not None:
        chain.add("ended", _end_part(shape.end, chain.last, numbers))
    if not shape.start:
        return chain.noting(AT, "''")
    before = chain.last
    chain.add("started", _start_part(shape, before, numbers))
    if shape.assign:
        chain.add("assigned", _assign_part(numbers))
    started = "(SELECT id FROM started)"
    return chain.noting(AT, started, source=before if shape.limited else chain.last)


def _begin_part(numbers: Numbers) -> str:
    (step,) = numbers.take(1)
    return (
        "UPDATE triolet.step SET status = 'STARTED', "
        f"started_at = greatest({AT}, created_at), version = version + 1 "
        f"FROM fence WHERE step.id = {step} AND execution_id = fence.id "
        "AND status = 'STARTING' RETURNING step.id"
    )


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


def _finish_part(status: BatchStatus, step: str, numbers: Numbers) -> str:
    version, code, *counts, context, failure, sequence, target = numbers.take(12)
    instant = f"coalesce(ended_at, greatest({AT}, coalesce(started_at, created_at)))"
    ended = instant if status.finished else "NULL"
    return (
        f"UPDATE triolet.step SET status = '{status.value}', exit_code = {code}, "
        f"{counted(counts)}, context = coalesce({context}, context), "
        f"failure = coalesce({failure}, failure), ended_at = {ended}, "
        "version = version + 2, "
        f"decision_sequence = coalesce({sequence}, decision_sequence), "
        f"decision_target = coalesce({target}, decision_target) "
        f"FROM fence WHERE step.id = {step} AND execution_id = fence.id "
        f"AND version = {version} AND {sources(status)} "
        f"RETURNING step.id, {', '.join(f'step.{one}' for one in _PUBLISHED)}"
    )


_PUBLISHED = ("status", "exit_code", *(f"{one}_count" for one in COUNTS))


def _publish_part(numbers: Numbers) -> str:
    manager, ordinal = numbers.take(2)
    taken_over = ", ".join(f"{one} = finished.{one}" for one in _PUBLISHED)
    return (
        f"UPDATE triolet.partition AS p SET {taken_over}, version = p.version + 1 "
        f"FROM finished WHERE p.manager_id = {manager}::bigint "
        f"AND p.ordinal = {ordinal}::bigint AND p.worker_id = finished.id "
        "AND p.status = 'STARTED' RETURNING finished.id"
    )


def _assign_part(numbers: Numbers) -> str:
    manager, ordinal = numbers.take(2)
    return (
        "UPDATE triolet.partition AS p SET status = 'STARTED', "
        "worker_id = started.id, version = p.version + 1 "
        "FROM started, fence, triolet.step AS m "
        f"WHERE p.manager_id = {manager}::bigint AND p.ordinal = {ordinal}::bigint "
        "AND p.status = 'STARTING' AND m.id = p.manager_id "
        "AND m.execution_id = fence.id AND m.status = 'STARTED' RETURNING started.id"
    )


_DECISION_TYPES = (
    *("bigint", "text", "bigint", "bigint", "text"),
    *("text", "text", "bytea", "bigint", "bigint"),
)


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
    return list(map(array_of, _DECISION_TYPES, columns))


def _decision_part(shape: _Shape, before: str, finished: str, numbers: Numbers) -> str:
    names = numbers.take(len(_DECISION_TYPES))
    arrays = ", ".join(
        f"{name}::{kind}[]" for name, kind in zip(names, _DECISION_TYPES, strict=True)
    )
    sequences, cited = f"{names[0]}::bigint[]", f"{names[3]}::bigint[]"
    unfolded = (
        "NOT EXISTS (SELECT 1 FROM triolet.step "
        f"WHERE execution_id = fence.id AND decision_sequence = ANY ({sequences}) "
        f"AND id IS DISTINCT FROM {finished}::bigint) AND "
    )
    return (
        "INSERT INTO triolet.decision "
        f"SELECT fence.id, new.*, {AT} FROM {_rows(before)}, "
        f"unnest({arrays}) AS new WHERE {unfolded * shape.first_visit}"
        f"NOT EXISTS (SELECT 1 FROM unnest({cited}) AS cited(id) "
        "LEFT JOIN triolet.step ON step.id = cited.id "
        "WHERE cited.id IS NOT NULL AND step.id IS NULL) RETURNING 1"
    )


def _rows(before: str) -> str:
    return "fence" if before == "fence" else f"{before}, fence"


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


def _start_part(shape: _Shape, before: str, numbers: Numbers) -> str:
    node, visit, name, status, version = numbers.take(5)
    columns = "execution_id, node, visit, name, status, created_at, started_at, version"
    values = (
        f"fence.id, {node}::text, {visit}::bigint, {name}::text, {status}::text, {AT}, "
        f"CASE WHEN {version}::bigint > 0 THEN {AT} END, {version}::bigint"
    )
    where = []
    if shape.limited:
        (limit,) = numbers.take(1)
        where.append(
            "(SELECT count(*) FROM triolet.step AS s JOIN triolet.execution AS e "
            "ON e.id = s.execution_id WHERE e.instance_id = fence.instance_id "
            f"AND s.node = {node}::text AND s.visit = {visit}::bigint) < {limit}::bigint"
        )
    rows = _rows(before)
    if shape.inherit:
        (inherit,) = numbers.take(1)
        kept = ", ".join(f"{one}_count" for one in COUNTS) + ", checkpoint, context"
        columns += f", {kept}"
        values += ", " + ", ".join(f"old.{one}" for one in kept.split(", "))
        rows += ", triolet.step AS old, triolet.execution AS earlier"
        where.append(
            f"old.id = {inherit}::bigint AND earlier.id = old.execution_id "
            "AND earlier.instance_id = fence.instance_id"
        )
    condition = " AND ".join(where) or "TRUE"
    return (
        f"INSERT INTO triolet.step ({columns}) SELECT {values} FROM {rows} "
        f"WHERE {condition} RETURNING id"
    )


def _end_values(end: JobEnd) -> list[Value]:
    return [end.exit_code, *end.counts.all(), encode_failure(end.failure)]


def _end_part(status: BatchStatus, before: str, numbers: Numbers) -> str:
    code, *counts, failure = numbers.take(8)
    instant = f"greatest({AT}, coalesce(started_at, created_at))"
    return (
        f"UPDATE triolet.execution SET status = '{status.value}', exit_code = {code}, "
        f"{counted(counts)}, failure = coalesce({failure}, failure), "
        f"ended_at = {instant if status.finished else 'NULL'}, version = version + 2 "
        f"FROM {before} WHERE execution.id = $1 AND {sources(status, 'execution.status')} "
        "RETURNING execution.id"
    )
