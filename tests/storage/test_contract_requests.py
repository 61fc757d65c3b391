"""The contract of launch requests: claimed once, by lease, and never forgotten."""

import pytest
from attrs import evolve

from tests.storage.client import DAY, JOB, LEASE, Client, job_end
from triolet.storage.commands import (
    InstanceComplete,
    OwnerUnknown,
    ReleaseOwner,
    RenewLease,
)
from triolet.storage.commands.requesting import (
    ClaimLaunches,
    EndLaunch,
    FindLaunches,
    LaunchLost,
    LaunchWithdrawn,
    ListLaunches,
    RequestLaunch,
    RequestNotFound,
    RequestNotWaiting,
    WithdrawLaunch,
)
from triolet.storage.model.errors import InvalidParameter, InvalidValue
from triolet.storage.model.launch_request import (
    LaunchRefusal,
    LaunchRequest,
    RequestStatus,
    Withdrawal,
)
from triolet.storage.model.parameters import (
    JobParameter,
    ParameterKind,
    ParameterSet,
    parameters_of,
)
from triolet.storage.model.status import BatchStatus

REFUSAL = LaunchRefusal("instance_complete", "it has completed")
EVENING = parameters_of({"day": "evening", "limit": -7, "full": True})


def ask(client: Client, job: str = JOB, *, anew: bool = True) -> int:
    command = RequestLaunch(job=job, parameters=DAY, anew=anew)
    return client.ask(command).request_id


def claim(client: Client, owner_id: int, limit: int = 10, **more: object) -> list[int]:
    fields = {"owner_id": owner_id, "jobs": (JOB,), "limit": limit, **more}
    command = ClaimLaunches(**fields)  # type: ignore[arg-type]  # of a test
    return [one.id for one in client.ask(command).requests]


def end(
    client: Client,
    owner_id: int,
    request_id: int = 1,
    status: RequestStatus = RequestStatus.DONE,
) -> EndLaunch:
    return EndLaunch(request_id=request_id, owner_id=owner_id, status=status)


def request(client: Client, number: int = 1) -> LaunchRequest:
    return client.dump().requests[number - 1]


def test_a_request_is_kept_as_it_was_made(client: Client) -> None:
    client.ask(RequestLaunch(job=JOB, parameters=EVENING, anew=True))

    assert request(client) == LaunchRequest(
        id=1,
        job=JOB,
        parameters=EVENING,
        anew=True,
        status=RequestStatus.REQUESTED,
        requested_at=client.clock.now,
    )


def test_a_secret_is_not_taken() -> None:
    secret = JobParameter("token", ParameterKind.STRING, "hush", secret=True)
    with pytest.raises(InvalidParameter, match="'token' is secret") as caught:
        RequestLaunch(job=JOB, parameters=ParameterSet((secret,)))
    assert "hush" not in str(caught.value)


def test_the_oldest_are_claimed_first_and_once(client: Client) -> None:
    owner, other = client.owner(), client.owner()
    for _ in range(3):
        ask(client)

    assert claim(client, owner, limit=2) == [1, 2]
    assert claim(client, other) == [3]
    assert claim(client, other, held=(3,)) == []
    claimed = request(client)
    assert (claimed.status, claimed.owner_id, claimed.claimed_at) == (
        RequestStatus.CLAIMED,
        owner,
        client.clock.now,
    )


def test_of_the_requests_for_one_instance_the_oldest_is_claimed(client: Client) -> None:
    owner, other = client.owner(), client.owner()
    for _ in range(3):
        ask(client, anew=False)
    ask(client)
    ask(client, "other", anew=False)

    assert claim(client, owner, jobs=(JOB, "other")) == [1, 4, 5]
    client.ask(end(client, owner, 1, RequestStatus.REQUESTED))
    assert claim(client, other) == [1]
    client.ask(end(client, other, 1))
    assert claim(client, owner, held=(4, 5)) == [2]
    client.ask(end(client, owner, 2, RequestStatus.DONE))
    assert claim(client, other) == [3]


def test_only_the_named_jobs_are_claimed(client: Client) -> None:
    owner = client.owner()
    ask(client, "other")
    ask(client)

    assert claim(client, owner) == [2]
    assert claim(client, owner, jobs=()) == []


def test_a_claim_needs_an_owner(client: Client) -> None:
    ask(client)
    command = ClaimLaunches(owner_id=9, jobs=(JOB,), limit=1)
    assert client.refusal(command) == OwnerUnknown(9)
    with pytest.raises(InvalidValue, match="launch requests to claim must be a whole"):
        ClaimLaunches(owner_id=1, jobs=(JOB,), limit=0)


def test_a_claim_lasts_as_long_as_the_lease(client: Client) -> None:
    owner, other = client.owner(), client.owner(3 * LEASE)
    ask(client)
    assert claim(client, owner) == [1]

    client.clock.now += LEASE - 1
    assert claim(client, other) == []
    client.ask(RenewLease(owner, LEASE))
    client.clock.now += LEASE - 1
    assert claim(client, other) == []
    client.clock.now += 1
    assert claim(client, other) == [1]

    lost = LaunchLost(1)
    assert client.refusal(end(client, owner)) == lost
    assert client.refusal(client.opening(owner_id=owner, request_id=1)) == lost
    client.ask(end(client, other))


def test_a_released_owner_leaves_its_claims(client: Client) -> None:
    owner, other = client.owner(), client.owner()
    ask(client)
    claim(client, owner)
    client.ask(ReleaseOwner(owner))
    assert claim(client, other) == [1]


def test_what_a_dead_owner_claimed_is_claimed_at_once(client: Client) -> None:
    owner, other = client.owner(), client.owner()
    ask(client)
    claim(client, owner)
    assert claim(client, other, dead_owners=(owner,)) == [1]


def test_what_an_owner_lost_sight_of_it_claims_again(client: Client) -> None:
    owner = client.owner()
    ask(client)
    ask(client)
    claim(client, owner)
    assert claim(client, owner, held=(1,)) == [2]


def test_a_request_that_is_given_back_waits_again(client: Client) -> None:
    owner, other = client.owner(), client.owner()
    ask(client)
    claim(client, owner)
    client.ask(end(client, owner, status=RequestStatus.REQUESTED))

    assert request(client).status is RequestStatus.REQUESTED
    assert request(client).owner_id is None
    assert client.refusal(end(client, owner)) == LaunchLost(1)
    assert claim(client, other) == [1]


def test_a_request_ends_once(client: Client) -> None:
    owner = client.owner()
    ask(client)
    ask(client)
    claim(client, owner)
    client.ask(end(client, owner))
    client.ask(
        EndLaunch(
            request_id=2,
            owner_id=owner,
            status=RequestStatus.REFUSED,
            refusal=REFUSAL,
        )
    )

    assert client.refusal(end(client, owner)) == LaunchLost(1)
    done, refused = client.dump().requests
    assert (done.status, done.ended_at) == (RequestStatus.DONE, client.clock.now)
    assert (refused.status, refused.refusal) == (RequestStatus.REFUSED, REFUSAL)
    assert claim(client, client.owner()) == []


def test_the_execution_that_begins_is_noted(client: Client) -> None:
    owner = client.owner()
    ask(client)
    claim(client, owner)
    opened = client.open(request_id=1)
    assert request(client).execution_id == opened.execution_id

    client.fail(opened)
    again = client.open(request_id=1)
    assert request(client).execution_id == again.execution_id
    client.advance(again, end=job_end())
    complete = client.refusal(client.opening(request_id=1))
    assert isinstance(complete, InstanceComplete)


def test_an_unclaimed_request_begins_nothing(client: Client) -> None:
    client.owner()
    ask(client)
    assert client.refusal(client.opening(request_id=1)) == LaunchLost(1)
    assert client.refusal(client.opening(request_id=7)) == LaunchLost(7)


def test_a_look_tells_whether_anything_waits_and_who_holds_the_rest(
    client: Client,
) -> None:
    owner, other = client.owner(), client.owner()
    look = FindLaunches(owner_id=owner, jobs=(JOB,))
    assert not client.ask(look).waiting
    ask(client)
    assert client.ask(look).waiting
    claim(client, other)
    found = client.ask(look)
    assert not found.waiting
    assert [one.owner_id for one in found.holders] == [other]
    client.clock.now += LEASE
    found = client.ask(look)
    assert found.waiting
    assert found.holders == ()


def test_requests_are_listed_newest_first(client: Client) -> None:
    owner = client.owner()
    for job in (JOB, "other", JOB):
        ask(client, job)
    claim(client, owner, limit=1)

    page = client.ask(ListLaunches(limit=2))
    assert ([one.id for one in page.requests], page.more) == ([3, 2], True)
    page = client.ask(ListLaunches(limit=2, before=2))
    assert ([one.id for one in page.requests], page.more) == ([1], False)
    page = client.ask(ListLaunches(JOB, RequestStatus.REQUESTED))
    assert [one.id for one in page.requests] == [3]


def test_a_listed_request_tells_how_its_execution_stands(client: Client) -> None:
    owner = client.owner()
    for _ in range(2):
        ask(client, JOB)
    claim(client, owner, limit=1)
    client.open(owner_id=owner, request_id=1)

    page = client.ask(ListLaunches())

    assert page.outcomes == (None, BatchStatus.STARTED)


def withdraw(number: int = 1, reason: str | None = "no paper") -> WithdrawLaunch:
    return WithdrawLaunch(request_id=number, actor="eve", reason=reason)


def test_a_withdrawn_request_is_kept_and_never_claimed(client: Client) -> None:
    owner = client.owner()
    ask(client)
    waiting = request(client)
    client.clock.now += 5

    reply = client.ask(withdraw())

    assert reply == LaunchWithdrawn(
        evolve(
            waiting,
            status=RequestStatus.WITHDRAWN,
            ended_at=client.clock.now,
            withdrawal=Withdrawal("eve", "no paper"),
        ),
        already=False,
    )
    assert request(client) == reply.request
    assert claim(client, owner) == []
    page = client.ask(ListLaunches(status=RequestStatus.WITHDRAWN))
    assert page.requests == (reply.request,)


def test_the_first_who_withdraws_is_kept(client: Client) -> None:
    ask(client)
    first = client.ask(withdraw(reason=None))
    before = client.dump()
    client.clock.now += 5

    assert client.ask(withdraw()) == evolve(first, already=True)
    assert client.dump() == before


def test_the_next_request_for_the_instance_has_its_turn(client: Client) -> None:
    owner = client.owner()
    ask(client, anew=False)
    ask(client, anew=False)

    client.ask(withdraw())

    assert claim(client, owner) == [2]


def test_what_is_worked_on_or_has_ended_is_not_withdrawn(client: Client) -> None:
    owner = client.owner()
    ask(client)
    claim(client, owner)
    status = RequestStatus.CLAIMED
    refusal = RequestNotWaiting(1, status, None)
    assert client.refusal(withdraw()) == refusal
    assert str(refusal).endswith(
        "its launch is about to begin, and can be stopped then"
    )

    client.open(anew=True, request_id=1)
    refusal = RequestNotWaiting(1, status, 1)
    assert client.refusal(withdraw()) == refusal
    assert "stop execution 1 instead" in str(refusal)

    client.ask(end(client, owner))
    refusal = RequestNotWaiting(1, RequestStatus.DONE, 1)
    assert client.refusal(withdraw()) == refusal
    assert "nothing to withdraw" in str(refusal)


def test_a_request_that_was_given_back_may_be_withdrawn(client: Client) -> None:
    owner = client.owner()
    ask(client)
    claim(client, owner)
    client.open(anew=True, request_id=1)
    client.ask(end(client, owner, status=RequestStatus.REQUESTED))
    before = client.execution(1)

    found = client.ask(withdraw()).request

    assert (found.status, found.execution_id) == (RequestStatus.WITHDRAWN, 1)
    assert client.execution(1) == before


def test_no_request_is_withdrawn_that_is_not_there(client: Client) -> None:
    assert client.refusal(withdraw(9)) == RequestNotFound(9)
    for number in (0, 1 << 63):
        with pytest.raises(RequestNotFound, match="'triolet requests' lists"):
            withdraw(number)
    with pytest.raises(InvalidValue, match="the number of a launch request"):
        withdraw(True)
    with pytest.raises(InvalidValue, match="the reason"):
        withdraw(reason="")
