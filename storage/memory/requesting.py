"""Launch requests in memory."""

from collections.abc import Container, Iterator

from attrs import evolve

from ..codec import encode_parameters
from ..commands.requesting import (
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
from ..model.launch_request import LaunchRequest, RequestStatus, Withdrawal
from .tables import Tables


def request_launch(tables: Tables, command: RequestLaunch, now: int) -> LaunchRequested:
    """Enter a request."""
    encode_parameters(command.parameters, identifying_only=False)  # for its limits
    request = LaunchRequest(
        id=len(tables.requests) + 1,
        job=command.job,
        parameters=command.parameters,
        anew=command.anew,
        status=RequestStatus.REQUESTED,
        requested_at=now,
    )
    tables.requests[request.id] = request
    return LaunchRequested(request.id)


def claim_launches(tables: Tables, command: ClaimLaunches, now: int) -> LaunchesClaimed:
    """Claim what is free."""
    tables.owner(command.owner_id)
    free = free_of(
        _free(tables, command, command.dead_owners, now), command.held, command.limit
    )
    taken = tuple(claimed(one, command.owner_id, now) for one in free)
    tables.requests.update((one.id, one) for one in taken)
    return LaunchesClaimed(taken)


def _free(
    tables: Tables, wanted: ClaimLaunches | FindLaunches, dead: Container[int], now: int
) -> Iterator[LaunchRequest]:
    earlier: set[bytes] = set()
    for one in tables.requests.values():
        if one.status.ended or one.job not in wanted.jobs:
            continue
        if not one.anew:
            # Of requests for one instance, only the oldest open one may be claimed.
            instance = one.parameters.instance_key(one.job)
            if instance in earlier:
                continue
            earlier.add(instance)
        if (
            one.owner_id is None
            or one.owner_id == wanted.owner_id
            or one.owner_id in dead
            or tables.owner(one.owner_id).lease_until <= now
        ):
            yield one


def find_launches(tables: Tables, question: FindLaunches, now: int) -> LaunchesFound:
    """Look as a claim does, and leave everything as it is."""
    holders = {
        one.owner_id
        for one in tables.requests.values()
        if one.status is RequestStatus.CLAIMED
        and one.job in question.jobs
        and one.owner_id is not None
    } - {question.owner_id}
    alive = [tables.owner(one) for one in sorted(holders)]
    return LaunchesFound(
        bool(free_of(_free(tables, question, (), now), question.held, 1)),
        tuple(Holder(one.id, one.facts) for one in alive if one.lease_until > now),
    )


def check_claim(tables: Tables, request_id: int, owner_id: int) -> LaunchRequest:
    """Refuse to work on a request that is not the owner's any more."""
    request = tables.requests.get(request_id)
    if (
        request is None
        or request.owner_id != owner_id
        or request.status is not RequestStatus.CLAIMED
    ):
        raise LaunchLost(request_id)
    return request


def note_execution(tables: Tables, request_id: int, execution_id: int) -> None:
    """Note in a request which execution began for it."""
    request = tables.requests[request_id]
    tables.requests[request_id] = evolve(request, execution_id=execution_id)


def end_launch(tables: Tables, command: EndLaunch, now: int) -> LaunchEnded:
    """End a request that is the owner's, or give it back."""
    request = check_claim(tables, command.request_id, command.owner_id)
    back = command.status is RequestStatus.REQUESTED
    tables.requests[request.id] = evolve(
        request,
        status=command.status,
        refusal=command.refusal,
        ended_at=now if command.status.ended else None,
        owner_id=None if back else request.owner_id,
        claimed_at=None if back else request.claimed_at,
    )
    return LaunchEnded()


def withdraw_launch(
    tables: Tables, command: WithdrawLaunch, now: int
) -> LaunchWithdrawn:
    """Withdraw a request that waits."""
    request = tables.requests.get(command.request_id)
    if request is None:
        raise RequestNotFound(command.request_id)
    if request.status is RequestStatus.WITHDRAWN:
        return LaunchWithdrawn(request, already=True)
    if request.status is not RequestStatus.REQUESTED:
        raise RequestNotWaiting(request.id, request.status, request.execution_id)
    withdrawn = tables.requests[request.id] = evolve(
        request,
        status=RequestStatus.WITHDRAWN,
        ended_at=now,
        withdrawal=Withdrawal(command.actor, command.reason),
    )
    return LaunchWithdrawn(withdrawn, already=False)


def list_launches(tables: Tables, question: ListLaunches, now: int) -> LaunchPage:
    """List requests, newest first, one more than asked to know whether there are."""
    found = [
        one
        for one in reversed(tables.requests.values())
        if question.job in (None, one.job)
        and question.status in (None, one.status)
        and (question.before is None or one.id < question.before)
    ]
    shown = tuple(found[: question.limit])
    return LaunchPage(
        shown,
        len(found) > question.limit,
        tuple(
            None
            if one.execution_id is None
            else tables.executions[one.execution_id].record.status
            for one in shown
        ),
    )
