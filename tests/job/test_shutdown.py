"""Shutdown: no more launches, one deadline for what runs, and what did not drain."""

import pytest
import trio
import trio.testing

from tests.job.harness import Store, job, running
from triolet.actors import (
    ActorKind,
    BatchStatus,
    Job,
    ShuttingDown,
    Split,
    Step,
    StepContext,
)


def lingering(seconds: float) -> Step:
    async def work(ctx: StepContext) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)

    return Step(f"lingers-{seconds}", work)


async def test_what_ends_in_time_is_drained(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, job(lingering(5), lingering(6)))
        nursery.start_soon(runtime.launch, Job("other", [lingering(3)]))
        await trio.sleep(1)
        began = trio.current_time()
        report = await runtime.shutdown(deadline=10)
        assert report.drained
        assert report.left == ()
        assert trio.current_time() - began == pytest.approx(4)
        with pytest.raises(ShuttingDown):
            await runtime.launch(job(lingering(1)))
    assert {one.status for one in store.executions} == {BatchStatus.STOPPED}


async def test_what_does_not_end_in_time_is_in_the_report(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    both = Split("both", [lingering(50), lingering(2)], max_parallel=2)
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, job(lingering(0), both))
        await trio.sleep(1)
        report = await runtime.shutdown(deadline=10)
        assert not report.drained
        assert report.executions == (1,)
        (left,) = report.left
        (split,) = left.children
        assert split.kind is ActorKind.SPLIT
        assert [branch.children[0].name for branch in split.children] == ["lingers-50"]
    assert [one.status for one in store.executions] == [BatchStatus.STOPPED]
    assert store.settled()


async def test_a_shutdown_of_nothing_is_over_at_once(store: Store) -> None:
    async with running(store) as runtime:
        assert (await runtime.shutdown()).drained
        assert (await runtime.shutdown(0)).drained
