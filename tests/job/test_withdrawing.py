"""Launch requests that are withdrawn through a runtime."""

import pytest
import trio.testing

from tests.job.harness import Store, Trace, job, running
from triolet.actors import (
    InvalidValue,
    RequestNotFound,
    RequestNotWaiting,
    RequestStatus,
    Step,
    Withdrawal,
)


async def test_a_withdrawn_request_is_not_served(store: Store, trace: Trace) -> None:
    patient = job(trace.step("a"))
    async with running(store) as runtime:
        number = await runtime.enqueue(patient, anew=True)

        done = await runtime.withdraw(number, actor="eve", reason="wrong day")

        assert (done.already, done.request.withdrawal) == (
            False,
            Withdrawal("eve", "wrong day"),
        )
        assert (await runtime.withdraw(number, actor="adam")).already
        await runtime.serve([patient], until_idle=True)
        (line,) = (await runtime.requests()).requests
        assert line == done.request
        assert line.status is RequestStatus.WITHDRAWN
    assert trace.calls == []


async def test_what_is_worked_on_is_not_withdrawn(store: Store) -> None:
    gate = trio.Event()

    async def wait(ctx: object) -> None:
        await gate.wait()

    patient = job(Step("a", wait))
    async with running(store) as runtime, trio.open_nursery() as nursery:
        number = await runtime.enqueue(patient)
        nursery.start_soon(lambda: runtime.serve([patient], until_idle=True))
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(RequestNotWaiting, match="stop execution 1 instead"):
            await runtime.withdraw(number, actor="eve")
        with pytest.raises(RequestNotFound):
            await runtime.withdraw(9, actor="eve")
        with pytest.raises(InvalidValue):
            await runtime.withdraw(number, actor="")
        gate.set()
