"""Launch requests in SQL."""

from ..backend import Waits
from ..codec import decode_facts, encode_launch_refusal, encode_parameters
from ..commands.requesting import (
    LAUNCH_CHANNEL,
    ClaimLaunches,
    EndLaunch,
    FindLaunches,
    Holder,
    LaunchEnded,
    LaunchesClaimed,
    LaunchesFound,
    LaunchLost,
    LaunchPage,
    LaunchRequested,
    LaunchWithdrawn,
    ListLaunches,
    RequestLaunch,
    RequestNotFound,
    RequestNotWaiting,
    WithdrawLaunch,
    claimed,
    free_of,
)
from ..model.launch_request import RequestStatus
from ..model.status import BatchStatus
from . import ownership
from .rows import REQUEST, REQUEST_AND_OUTCOME, request_of
from .session import Session, Value

INSERT_REQUEST = (
    "INSERT INTO triolet.launch_request "
    "(job, parameters, anew, instance_key, requested_at) VALUES ($1, $2, $3, $4, $5)"
)


def request_values(command: RequestLaunch, now: int) -> tuple[Value, ...]:
    """Give what is inserted for a request."""
    parameters = encode_parameters(command.parameters, identifying_only=False)
    return command.job, parameters, int(command.anew), command.instance_key, now


def request_launch(
    db: Session, command: RequestLaunch, now: int
) -> Waits[LaunchRequested]:
    """Enter a request."""
    request_id = yield from db.insert(INSERT_REQUEST, request_values(command, now))
    assert request_id is not None
    yield from db.notify(LAUNCH_CHANNEL)
    return LaunchRequested(request_id)


_TURN = (
    "triolet.launch_request o WHERE o.instance_key = r.instance_key "
    "AND o.status IN ('REQUESTED', 'CLAIMED')"
)
"""Of requests for one instance, only the oldest open one may be claimed."""


def _free_text(jobs: int, dead: int) -> str:
    """Write the query of what an owner may claim: owner, time, limit, jobs, dead ones."""
    names = ", ".join(f"${at}" for at in range(4, 4 + jobs))
    gone = ", ".join(f"${at}" for at in range(4 + jobs, 4 + jobs + dead))
    proved = f"OR r.owner_id IN ({gone}) " if dead else ""
    return (
        f"{REQUEST} WHERE r.status IN ('REQUESTED', 'CLAIMED') AND r.job IN ({names}) "
        f"AND (r.status = 'REQUESTED' OR r.owner_id = $1 {proved}OR EXISTS "
        "(SELECT 1 FROM triolet.owner w WHERE w.id = r.owner_id "
        "AND w.lease_until <= $2)) AND NOT EXISTS "
        f"(SELECT 1 FROM {_TURN} AND o.id < r.id) ORDER BY r.id LIMIT $3"
    )


_LOCKED = " FOR UPDATE OF r SKIP LOCKED"
_CLAIM = (
    "UPDATE triolet.launch_request SET status = 'CLAIMED', owner_id = $2, "
    "claimed_at = $3 WHERE id = $1"
)


def claim_launches(
    db: Session, command: ClaimLaunches, now: int
) -> Waits[LaunchesClaimed]:
    """Claim what is free; what somebody else is claiming right now is passed over."""
    owner_id, jobs, dead = command.owner_id, command.jobs, command.dead_owners
    yield from ownership.facts_of(db, owner_id)
    if not jobs:
        return LaunchesClaimed(())
    rows = yield from db.fetch(
        _free_text(len(jobs), len(dead)) + _LOCKED,
        (owner_id, now, command.limit + len(command.held), *jobs, *dead),
    )
    free = free_of(map(request_of, rows), command.held, command.limit)
    for one in free:
        yield from db.change(_CLAIM, (one.id, owner_id, now))
    return LaunchesClaimed(tuple(claimed(one, owner_id, now) for one in free))


def find_launches(
    db: Session, question: FindLaunches, now: int
) -> Waits[LaunchesFound]:
    """Look as a claim does, and leave everything as it is."""
    owner_id, jobs = question.owner_id, question.jobs
    if not jobs:
        return LaunchesFound(False, ())
    names = ", ".join(f"${at}" for at in range(3, 3 + len(jobs)))
    holders = (
        "SELECT DISTINCT w.id, w.facts FROM triolet.launch_request r "
        "JOIN triolet.owner w ON w.id = r.owner_id "
        f"WHERE r.status = 'CLAIMED' AND r.job IN ({names}) AND w.id <> $1 "
        "AND w.lease_until > $2 ORDER BY w.id"
    )
    limit = 1 + len(question.held)
    rows, others = yield from db.fetch_each(
        [
            (_free_text(len(jobs), 0), (owner_id, now, limit, *jobs)),
            (holders, (owner_id, now, *jobs)),
        ]
    )
    return LaunchesFound(
        bool(free_of(map(request_of, rows), question.held, 1)),
        tuple(Holder(holder, decode_facts(facts)) for holder, facts in others),
    )


_END = (
    "UPDATE triolet.launch_request SET status = $3, refusal = $4, ended_at = $5, "
    "owner_id = CASE WHEN $3 = 'REQUESTED' THEN NULL ELSE owner_id END, "
    "claimed_at = CASE WHEN $3 = 'REQUESTED' THEN NULL ELSE claimed_at END "
    "WHERE id = $1 AND owner_id = $2 AND status = 'CLAIMED'"
)


_WAITING = (
    "SELECT 1 FROM triolet.launch_request r WHERE r.id = $1 "
    f"AND (r.status = 'REQUESTED' OR EXISTS (SELECT 1 FROM {_TURN}))"
)


def end_launch(db: Session, command: EndLaunch, now: int) -> Waits[LaunchEnded]:
    """End a request that is the owner's, or give it back."""
    values = (
        command.request_id,
        command.owner_id,
        command.status.value,
        encode_launch_refusal(command.refusal),
        now if command.status.ended else None,
    )
    if (yield from db.change(_END, values)) != 1:
        raise LaunchLost(command.request_id)
    if (yield from db.fetch(_WAITING, (command.request_id,))):
        yield from db.notify(LAUNCH_CHANNEL)
    return LaunchEnded()


_WITHDRAW = (
    "UPDATE triolet.launch_request SET status = 'WITHDRAWN', ended_at = $2, "
    "withdrawn_by = $3, withdrawn_why = $4 WHERE id = $1 AND status = 'REQUESTED'"
)


def withdraw_launch(
    db: Session, command: WithdrawLaunch, now: int
) -> Waits[LaunchWithdrawn]:
    """Withdraw a request that waits; who is claiming it at the same moment wins."""
    key = command.request_id
    values = (key, now, command.actor, command.reason)
    changed = yield from db.change(_WITHDRAW, values)
    rows = yield from db.fetch(f"{REQUEST} WHERE r.id = $1", (key,))
    if not rows:
        raise RequestNotFound(key)
    found = request_of(rows[0])
    if found.status is not RequestStatus.WITHDRAWN:
        raise RequestNotWaiting(key, found.status, found.execution_id)
    if changed and (yield from db.fetch(_WAITING, (key,))):
        yield from db.notify(LAUNCH_CHANNEL)
    return LaunchWithdrawn(found, already=not changed)


_CLAIMED = (
    "SELECT 1 FROM triolet.launch_request r WHERE r.id = $1 AND r.owner_id = $2 "
    "AND r.status = 'CLAIMED' FOR UPDATE OF r"
)
_NOTE = "UPDATE triolet.launch_request SET execution_id = $2 WHERE id = $1"


def check_claim(db: Session, request_id: int, owner_id: int) -> Waits[None]:
    """Refuse to launch for a request that is not the owner's any more."""
    if not (yield from db.fetch(_CLAIMED, (request_id, owner_id))):
        raise LaunchLost(request_id)


def note_execution(db: Session, request_id: int, execution_id: int) -> Waits[None]:
    """Note in a request which execution began for it."""
    yield from db.change(_NOTE, (request_id, execution_id))


def list_launches(db: Session, question: ListLaunches, now: int) -> Waits[LaunchPage]:
    """List requests, newest first, one more than asked to know whether there are."""
    wanted: list[tuple[str, Value]] = []
    if question.job is not None:
        wanted.append(("r.job =", question.job))
    if question.status is not None:
        wanted.append(("r.status =", question.status.value))
    if question.before is not None:
        wanted.append(("r.id <", question.before))
    where = " AND ".join(f"{one} ${at}" for at, (one, _) in enumerate(wanted, 1))
    rows = yield from db.fetch(
        f"{REQUEST_AND_OUTCOME} WHERE {where or 'TRUE'} "
        f"ORDER BY r.id DESC LIMIT ${len(wanted) + 1}",
        (*(value for _, value in wanted), question.limit + 1),
    )
    shown = rows[: question.limit]
    return LaunchPage(
        tuple(map(request_of, shown)),
        len(rows) > question.limit,
        tuple(None if row[-1] is None else BatchStatus(row[-1]) for row in shown),
    )
