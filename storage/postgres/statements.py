"""The common commands as one statement each.

A statement is a chain of parts (CTEs): each is carried out only for what the one before
it gave, and `triolet.note` makes the reply, or refuses the whole when the last part
gave nothing. What is refused, and all that is rare, is carried out part by part by
`triolet.storage.sql`, which finds the reason.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Generic, TypeVar

from attrs import frozen

from ..codec import encode_facts, encode_failure, encode_parameters, encode_target
from ..commands import (
    UNLIMITED,
    Advance,
    Advanced,
    ChunkCommitted,
    Command,
    CommitChunk,
    JobEnd,
    NextStep,
    Opened,
    OpenExecution,
    OwnerRegistered,
    OwnerReleased,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
    Snapshot,
    StartLimitReached,
    StepEnd,
    StepStarted,
)
from ..model.status import BatchStatus
from ..sql.advancing import ACTIVE, sources
from ..sql.session import Value
from .wire import Statement

T = TypeVar("T")


@frozen
class Compact(Generic[T]):
    """A command as one statement, and how to read the reply that the server notes."""

    statement: Statement
    read: Callable[[Sequence[int | None]], T]


def compact(command: Command[Any]) -> Compact[Any] | None:
    """Give the one statement of a command; None when it needs several."""
    make = _MAKERS.get(type(command))
    return None if make is None or command.enlisted else make(command)


def fields_of(reply: str) -> list[int | None]:
    """Split a noted reply into its numbers."""
    return [int(part) if part else None for part in reply.split(",")]


class _Chain:
    """Builds a statement: parts in order, and the values they bind."""

    def __init__(self) -> None:
        self.parts = ["clock AS MATERIALIZED (SELECT triolet.now() AS at)"]
        self.last = "clock"

    def add(self, name: str, text: str) -> None:
        self.parts.append(f"{name} AS ({text})")
        self.last = name

    def noting(self, *columns: str, source: str = "") -> str:
        """End the chain: note these columns of its last part."""
        reply = ", ',', ".join(columns)
        rows = source or self.last
        body = ",\n".join(self.parts)
        return f"WITH {body}\nSELECT triolet.note((SELECT concat({reply}) FROM {rows}))"


_AT = "(SELECT at FROM clock)"


def _fence(key: str = "$1", owner: str = "$2") -> str:
    return (
        f"SELECT id, instance_id FROM triolet.execution WHERE id = {key} "
        f"AND owner_id = {owner} AND {ACTIVE} FOR KEY SHARE"
    )


# What each kind of Advance binds, so that one text can be prepared for each kind.
@frozen
class _Shape:
    begin: bool
    finish: BatchStatus | None
    decisions: bool
    start: bool
    inherit: bool
    limited: bool
    end: BatchStatus | None


def _advance(command: Advance) -> Compact[Advanced] | None:
    finish, start, end = command.finish, command.start, command.end
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
        start=start is not None,
        inherit=start is not None and start.inherit is not None,
        limited=start is not None and start.limit < UNLIMITED,
        end=None if end is None else end.status,
    )
    values: list[Value] = [command.execution_id, command.owner_id]
    if command.begin is not None:
        values.append(command.begin)
    if finish is not None:
        values += _finish_values(finish)
    if command.decisions:
        values += _decision_values(command)
    if start is not None:
        values += _start_values(start)
    if end is not None:
        values += _end_values(end)

    def read(fields: Sequence[int | None]) -> Advanced:
        at, step_id = _int(fields[0]), fields[1]
        if start is None:
            return Advanced(at)
        if step_id is None:
            return Advanced(at, StartLimitReached(start.node, start.limit))
        return Advanced(at, StepStarted(step_id, at))

    return Compact((_advance_text(shape), values), read)


def _int(field: int | None) -> int:
    assert field is not None
    return field


def _twice(command: Advance) -> bool:
    """Tell whether one number is given to two decisions, which is refused."""
    numbers = [one.sequence for one in command.decisions]
    if command.finish is not None and command.finish.decision is not None:
        numbers.append(command.finish.decision.sequence)
    return len(set(numbers)) < len(numbers)


class _Numbers:
    """Hands out the parameters of a statement in order."""

    def __init__(self, used: int) -> None:
        self._used = used

    def take(self, count: int) -> list[str]:
        names = [f"${self._used + index}" for index in range(1, count + 1)]
        self._used += count
        return names


@cache
def _advance_text(shape: _Shape) -> str:
    chain, numbers = _Chain(), _Numbers(2)
    chain.add("fence", _fence())
    if shape.begin:
        chain.add("begun", _begin_part(numbers))
    finished = "NULL"
    if shape.finish is not None:
        finished = numbers.take(1)[0]
        chain.add("finished", _finish_part(shape.finish, finished, numbers))
    if shape.decisions:
        chain.add("decided", _decision_part(chain.last, finished, numbers))
        chain.add("all_decided", "SELECT 1 FROM decided HAVING count(*) > 0")
    if shape.end is not None:
        chain.add("ended", _end_part(shape.end, chain.last, numbers))
    if not shape.start:
        return chain.noting(_AT, "''")
    before = chain.last
    chain.add("started", _start_part(shape, before, numbers))
    started = "(SELECT id FROM started)"
    return chain.noting(_AT, started, source=before if shape.limited else "started")


def _begin_part(numbers: _Numbers) -> str:
    (step,) = numbers.take(1)
    return (
        "UPDATE triolet.step SET status = 'STARTED', "
        f"started_at = greatest({_AT}, created_at), version = version + 1 "
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


def _finish_part(status: BatchStatus, step: str, numbers: _Numbers) -> str:
    version, code, *counts, context, failure, sequence, target = numbers.take(12)
    instant = f"coalesce(ended_at, greatest({_AT}, coalesce(started_at, created_at)))"
    ended = instant if status.finished else "NULL"
    return (
        f"UPDATE triolet.step SET status = '{status.value}', exit_code = {code}, "
        f"{_counted(counts)}, context = coalesce({context}, context), "
        f"failure = coalesce({failure}, failure), ended_at = {ended}, "
        "version = version + 2, "
        f"decision_sequence = coalesce({sequence}, decision_sequence), "
        f"decision_target = coalesce({target}, decision_target) "
        f"FROM fence WHERE step.id = {step} AND execution_id = fence.id "
        f"AND version = {version} AND {sources(status)} RETURNING step.id"
    )


_COUNTS = ("read", "process", "write", "filter", "commit", "rollback")


def _counted(numbers: Sequence[str]) -> str:
    pairs = zip(_COUNTS, numbers, strict=True)
    return ", ".join(f"{name}_count = {number}" for name, number in pairs)


_DECISION_TYPES = (
    *("bigint", "text", "bigint", "bigint", "text"),
    *("text", "text", "bytea", "bigint", "bigint"),
)


def _decision_values(command: Advance) -> list[Value]:
    every = command.decisions
    reused = [one.reused for one in every]
    return [
        _array(one.sequence for one in every),
        _array(one.source for one in every),
        _array(one.visit for one in every),
        _array(one.step_id for one in every),
        _array(one.kind.value for one in every),
        _array(one.outcome for one in every),
        _array(encode_target(one.target) for one in every),
        _array(one.digest for one in every),
        _array(None if one is None else one.execution_id for one in reused),
        _array(None if one is None else one.sequence for one in reused),
    ]


def _array(values: Any) -> str:  # noqa: ANN401  # any iterable of what a row holds
    """Write a PostgreSQL array."""
    return "{" + ",".join(_element(value) for value in values) + "}"


def _element(value: str | int | bytes | None) -> str:
    match value:
        case None:
            return "NULL"
        case int():
            return str(value)
        case bytes():
            return f'"\\\\x{value.hex()}"'
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _decision_part(before: str, finished: str, numbers: _Numbers) -> str:
    names = numbers.take(len(_DECISION_TYPES))
    arrays = ", ".join(
        f"{name}::{kind}[]" for name, kind in zip(names, _DECISION_TYPES, strict=True)
    )
    sequences, cited = f"{names[0]}::bigint[]", f"{names[3]}::bigint[]"
    return (
        "INSERT INTO triolet.decision "
        f"SELECT fence.id, new.*, {_AT} FROM {_rows(before)}, "
        f"unnest({arrays}) AS new WHERE NOT EXISTS (SELECT 1 FROM triolet.step "
        f"WHERE execution_id = fence.id AND decision_sequence = ANY ({sequences}) "
        f"AND id IS DISTINCT FROM {finished}::bigint) "
        f"AND NOT EXISTS (SELECT 1 FROM unnest({cited}) AS cited(id) "
        "LEFT JOIN triolet.step ON step.id = cited.id "
        "WHERE cited.id IS NOT NULL AND step.id IS NULL) RETURNING 1"
    )


def _rows(before: str) -> str:
    return "fence" if before == "fence" else f"{before}, fence"


def _start_values(start: NextStep) -> list[Value]:
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


def _start_part(shape: _Shape, before: str, numbers: _Numbers) -> str:
    node, visit, name, status, version = numbers.take(5)
    columns = "execution_id, node, visit, name, status, created_at, started_at, version"
    values = (
        f"fence.id, {node}::text, {visit}::bigint, {name}::text, {status}::text, {_AT}, "
        f"CASE WHEN {version}::bigint > 0 THEN {_AT} END, {version}::bigint"
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
        kept = ", ".join(f"{one}_count" for one in _COUNTS) + ", checkpoint, context"
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


def _end_part(status: BatchStatus, before: str, numbers: _Numbers) -> str:
    code, *counts, failure = numbers.take(8)
    instant = f"greatest({_AT}, coalesce(started_at, created_at))"
    return (
        f"UPDATE triolet.execution SET status = '{status.value}', exit_code = {code}, "
        f"{_counted(counts)}, failure = coalesce({failure}, failure), "
        f"ended_at = {instant if status.finished else 'NULL'}, version = version + 2 "
        f"FROM {before} WHERE execution.id = $1 AND {sources(status, 'execution.status')} "
        "RETURNING execution.id"
    )


def _chunk_text() -> str:
    chain = _Chain()
    chain.add("fence", _fence())
    chain.add(
        "moved",
        f"UPDATE triolet.step SET {_counted([f'${at}' for at in range(5, 11)])}, "
        "checkpoint = $11, version = version + 1 FROM fence WHERE step.id = $3 "
        "AND execution_id = fence.id AND version = $4 AND status = 'STARTED' "
        "RETURNING step.id",
    )
    return chain.noting(_AT)


_CHUNK = _chunk_text()


def _commit_chunk(command: CommitChunk) -> Compact[ChunkCommitted]:
    values: list[Value] = [
        command.execution_id,
        command.owner_id,
        command.step_id,
        command.version,
        *command.counts.all(),
        command.checkpoint,
    ]
    return Compact((_CHUNK, values), lambda fields: ChunkCommitted(_int(fields[0])))


_CHUNK_CHECK = (
    f"WITH fence AS ({_fence()}) SELECT 1 FROM fence, triolet.step "
    "WHERE step.id = $3 AND execution_id = fence.id AND version = $4 "
    "AND step.status = 'STARTED'"
)


def chunk_check(command: CommitChunk) -> Statement:
    """Ask, before user code writes its rows, whether the chunk would be taken."""
    return _CHUNK_CHECK, (
        command.execution_id,
        command.owner_id,
        command.step_id,
        command.version,
    )


def _open_text(first: bool) -> str:
    chain = _Chain()
    chain.add(
        "known",
        "SELECT owner.id AS owner_id, definition.id AS definition_id "
        "FROM triolet.owner, triolet.definition WHERE owner.id = $1 "
        "AND definition.job = $2 AND definition.fingerprint = $3 "
        "AND NOT EXISTS (SELECT 1 FROM triolet.instance "
        "WHERE job = $2 AND instance_key = $4)",
    )
    chain.add(
        "instance",
        "INSERT INTO triolet.instance (job, instance_key, parameters, created_at) "
        f"SELECT $2::text, $4::bytea, $5::text, {_AT} FROM known "
        "ON CONFLICT DO NOTHING RETURNING id",
    )
    chain.add(
        "execution",
        "INSERT INTO triolet.execution (instance_id, definition_id, owner_id, attempt, "
        "status, parameters, created_at, started_at, version) "
        f"SELECT instance.id, definition_id, owner_id, 1, 'STARTED', $6::text, {_AT}, "
        f"{_AT}, 1 FROM instance, known RETURNING id",
    )
    started = "''"
    if first:
        started = "started.id"
        chain.add(
            "started",
            "INSERT INTO triolet.step (execution_id, node, visit, name, status, "
            "created_at, started_at, version) SELECT execution.id, $7::text, $8::bigint, "
            f"$9::text, $10::text, {_AT}, CASE WHEN $11::bigint > 0 THEN {_AT} END, "
            "$11::bigint FROM execution RETURNING id",
        )
    rows = "instance, execution, started" if first else "instance, execution"
    return chain.noting(_AT, "instance.id", "execution.id", started, source=rows)


_OPEN = {first: _open_text(first) for first in (False, True)}


def _open_execution(command: OpenExecution) -> Compact[Opened] | None:
    first = command.first
    if command.anew or command.existing or (first is not None and first.inherit):
        return None
    values: list[Value] = [
        command.owner_id,
        command.job,
        command.definition.fingerprint,
        command.parameters.instance_key(command.job),
        encode_parameters(command.parameters, identifying_only=True),
        encode_parameters(command.parameters, identifying_only=False),
    ]
    if first is not None:
        values += _start_values(first)[:5]

    def read(fields: Sequence[int | None]) -> Opened:
        at, instance_id, execution_id, step_id = fields
        began = None if step_id is None else StepStarted(step_id, _int(at))
        return Opened(
            instance_id=_int(instance_id),
            execution_id=_int(execution_id),
            attempt=1,
            run=None,
            at=_int(at),
            restart_of=None,
            took_over=None,
            snapshot=Snapshot(),
            first=began,
        )

    return Compact((_OPEN[first is not None], values), read)


_REGISTER = (
    "WITH clock AS MATERIALIZED (SELECT triolet.now() AS at), made AS ("
    "INSERT INTO triolet.owner (facts, registered_at, lease_until) "
    "SELECT $1::text, at, at + $2::bigint FROM clock RETURNING id, lease_until) "
    "SELECT triolet.note((SELECT concat(id, ',', lease_until) FROM made))"
)
_SET_LEASE = (
    "WITH moved AS (UPDATE triolet.owner SET lease_until = {until} WHERE id = $1 "
    "RETURNING id, lease_until) "
    "SELECT triolet.note((SELECT concat(id, ',', lease_until) FROM moved))"
)
_RENEW = _SET_LEASE.format(until="triolet.now() + $2::bigint")
_RELEASE = _SET_LEASE.format(until="0")


def _registered(fields: Sequence[int | None]) -> OwnerRegistered:
    return OwnerRegistered(_int(fields[0]), _int(fields[1]))


def _register(command: RegisterOwner) -> Compact[OwnerRegistered]:
    values = (encode_facts(command.facts), command.lease)
    return Compact((_REGISTER, values), _registered)


def _renew(command: RenewLease) -> Compact[OwnerRegistered]:
    return Compact((_RENEW, (command.owner_id, command.lease)), _registered)


def _release(command: ReleaseOwner) -> Compact[OwnerReleased]:
    return Compact((_RELEASE, (command.owner_id,)), lambda _: OwnerReleased())


_MAKERS: dict[type, Callable[[Any], Compact[Any] | None]] = {
    Advance: _advance,
    CommitChunk: _commit_chunk,
    OpenExecution: _open_execution,
    RegisterOwner: _register,
    RenewLease: _renew,
    ReleaseOwner: _release,
}
