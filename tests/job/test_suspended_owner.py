"""An owner that was suspended finds out what was taken over meanwhile, and lets go."""

import pytest
import trio
import trio.testing
from attrs import define

from tests.job.harness import Store, running, trio_clock
from triolet.actors import (
    BatchStatus,
    Job,
    JobStep,
    LaunchReport,
    LeaseLost,
    Node,
    PartitionedStep,
    Runtime,
    Step,
    StepContext,
    TrioletError,
)
from triolet.storage.model.launch_request import RequestStatus

LEASE = 30.0
SUSPENDED = round(10 * LEASE * 1_000_000)


@define
class StoreClock:
    """Goes on while the machine, and with it trio's clock, is suspended."""

    ahead: int = 0

    def __call__(self) -> int:
        return trio_clock() + self.ahead


@define
class Launched:
    """A launch in the background, and what came of it."""

    ticks: int = 0
    outcome: BatchStatus | TrioletError | None = None

    async def work(self, ctx: StepContext) -> None:
        if ctx.step_attempt == 1:
            for _ in range(100):
                await trio.sleep(1)
                self.ticks += 1

    def job(self, kind: str) -> Job:
        nodes: dict[str, Node] = {
            "step": Step("work", self.work),
            "partitions": PartitionedStep("work", self.work, lambda _: [("only", {})]),
            "child": JobStep("work", Job("inner", [Step("inside", self.work)])),
        }
        return Job("demo", [nodes[kind]])

    async def launch(self, runtime: Runtime, job: Job) -> None:
        try:
            report: LaunchReport = await runtime.launch(job)
        except TrioletError as exc:
            self.outcome = exc
        else:
            self.outcome = report.status


@pytest.mark.parametrize("kind", ["step", "partitions", "child"])
async def test_what_was_taken_over_is_cancelled_at_the_next_renewal(
    autojump_clock: trio.testing.MockClock, kind: str
) -> None:
    clock = StoreClock()
    store, launched = Store(clock=clock), Launched()
    job = launched.job(kind)
    async with running(store, lease=LEASE) as first, trio.open_nursery() as nursery:
        nursery.start_soon(launched.launch, first, job)
        await trio.sleep(1.5)
        clock.ahead += SUSPENDED
        async with running(store, lease=LEASE) as second:
            report = await second.launch(job)
        assert (report.status, report.took_over) == (BatchStatus.COMPLETED, 1)
        before = launched.ticks

        await trio.sleep(LEASE / 3)

        assert isinstance(launched.outcome, LeaseLost)
        assert launched.ticks <= before + LEASE / 3
        let_go = launched.ticks
        await trio.sleep(LEASE)
        assert launched.ticks == let_go
        assert first.running == ()


async def test_what_nobody_took_over_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clock = StoreClock()
    store, launched = Store(clock=clock), Launched()
    async with running(store, lease=LEASE) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(launched.launch, runtime, launched.job("step"))
        await trio.sleep(1.5)
        clock.ahead += SUSPENDED
    assert launched.outcome is BatchStatus.COMPLETED
    assert len(store.executions) == 1


async def test_a_request_whose_execution_was_taken_over_is_done_when_that_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    clock = StoreClock()
    store, launched = Store(clock=clock), Launched()
    job = launched.job("step")
    async with running(store, lease=LEASE) as first, trio.open_nursery() as nursery:
        await first.enqueue(job)
        nursery.start_soon(first.serve, [job])
        await trio.sleep(1.5)
        clock.ahead += SUSPENDED
        async with running(store, lease=LEASE) as second:
            report = await second.launch(job)
        assert report.took_over == 1
        await trio.sleep(LEASE)
        first.stop()
    (request,) = store.dump().requests
    assert (request.status, request.execution_id) == (RequestStatus.DONE, 1)
    assert launched.ticks < LEASE
