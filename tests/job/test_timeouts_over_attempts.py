"""Time that passed before a crash counts; after any other end there is the whole time."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.harness import (
    Crash,
    Store,
    Trace,
    job,
    launch,
    message_of,
    running,
    single,
    trio_clock,
)
from triolet.actors import (
    BatchStatus,
    Job,
    JobContext,
    JobListener,
    PartitionedStep,
    Split,
    Step,
    StepContext,
    StepListener,
)


@pytest.fixture
def store() -> Store:
    """A store that lives in the time of the program."""
    return Store(clock=trio_clock)


async def die(store: Store, patient: Job) -> None:
    """Launch what lets its process die."""
    with pytest.raises(BaseExceptionGroup):
        await launch(store, patient)
    store.down = None
    owners = store.inner._tables.owners
    owners[len(owners)] = evolve(owners[len(owners)], lease_until=0)


def fatal(store: Store, *seconds: float) -> Callable[[StepContext], Any]:
    """Make a tasklet whose n-th attempt kills after so long; then it goes on for ever."""

    async def work(ctx: StepContext) -> None:
        if ctx.step_attempt > len(seconds):
            await trio.sleep(3600)
        await trio.sleep(seconds[ctx.step_attempt - 1])
        store.down = Crash()

    return work


async def took(store: Store, patient: Job) -> float:
    """Launch what must fail because its time is over; tell how long that took."""
    began = trio.current_time()
    assert "longer than its timeout of 10 s" in message_of(await launch(store, patient))
    return trio.current_time() - began


async def test_what_passed_before_a_crash_counts_for_a_step(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    patient = single(fatal(store, 3), timeout=10)
    await die(store, patient)
    await trio.sleep(2)
    assert await took(store, patient) == 5
    assert store.statuses == [("work", "FAILED")] * 2


async def test_what_passed_since_the_first_of_several_crashes_counts(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    patient = single(fatal(store, 3, 4), timeout=10)
    await die(store, patient)
    await die(store, patient)
    assert await took(store, patient) == 3


async def test_a_step_whose_time_was_over_before_it_was_recovered_does_not_run(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    kill = fatal(store, 3)

    async def work(ctx: StepContext) -> None:
        trace.calls.append("work")
        await kill(ctx)

    async def before(ctx: StepContext) -> None:
        trace.calls.append("before")

    listener = StepListener("all", before=before)
    patient = single(work, timeout=10, listeners=[listener])
    await die(store, patient)
    await trio.sleep(100)
    assert await took(store, patient) == 0
    assert trace.calls == ["before", "work"]
    assert store.statuses == [("work", "FAILED")] * 2


@pytest.mark.parametrize("end", ["time", "failure", "stop"])
async def test_after_an_end_of_its_own_a_step_has_the_whole_time(
    store: Store, end: str, autojump_clock: trio.testing.MockClock
) -> None:
    kill = fatal(store, 3)

    async def work(ctx: StepContext) -> None:
        if ctx.attempt == 2 and end == "failure":
            raise ValueError("broken")
        if ctx.attempt == 2 and end == "stop":
            runtime.stop(ctx.execution_id)
        await kill(ctx)

    patient = single(work, timeout=10)
    await die(store, patient)
    async with running(store) as runtime:
        report = await runtime.launch(patient)
    assert report.status is not BatchStatus.COMPLETED
    assert await took(store, patient) == 10


async def test_a_step_that_had_completed_and_is_run_again_has_the_whole_time(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    kill = fatal(store, 3)

    async def again(ctx: StepContext) -> None:
        await trio.sleep(4 if ctx.step_attempt == 1 else 3600)

    repeated = Step("again", again, timeout=10, allow_start_if_complete=True)
    patient = job(repeated, Step("fatal", kill))
    await die(store, patient)
    assert await took(store, patient) == 10


async def test_another_step_than_the_one_that_died_has_the_whole_time(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def once(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            await kill(ctx)

    async def forever(ctx: StepContext) -> None:
        await trio.sleep(3600)

    kill = fatal(store, 3)
    patient = job(Step("once", once), Step("next", forever, timeout=10))
    await die(store, patient)
    assert await took(store, patient) == 10


async def test_a_clock_of_the_store_that_stepped_back_adds_no_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    behind = [0]
    store = Store(clock=lambda: trio_clock() - behind[0])
    patient = single(fatal(store, 3), timeout=10)
    await die(store, patient)
    behind[0] = 1_000_000_000
    assert await took(store, patient) == 10


async def test_what_passed_before_a_crash_counts_for_each_step_of_a_split(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    slow = Step("slow", fatal(store, 3), timeout=10)
    quick = Step("quick", fatal(store, 100), timeout=10)
    split = Split("both", [slow, quick], max_parallel=1, on_failure="drain_siblings")
    patient = job(trace.step("first"), split)
    await die(store, patient)
    assert await took(store, patient) == 17


def two(ctx: object) -> list[tuple[str, dict[str, Any]]]:
    return [("a", {}), ("b", {})]


async def test_what_passed_before_a_crash_counts_for_each_partition(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    worker = Step("share", fatal(store, 3), timeout=10)
    parts = PartitionedStep(
        "parts", worker, two, max_workers=1, on_failure="drain_siblings"
    )
    patient = job(parts)
    await die(store, patient)
    began = trio.current_time()
    with pytest.raises(BaseExceptionGroup):
        await launch(store, patient)
    assert trio.current_time() - began == 7 + 3


@pytest.mark.parametrize(("after", "left"), [(2, 5), (100, 0)])
async def test_what_passed_before_a_crash_counts_for_all_partitions_together(
    store: Store, autojump_clock: trio.testing.MockClock, after: float, left: float
) -> None:
    parts = PartitionedStep("parts", fatal(store, 3), two, max_workers=1, timeout=10)
    patient = job(parts)
    await die(store, patient)
    await trio.sleep(after)
    assert await took(store, patient) == left
    assert await took(store, patient) == 10


# Jobs


async def test_what_passed_before_crashes_counts_for_a_job(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    patient = job(trace.step("a"), Step("b", fatal(store, 3, 4)), timeout=10)
    await die(store, patient)
    await die(store, patient)
    await trio.sleep(1)
    assert await took(store, patient) == 2
    assert trace.calls == ["a"]
    assert await took(store, patient) == 10


async def test_a_job_whose_time_was_over_before_it_was_recovered_begins_nothing(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def before(ctx: JobContext) -> None:
        trace.calls.append("before")

    listener = JobListener("all", before=before)
    patient = job(Step("a", fatal(store, 3)), timeout=10, listeners=[listener])
    await die(store, patient)
    await trio.sleep(100)
    assert await took(store, patient) == 0
    assert trace.calls == ["before"]
    assert store.statuses == [("a", "FAILED")]
    assert store.settled()
