"""The common commands as one statement each.

What such a statement refuses, and all that is rare, is carried out part by part by
`triolet.storage.sql`, which finds the reason.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..codec import encode_facts, encode_parameters
from ..commands import (
    Advance,
    ChunkCommitted,
    Command,
    CommitChunk,
    Opened,
    OpenExecution,
    OwnerRegistered,
    OwnerReleased,
    RegisterOwner,
    ReleaseOwner,
    RenewLease,
    Snapshot,
    StepStarted,
)
from ..sql.session import Value
from .advance import advance_statement, start_values
from .chain import AT, Chain, Compact, counted, fence, number_of
from .wire import Statement


def compact(command: Command[Any]) -> Compact[Any] | None:
    """Give the one statement of a command; None when it needs several."""
    make = _MAKERS.get(type(command))
    return None if make is None or command.enlisted else make(command)


def _chunk_text() -> str:
    chain = Chain()
    chain.add("fence", fence())
    chain.add(
        "moved",
        f"UPDATE triolet.step SET {counted([f'${at}' for at in range(5, 11)])}, "
        "checkpoint = $11, version = version + 1 FROM fence WHERE step.id = $3 "
        "AND execution_id = fence.id AND version = $4 AND status = 'STARTED' "
        "RETURNING step.id",
    )
    return chain.noting(AT)


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
    return Compact(
        (_CHUNK, values), lambda fields: ChunkCommitted(number_of(fields[0]))
    )


_CHUNK_CHECK = (
    f"WITH fence AS ({fence()}) SELECT 1 FROM fence, triolet.step "
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
    chain = Chain()
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
        f"SELECT $2::text, $4::bytea, $5::text, {AT} FROM known "
        "ON CONFLICT DO NOTHING RETURNING id",
    )
    chain.add(
        "execution",
        "INSERT INTO triolet.execution (instance_id, definition_id, owner_id, attempt, "
        "status, parameters, created_at, started_at, version) "
        f"SELECT instance.id, definition_id, owner_id, 1, 'STARTED', $6::text, {AT}, "
        f"{AT}, 1 FROM instance, known RETURNING id",
    )
    started = "''"
    if first:
        started = "started.id"
        chain.add(
            "started",
            "INSERT INTO triolet.step (execution_id, node, visit, name, status, "
            "created_at, started_at, version) SELECT execution.id, $7::text, $8::bigint, "
            f"$9::text, $10::text, {AT}, CASE WHEN $11::bigint > 0 THEN {AT} END, "
            "$11::bigint FROM execution RETURNING id",
        )
    rows = "instance, execution, started" if first else "instance, execution"
    return chain.noting(AT, "instance.id", "execution.id", started, source=rows)


_OPEN = {first: _open_text(first) for first in (False, True)}


def _open_execution(command: OpenExecution) -> Compact[Opened] | None:
    first = command.first
    if command.anew or command.existing or command.request_id is not None:
        return None
    if first is not None and (first.inherit or first.plan or first.partition):
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
        values += start_values(first)[:5]

    def read(fields: Sequence[int | None]) -> Opened:
        at, instance_id, execution_id, step_id = fields
        began = None if step_id is None else StepStarted(step_id, number_of(at))
        return Opened(
            instance_id=number_of(instance_id),
            execution_id=number_of(execution_id),
            attempt=1,
            run=None,
            at=number_of(at),
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
    return OwnerRegistered(number_of(fields[0]), number_of(fields[1]))


def _register(command: RegisterOwner) -> Compact[OwnerRegistered]:
    values = (encode_facts(command.facts), command.lease)
    return Compact((_REGISTER, values), _registered)


def _renew(command: RenewLease) -> Compact[OwnerRegistered]:
    return Compact((_RENEW, (command.owner_id, command.lease)), _registered)


def _release(command: ReleaseOwner) -> Compact[OwnerReleased]:
    return Compact((_RELEASE, (command.owner_id,)), lambda _: OwnerReleased())


_MAKERS: dict[type, Callable[[Any], Compact[Any] | None]] = {
    Advance: advance_statement,
    CommitChunk: _commit_chunk,
    OpenExecution: _open_execution,
    RegisterOwner: _register,
    RenewLease: _renew,
    ReleaseOwner: _release,
}
