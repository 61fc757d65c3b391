"""Nothing of a job runs on when its runtime is gone, wherever its task lives."""

from contextlib import suppress

import pytest
import trio

from tests.job.harness import Store, trio_clock
from triolet.actors import (
    BatchStatus,
    Job,
    Runtime,
    RuntimeLeft,
    RuntimeOptions,
    Step,
    StepContext,
    TrioletError,
    open_runtime,
)

LEASE_SECS = 3.0
SECS = 12


class Work:
    """A step of twelve seconds, and what came of its launch."""

    def __init__(self) -> None:
        self.ticks: list[float] = []
        self.outcome: BatchStatus | TrioletError | None = None

    async def run(self, ctx: StepContext) -> None:
        for _ in range(SECS):
            await trio.sleep(1)
            self.ticks.append(trio.current_time())

    async def launch(self, runtime: Runtime) -> None:
        try:
            report = await runtime.launch(Job("long", [Step("work", self.run)]))
        except TrioletError as exc:
            self.outcome = exc
        else:
            self.outcome = report.status


@pytest.fixture
def store() -> Store:
    """Give a store that lives on the virtual clock."""
    return Store(clock=trio_clock)


async def test_leaving_waits_for_launches_outside(
    autojump_clock: trio.testing.MockClock, store: Store
) -> None:
    work = Work()
    options = RuntimeOptions(lease=LEASE_SECS, inline=True)
    async with trio.open_nursery() as outside:
        async with open_runtime(store, options) as runtime:
            outside.start_soon(work.launch, runtime)
            await trio.sleep(1.5)
        assert len(work.ticks) == SECS
    assert work.outcome is BatchStatus.COMPLETED


class Wrong(Exception):
    """What the block raises."""


@pytest.mark.parametrize("by_error", [True, False])
async def test_leaving_in_a_hurry_cancels_launches_outside(
    autojump_clock: trio.testing.MockClock, store: Store, by_error: bool
) -> None:
    work = Work()
    options = RuntimeOptions(lease=LEASE_SECS, inline=True)
    async with trio.open_nursery() as outside:
        with trio.CancelScope() as scope, suppress(Wrong):
            async with open_runtime(store, options) as runtime:
                outside.start_soon(work.launch, runtime)
                await trio.sleep(1.5)
                if by_error:
                    raise Wrong
                scope.cancel()
        ticks = list(work.ticks)
        (execution,) = store.dump().executions
        assert execution.status is BatchStatus.STOPPED
        await trio.sleep(SECS)
    assert work.ticks == ticks
    assert isinstance(work.outcome, RuntimeLeft)

    again = Work()
    async with open_runtime(store, options) as runtime:
        await again.launch(runtime)
    assert again.outcome is BatchStatus.COMPLETED


async def test_a_cancelled_wait_cancels_launches_outside(
    autojump_clock: trio.testing.MockClock, store: Store
) -> None:
    work = Work()
    options = RuntimeOptions(lease=LEASE_SECS, inline=True)
    async with trio.open_nursery() as outside:
        with trio.move_on_after(4.5):
            async with open_runtime(store, options) as runtime:
                outside.start_soon(work.launch, runtime)
                await trio.sleep(1.5)
    assert len(work.ticks) == 4
    assert isinstance(work.outcome, RuntimeLeft)
    (execution,) = store.dump().executions
    assert execution.status is BatchStatus.STOPPED


async def test_leaving_ends_servings_outside(
    autojump_clock: trio.testing.MockClock, store: Store
) -> None:
    work = Work()
    job = Job("long", [Step("work", work.run)])
    options = RuntimeOptions(lease=LEASE_SECS, inline=True)
    async with trio.open_nursery() as outside, open_runtime(store, options) as runtime:
        await runtime.enqueue(job)
        outside.start_soon(runtime.serve, [job])
        await trio.sleep(1.5)
    (request,) = store.dump().requests
    assert (request.status.value, len(work.ticks)) == ("DONE", SECS)
