"""Steps whose time is over: how each kind is brought to its end, and what comes after."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from tests.job.components import AsyncReader, ListReader, copying
from tests.job.harness import (
    Store,
    Trace,
    job,
    launch,
    message_of,
    running,
    single,
)
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    Chunk,
    Event,
    EventKind,
    Exit,
    FailureCategory,
    LaunchReport,
    OutcomeUnknown,
    Partition,
    PartitionedStep,
    Split,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
)


async def sleeping(ctx: StepContext) -> None:
    await trio.sleep(3600)


def timed_out(report: LaunchReport, node: str = "work") -> None:
    """Check that the job failed because of that step's time."""
    assert message_of(report).startswith(f"step {node!r} took longer than its timeout")
    assert report.failure is not None
    assert report.failure.category is FailureCategory.TIMEOUT


async def test_an_async_tasklet_is_cancelled_and_has_failed(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    slow = Step("work", sleeping, timeout=5)
    report = await launch(store, job(slow, trace.step("next")))
    assert trio.current_time() == 5
    timed_out(report)
    assert message_of(report) == (
        "step 'work' took longer than its timeout of 5 s and was brought to an end: "
        "launch the job again, which gives it the whole time anew"
    )
    assert trace.calls == []
    (step,) = store.steps
    assert (step.status, step.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert step.failure is not None
    assert step.failure.code == "step_timed_out"
    assert step.failure.category is FailureCategory.TIMEOUT
    assert step.failure.where == "work"
    assert store.settled()


async def test_a_step_that_ends_in_time_is_left_alone(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(4)
        assert not ctx.stop.is_set()

    async def later(ctx: StepContext) -> None:
        await trio.sleep(100)

    events: list[Event] = []
    quick, slow = Step("work", work, timeout=5), Step("later", later)
    report = await launch(store, job(quick, slow), events=events.append)
    assert report.status is BatchStatus.COMPLETED
    assert EventKind.STEP_TIMED_OUT not in [event.kind for event in events]


async def test_the_time_of_a_step_begins_with_the_step(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(4)

    steps = [Step(name, work, timeout=5) for name in "abc"]
    assert (await launch(store, job(*steps))).status is BatchStatus.COMPLETED


async def test_the_failure_is_routed_as_any_other(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def tidy(ctx: StepContext) -> None:
        await trio.sleep(100)
        assert not ctx.stop.is_set()

    slow = Step("work", sleeping, timeout=5, then={"FAILED": "tidy", "*": COMPLETE})
    again = Step("again", sleeping, timeout=7, then={"FAILED": COMPLETE, "*": COMPLETE})
    report = await launch(store, job(slow, Step("tidy", tidy), again))
    assert report.status is BatchStatus.COMPLETED
    assert trio.current_time() == 112
    assert store.statuses == [
        ("work", "FAILED"),
        ("tidy", "COMPLETED"),
        ("again", "FAILED"),
    ]


@pytest.mark.parametrize(("stays", "end"), [(3, 8), (3600, 12)])
async def test_a_cooperating_tasklet_is_told_and_has_its_grace(
    store: Store, autojump_clock: trio.testing.MockClock, stays: float, end: float
) -> None:
    async def work(ctx: StepContext) -> None:
        await ctx.stop.wait()
        assert ctx.stop.is_set()
        ctx.state["seen"] = True
        await trio.sleep(stays)

    async def tidy(ctx: StepContext) -> None:
        await trio.sleep(100)

    settings: dict[str, Any] = {"on_stop": "cooperate", "grace": 7, "timeout": 5}
    slow = Step("work", work, then={"FAILED": "tidy", "*": COMPLETE}, **settings)
    report = await launch(store, job(slow, Step("tidy", tidy)))
    assert report.status is BatchStatus.COMPLETED
    assert trio.current_time() == end + 100
    assert store.statuses == [("work", "FAILED"), ("tidy", "COMPLETED")]
    assert ('"seen":true' in (store.steps[0].context or "")) == (end == 8)


async def test_a_plain_tasklet_in_its_thread_sees_that_its_time_is_over(
    store: Store, trace: Trace
) -> None:
    def work(ctx: StepContext) -> None:
        while not ctx.stop.is_set():
            threading.Event().wait(0.001)
        ctx.state["tidy"] = True

    slow = Step("work", work, timeout=0.02, then={"FAILED": "next", "*": COMPLETE})
    with trio.fail_after(5):
        report = await launch(store, job(slow, trace.step("next")), inline=False)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["next"]
    assert store.statuses == [("work", "FAILED"), ("next", "COMPLETED")]
    assert '"tidy":true' in (store.steps[0].context or "")


async def test_whoever_listens_is_told_of_the_time_and_of_work_that_does_not_heed_it(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    told: list[tuple[EventKind, float]] = []
    events: list[Event] = []

    def sink(event: Event) -> None:
        told.append((event.kind, trio.current_time()))
        events.append(event)

    async def work(ctx: StepContext) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)

    report = await launch(store, single(work, timeout=5), events=sink)
    timed_out(report)
    wanted = EventKind.STEP_TIMED_OUT, EventKind.STOP_WAITING
    assert [one for one in told if one[0] in wanted] == [(wanted[0], 5), (wanted[1], 6)]
    (event,) = [one for one in events if one.kind is EventKind.STEP_TIMED_OUT]
    assert (event.node, event.step_id, event.seconds) == ("work", 1, 5)


async def test_a_failure_of_the_work_itself_stays(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await ctx.stop.wait()
        raise ValueError("could not tidy up")

    slow = single(work, timeout=5, on_stop="cooperate")
    assert message_of(await launch(store, slow)) == "could not tidy up"


async def test_an_unknown_outcome_stays_unknown(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await ctx.stop.wait()
        raise OutcomeUnknown("did it arrive?")

    report = await launch(store, single(work, timeout=5, on_stop="cooperate"))
    assert report.status is BatchStatus.UNKNOWN
    assert store.statuses == [("work", "UNKNOWN")]


async def test_a_stop_that_comes_first_wins(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    events: list[Event] = []
    settings: dict[str, Any] = {"timeout": 5, "on_stop": "cooperate", "grace": 10}
    async with (
        running(store, events=events.append) as runtime,
        trio.open_nursery() as nursery,
    ):

        async def stop() -> None:
            await trio.sleep(4)
            runtime.stop()

        nursery.start_soon(stop)
        report = await runtime.launch(single(sleeping, **settings))
    assert trio.current_time() == 14
    assert report.status is BatchStatus.STOPPED
    assert store.statuses == [("work", "STOPPED")]
    assert EventKind.STEP_TIMED_OUT not in [event.kind for event in events]


async def test_a_stop_after_the_time_does_not_prolong_the_grace(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    settings: dict[str, Any] = {"timeout": 5, "on_stop": "cooperate", "grace": 10}
    then = {"FAILED": "next", "*": COMPLETE}
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(9)
            runtime.stop()

        nursery.start_soon(stop)
        work = Step("work", sleeping, then=then, **settings)
        report = await runtime.launch(job(work, trace.step("next")))
    assert trio.current_time() == 15
    assert report.status is BatchStatus.STOPPED
    assert store.statuses == [("work", "FAILED")]
    assert trace.calls == []


async def test_a_stop_wakes_whoever_waits_for_it_in_a_step_with_a_timeout(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await ctx.stop.wait()

    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(1)
            runtime.stop()

        nursery.start_soon(stop)
        slow = single(work, timeout=50, on_stop="cooperate")
        report = await runtime.launch(slow)
    assert trio.current_time() == 1
    assert report.status is BatchStatus.STOPPED


async def test_a_cancelled_scope_around_the_launch_stops_the_step(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(store) as runtime:
        with trio.move_on_after(3):
            await runtime.launch(single(sleeping, timeout=5))
        await trio.sleep(100)
    assert store.statuses == [("work", "STOPPED")]


# Listeners


async def test_after_listeners_see_the_failure_and_are_not_disturbed(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[StepOutcome] = []

    async def after(ctx: StepContext, outcome: StepOutcome) -> Exit:
        await trio.sleep(100)
        seen.append(outcome)
        return Exit("IGNORED")

    listener = StepListener("all", after=after)
    report = await launch(store, single(sleeping, timeout=5, listeners=[listener]))
    timed_out(report)
    assert trio.current_time() == 105
    (outcome,) = seen
    assert (outcome.status, outcome.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert "timeout of 5 s" in (outcome.message or "")


async def test_time_that_after_listeners_take_is_not_limited(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(4)

    async def after(ctx: StepContext, outcome: StepOutcome) -> None:
        await trio.sleep(100)

    listener = StepListener("all", after=after)
    report = await launch(store, single(work, timeout=5, listeners=[listener]))
    assert report.status is BatchStatus.COMPLETED


async def test_a_before_listener_has_part_of_the_time(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    listener = StepListener("slow", before=sleeping)
    slow = trace.step("work", timeout=5, listeners=[listener])
    timed_out(await launch(store, job(slow)))
    assert trio.current_time() == 5
    assert trace.calls == []
    assert store.statuses == [("work", "FAILED")]


# Chunks


class SlowAt(AsyncReader):
    """Its read takes long at one position, the first time."""

    def __init__(self, inner: ListReader, position: int, seconds: float) -> None:
        super().__init__(inner)
        self.slow_at: int | None = position
        self.seconds = seconds

    async def read(self, n: int) -> Sequence[Any]:
        if self.inner.position == self.slow_at:
            self.slow_at = None
            await trio.sleep(self.seconds)
        return await super().read(n)


@pytest.mark.parametrize(
    ("in_flight", "seconds", "end", "rows"),
    [
        ("finish_chunk", 9, 9, 30),
        ("finish_chunk", 3600, 12, 20),
        ("rollback_chunk", 9, 5, 20),
    ],
)
async def test_a_chunk_step_ends_with_what_it_has_committed_and_goes_on_from_there(
    store: Store,
    autojump_clock: trio.testing.MockClock,
    in_flight: str,
    seconds: float,
    end: float,
    rows: int,
) -> None:
    _, reader, writer = copying(range(50))
    slow = SlowAt(reader, 20, seconds)
    chunk = Chunk(slow, writer, size=10, in_flight=in_flight)
    copy = job(Step("work", chunk, timeout=5, grace=7))
    report = await launch(store, copy)
    assert trio.current_time() == end
    timed_out(report)
    assert store.rows() == list(range(rows))
    assert reader.log == ["open reader", "close reader"]
    report = await launch(store, copy)
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == list(range(50))


async def test_a_chunk_step_whose_last_chunk_is_durable_has_completed(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    _, reader, writer = copying(range(30))
    chunk = Chunk(SlowAt(reader, 20, 9), writer, size=10)
    report = await launch(store, job(Step("work", chunk, timeout=5)))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == list(range(30))


# Side by side


async def test_a_step_of_a_branch_has_a_time_of_its_own(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def longer(ctx: StepContext) -> None:
        await trio.sleep(20)

    branches = [
        [Step("slow", sleeping, timeout=5), trace.step("after")],
        [Step("longer", longer, timeout=50), trace.step("last")],
    ]
    split = Split("both", branches, max_parallel=2, on_failure="drain_siblings")
    report = await launch(store, job(trace.step("first"), split))
    timed_out(report, "slow")
    assert trio.current_time() == 20
    assert trace.calls == ["first", "last"]
    assert report.step("slow").status is BatchStatus.FAILED
    assert report.step("longer").status is BatchStatus.COMPLETED


async def test_the_siblings_of_a_step_whose_time_is_over_are_stopped(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    slow = Step("slow", sleeping, timeout=5)
    other = Step("other", sleeping, timeout=6, on_stop="cooperate", grace=10)
    split = Split("both", [slow, other], max_parallel=2)
    report = await launch(store, job(trace.step("first"), split))
    timed_out(report, "slow")
    assert trio.current_time() == 15
    assert report.step("other").status is BatchStatus.STOPPED


def three(ctx: object) -> list[tuple[str, dict[str, Any]]]:
    return [(key, {}) for key in "abc"]


async def test_every_worker_has_the_whole_time_for_its_partition(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def share(ctx: StepContext) -> None:
        assert ctx.partition is not None
        slow = ctx.partition.key == "b" and ctx.attempt == 1
        await trio.sleep(3600 if slow else 4)

    parts = PartitionedStep(
        "parts",
        Step("share", share, timeout=5),
        three,
        max_workers=1,
        on_failure="drain_siblings",
    )
    report = await launch(store, job(parts))
    timed_out(report, "share")
    assert trio.current_time() == 13
    assert {one.key: one.status.value for one in report.partitions} == {
        "a": "COMPLETED",
        "b": "FAILED",
        "c": "COMPLETED",
    }
    report = await launch(store, job(parts))
    assert report.status is BatchStatus.COMPLETED


async def test_all_partitions_together_may_have_a_time(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def share(ctx: StepContext) -> None:
        await trio.sleep(4 if ctx.attempt == 1 else 1)

    events: list[Event] = []
    parts = PartitionedStep(
        "parts", share, three, max_workers=1, timeout=5, on_failure="drain_siblings"
    )
    patient = job(parts, trace.step("next"))
    report = await launch(store, patient, events=events.append)
    timed_out(report, "parts")
    assert trio.current_time() == 5
    step = report.step("parts")
    assert (step.status, step.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert {one.key: one.status.value for one in report.partitions} == {
        "a": "COMPLETED",
        "b": "STOPPED",
        "c": "STOPPED",
    }
    (event,) = [one for one in events if one.kind is EventKind.STEP_TIMED_OUT]
    assert (event.node, event.step_id, event.seconds) == ("parts", 1, 5)
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert [one.reused for one in report.partitions] == [True, False, False]


async def test_what_partitions_come_to_although_their_time_is_over_stays(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    """One that fails while it is brought to its end has failed by itself."""

    async def share(ctx: StepContext) -> None:
        await ctx.stop.wait()
        raise ValueError("could not tidy up")

    worker = Step("share", share, on_stop="cooperate")
    report = await launch(
        store, job(PartitionedStep("parts", worker, three, timeout=5))
    )
    assert message_of(report) == "could not tidy up"
    assert {one.status for one in report.partitions} == {BatchStatus.FAILED}


async def test_a_stop_of_partitions_before_their_time_wins(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    worker = Step("share", sleeping, on_stop="cooperate", grace=5)
    parts = PartitionedStep("parts", worker, three, timeout=5)
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(4)
            runtime.stop()

        nursery.start_soon(stop)
        report = await runtime.launch(job(parts))
    assert trio.current_time() == 9
    assert report.status is BatchStatus.STOPPED
    assert report.step("parts").status is BatchStatus.STOPPED


async def test_what_a_factory_makes_may_have_another_timeout(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def share(ctx: StepContext) -> None:
        await trio.sleep(8)

    async def make(partition: Partition) -> Step:
        await trio.sleep(1)
        return Step("share", share, timeout=20 if partition.key == "a" else 6)

    worker = Step("share", share)
    parts = PartitionedStep(
        "parts", worker, three, factory=make, on_failure="drain_siblings"
    )
    report = await launch(store, job(parts))
    timed_out(report, "share")
    assert trio.current_time() == 9
    assert [one.status.value for one in report.partitions] == [
        "COMPLETED",
        "FAILED",
        "FAILED",
    ]
