"""A stop whose process died before it heeded it: whoever serves closes the execution."""

import pytest
import trio
import trio.testing

from tests.job.harness import Store, running, single, trio_clock
from tests.storage.backends import Clock
from tests.storage.client import Client, step_end
from triolet.actors import BatchStatus, Job, RequestStatus, ServedRequest, StepContext
from triolet.actors.job.launch import launch_of, opening_of
from triolet.actors.plan.compile import compile_job
from triolet.storage.commands import Advance, OwnerFacts, RegisterOwner
from triolet.storage.commands.requesting import ClaimLaunches

LEASE_SECS = 30
STRANGER = OwnerFacts(host="elsewhere", pid=1)


@pytest.fixture
def store() -> Store:
    return Store(clock=trio_clock)


async def never(ctx: StepContext) -> None:
    raise AssertionError("what was stopped runs")


async def left_by_a_stranger(store: Store, job: Job) -> tuple[Client, int]:
    """Have somebody of whom nothing is known begin what is requested, and go silent."""
    async with running(store) as runtime:
        await runtime.enqueue(job)
    client = Client(store, Clock())
    owner = client.ask(RegisterOwner(STRANGER, LEASE_SECS * 1_000_000))
    claim = ClaimLaunches(owner_id=owner.owner_id, jobs=(job.name,), limit=1)
    (request,) = client.ask(claim).requests
    launch = launch_of(compile_job(job), {}, anew=False, request_id=request.id)
    client.ask(opening_of(launch, owner.owner_id, 7))
    return client, owner.owner_id


async def test_what_was_to_be_stopped_is_closed_when_the_lease_has_run_out(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    """C076."""
    job = single(never)
    heard: list[ServedRequest] = []
    await left_by_a_stranger(store, job)
    async with running(store) as runtime, trio.open_nursery() as nursery:
        await runtime.request_stop(1, actor="eve")
        nursery.start_soon(lambda: runtime.serve([job], ended=heard.append))
        await trio.sleep(LEASE_SECS - 2)
        assert [one.status for one in store.executions] == ["STARTED"]
        await trio.sleep(4)
        operations = await runtime.operations(1)
        runtime.stop()

    assert [one.status for one in store.executions] == ["STOPPED"]
    assert [one.status for one in heard] == [RequestStatus.DONE]
    assert "serve" in {one.actor for one in operations.operations}


async def test_what_an_operator_has_to_decide_stays_as_it_is(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    job = single(never)
    client, owner_id = await left_by_a_stranger(store, job)
    unknown = step_end(1, status=BatchStatus.UNKNOWN, exit_code="UNKNOWN")
    client.ask(Advance(execution_id=1, owner_id=owner_id, finish=unknown))
    heard: list[ServedRequest] = []
    async with running(store) as runtime:
        await runtime.request_stop(1, actor="eve")
        await trio.sleep(LEASE_SECS + 1)
        await runtime.serve([job], until_idle=True, ended=heard.append)
        (seen,) = (await runtime.diagnose(1)).unresolved
    assert seen.execution.status is BatchStatus.STARTED
    assert [one.status for one in heard] == [RequestStatus.DONE]
