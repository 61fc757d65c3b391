"""Stopping: who is told, what ends at once, what may finish, and what comes after."""

import threading
from typing import Any

import pytest
import trio
import trio.testing

from tests.job.components import copying
from tests.job.harness import Store, Trace, job, launch, running, single
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    DeciderContext,
    Decision,
    Event,
    EventKind,
    Runtime,
    ShuttingDown,
    Step,
    StepContext,
    StoreGone,
)


async def stop_soon(runtime: Runtime, seconds: float) -> None:
    await trio.sleep(seconds)
    runtime.stop()


async def test_a_stop_cancels_a_tasklet_at_its_next_checkpoint(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        trace.calls.append("began")
        await trio.sleep(3600)
        trace.calls.append("never")

    began = trio.current_time()
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(stop_soon, runtime, 5)
        report = await runtime.launch(job(Step("work", work), trace.step("next")))
    assert trio.current_time() - began == 5
    assert report.status is BatchStatus.STOPPED
    assert report.exit_code == "STOPPED"
    assert trace.calls == ["began"]
    (step,) = store.steps
    assert (step.status, step.exit_code) == (BatchStatus.STOPPED, "STOPPED")
    assert step.ended_at is not None
    (execution,) = store.executions
    assert execution.status is BatchStatus.STOPPED
    assert execution.ended_at is not None


async def test_a_cooperating_tasklet_ends_by_itself_and_keeps_its_state(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await ctx.stop.wait()
        await trio.sleep(3)
        ctx.state["tidy"] = True

    began = trio.current_time()
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(stop_soon, runtime, 5)
        report = await runtime.launch(job(Step("work", work, on_stop="cooperate")))
    assert trio.current_time() - began == 8
    assert report.status is BatchStatus.STOPPED
    assert '"tidy":true' in (store.steps[0].context or "")


async def test_a_tasklet_that_does_not_cooperate_is_cancelled_after_its_grace(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(3600)

    began = trio.current_time()
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(stop_soon, runtime, 5)
        stubborn = Step("work", work, on_stop="cooperate", grace=7)
        report = await runtime.launch(job(stubborn))
    assert trio.current_time() - began == 12
    assert report.status is BatchStatus.STOPPED
    assert store.statuses == [("work", "STOPPED")]


async def test_repeating_a_stop_does_not_prolong_the_grace(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(3600)

    began = trio.current_time()
    async with running(store, lease=600) as runtime, trio.open_nursery() as nursery:
        for second in range(1, 20):
            nursery.start_soon(stop_soon, runtime, second)
        stubborn = Step("work", work, on_stop="cooperate", grace=7)
        report = await runtime.launch(job(stubborn))
        assert trio.current_time() - began == 8
    assert report.status is BatchStatus.STOPPED


async def test_a_plain_tasklet_in_its_thread_sees_the_stop(store: Store) -> None:
    busy = threading.Event()

    def work(ctx: StepContext) -> None:
        while not ctx.stop.is_set():
            busy.set()

    async with running(store, inline=False) as runtime:

        async def stop() -> None:
            await trio.to_thread.run_sync(busy.wait)
            runtime.stop()

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop)
                report = await runtime.launch(single(work))
    assert report.status is BatchStatus.STOPPED


async def test_a_tasklet_that_fails_while_it_is_being_stopped_has_failed(
    store: Store,
) -> None:
    async def work(ctx: StepContext) -> None:
        runtime.stop()
        await ctx.stop.wait()
        raise ValueError("could not tidy up")

    async with running(store) as runtime:
        report = await runtime.launch(job(Step("work", work, on_stop="cooperate")))
    assert report.status is BatchStatus.FAILED
    assert store.statuses == [("work", "FAILED")]


async def test_a_stop_between_two_steps_keeps_the_next_from_starting(
    store: Store, trace: Trace
) -> None:
    def sink(event: Event) -> None:
        if event.kind is EventKind.STEP_RESULT_COMMITTED:
            runtime.stop()

    async with running(store, events=sink) as runtime:
        report = await runtime.launch(job(trace.step("a"), trace.step("b")))
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == ["a"]
    assert store.steps[0].status is BatchStatus.COMPLETED
    assert store.settled()


@pytest.mark.parametrize("attempt", [1, 2])
async def test_a_stop_while_the_attempt_is_being_opened_keeps_its_first_step_away(
    store: Store, trace: Trace, attempt: int
) -> None:
    nodes = Step("a", trace.failing("a", until=2)), trace.step("b")
    for _ in range(1, attempt):
        await launch(store, job(*nodes))
    trace.calls.clear()
    async with running(store) as runtime:
        store.watch = lambda command: runtime.stop()
        report = await runtime.launch(job(*nodes))
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == []
    assert store.settled()


async def test_a_stopped_runtime_refuses_launches_and_writes_nothing(
    store: Store, trace: Trace
) -> None:
    async with running(store) as runtime:
        runtime.stop()
        before = store.dump()
        with pytest.raises(ShuttingDown):
            await runtime.launch(job(trace.step("a")))
        assert store.dump() == before


async def test_stopping_one_execution_leaves_the_others_and_the_runtime_alone(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    """C072."""
    told = []

    async def work(ctx: StepContext) -> None:
        try:
            await trio.sleep(10)
        except trio.Cancelled:
            told.append(ctx.execution_id)
            raise

    statuses: dict[str, str] = {}
    async with running(store) as runtime:

        async def run(day: str) -> None:
            report = await runtime.launch(single(work), day=day)
            statuses[day] = report.status.value

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, "mon")
            await trio.sleep(1)
            nursery.start_soon(run, "tue")
            await trio.sleep(1)
            assert runtime.running == (1, 2)
            runtime.stop(1)
            runtime.stop(99)
        report = await runtime.launch(single(work), day="mon")
    assert statuses == {"mon": "STOPPED", "tue": "COMPLETED"}
    assert told == [1]
    assert report.status is BatchStatus.COMPLETED


async def test_a_stopped_job_goes_on_where_it_was_stopped(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        trace.calls.append("work")
        if ctx.attempt == 1:
            runtime.stop(ctx.execution_id)
            await trio.sleep_forever()

    nodes = trace.step("a"), Step("work", work), trace.step("b")
    async with running(store) as runtime:
        stopped = await runtime.launch(job(*nodes))
        report = await runtime.launch(job(*nodes))
    assert stopped.status is BatchStatus.STOPPED
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "work", "work", "b"]
    assert report.restart_of == stopped.execution_id


@pytest.mark.parametrize("offset", range(0, 60, 3))
async def test_stops_at_any_moment_and_many_of_them_are_harmless(offset: int) -> None:
    """C069."""
    store = Store()
    chunk, _, _ = copying(range(40), size=2)
    status = BatchStatus.STOPPED
    launches = 0
    async with running(store) as runtime:

        async def stop_often() -> None:
            for _ in range(offset):
                await trio.lowlevel.checkpoint()
            while True:
                for execution_id in runtime.running:
                    for _ in range(20):
                        runtime.stop(execution_id)
                for _ in range(offset + 1):
                    await trio.lowlevel.checkpoint()

        while status is BatchStatus.STOPPED and launches < 30:
            launches += 1
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop_often)
                status = (await runtime.launch(single(chunk))).status
                nursery.cancel_scope.cancel()
        if status is BatchStatus.STOPPED:
            status = (await runtime.launch(single(chunk))).status
    assert status is BatchStatus.COMPLETED
    assert store.rows() == list(range(40))
    assert {one.status for one in store.executions} <= {
        BatchStatus.STOPPED,
        BatchStatus.COMPLETED,
    }
    assert store.settled()


async def test_a_stop_after_the_last_step_does_not_take_the_completion_back(
    store: Store, trace: Trace
) -> None:
    """C065, C075."""

    def sink(event: Event) -> None:
        if event.kind is EventKind.JOB_ENDED:
            runtime.stop()

    async with running(store, events=sink) as runtime:
        report = await runtime.launch(job(trace.step("a")))
    assert report.status is BatchStatus.COMPLETED
    assert store.executions[0].status is BatchStatus.COMPLETED


async def test_a_stop_before_a_decision_keeps_the_decider_from_being_asked(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        runtime.stop()
        await trio.lowlevel.checkpoint_if_cancelled()

    choice = Decision("way", trace.work("asked"), then={"*": "next"})
    async with running(store) as runtime:
        report = await runtime.launch(
            job(Step("work", work), choice, trace.step("next"))
        )
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == []


async def test_a_launch_outside_the_block_is_refused_by_the_store(
    store: Store, trace: Trace
) -> None:
    async with running(store) as runtime:
        pass
    with pytest.raises(StoreGone):
        await runtime.launch(job(trace.step("a")))
    assert store.executions == ()


# Work that does not heed it


@pytest.mark.parametrize(
    ("settings", "patience"),
    [({}, 1), ({"on_stop": "cooperate", "grace": 20}, 21)],
    ids=["cancel", "cooperate"],
)
async def test_whoever_listens_is_told_of_work_that_does_not_heed_a_stop(
    store: Store,
    autojump_clock: trio.testing.MockClock,
    settings: dict[str, Any],
    patience: float,
) -> None:
    told: list[tuple[float, str | None]] = []

    def sink(event: Event) -> None:
        if event.kind is EventKind.STOP_WAITING:
            told.append((trio.current_time() - began, event.message))

    async def work(ctx: StepContext) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)

    async with running(store, events=sink) as runtime, trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(stop_soon, runtime, 5)
        await runtime.launch(single(work, **settings))
    message = "'work' was cancelled and has not ended; waiting for it to return"
    assert told == [(5 + patience, message)]


async def test_a_decider_that_does_not_heed_a_stop_is_told_too(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    events: list[Event] = []

    async def decide(ctx: DeciderContext) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return "GO"

    decision = Decision("way", decide, then={"GO": COMPLETE})
    async with (
        running(store, events=events.append) as runtime,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(stop_soon, runtime, 5)
        await runtime.launch(job(decision))
    told = [event for event in events if event.kind is EventKind.STOP_WAITING]
    assert [event.node for event in told] == ["way"]


async def test_nobody_is_told_of_work_that_heeds_a_stop(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    events: list[Event] = []

    async def work(ctx: StepContext) -> None:
        await trio.sleep(100)

    async with (
        running(store, events=events.append) as runtime,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(stop_soon, runtime, 5)
        await runtime.launch(single(work))
        await trio.sleep(100)
    assert EventKind.STOP_WAITING not in [event.kind for event in events]
