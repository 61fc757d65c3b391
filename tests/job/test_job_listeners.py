"""Job listeners: their order, what they see, and what their failures and stops do."""

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.harness import (
    Store,
    Trace,
    job,
    launch,
    message_of,
    running,
)
from triolet.actors import (
    BatchStatus,
    Exit,
    FailureCategory,
    JobContext,
    JobListener,
    JobOutcome,
    OutcomeUnknown,
    Split,
    Step,
    StepContext,
    StoreUnusable,
    compile_job,
)
from triolet.actors.plan.definition import STOP, Decision


def tracing(trace: Trace, name: str) -> JobListener:
    """Make a listener that notes both of its calls."""

    def before(ctx: JobContext) -> None:
        trace.calls.append(f"{name} before {ctx.job}")

    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        trace.calls.append(f"{name} after {outcome.status}")

    return JobListener(name, before=before, after=after)


def broken_before(name: str) -> JobListener:
    def before(ctx: JobContext) -> None:
        raise ValueError(f"{name} is broken")

    return JobListener(name, before=before)


def broken_after(name: str) -> JobListener:
    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        raise ValueError(f"{name} is broken")

    return JobListener(name, after=after)


async def test_before_listeners_run_in_order_and_after_listeners_in_reverse(
    store: Store, trace: Trace
) -> None:
    listeners = [tracing(trace, "a"), tracing(trace, "b")]
    await launch(store, job(trace.step("work"), listeners=listeners))
    assert trace.calls == [
        "a before demo",
        "b before demo",
        "work",
        "b after COMPLETED",
        "a after COMPLETED",
    ]


async def test_listeners_see_the_execution(store: Store, trace: Trace) -> None:
    seen = []

    def before(ctx: JobContext) -> None:
        (execution,) = store.executions
        assert execution.status is BatchStatus.STARTED
        assert store.steps == ()
        seen.append((ctx.instance_id, ctx.execution_id, ctx.attempt, ctx.job))
        assert dict(ctx.parameters) == {"day": "x"}
        assert not ctx.stop.is_set()

    def after(ctx: JobContext, outcome: JobOutcome) -> None:
        seen.append((ctx.instance_id, ctx.execution_id, ctx.attempt, ctx.job))
        assert ctx.state_of("work") == {"done": True}
        assert outcome == JobOutcome(BatchStatus.COMPLETED, "COMPLETED", None)

    async def work(ctx: StepContext) -> None:
        ctx.state["done"] = True

    looking = JobListener("look", before=before, after=after)
    listening = job(Step("work", work), listeners=[looking])
    report = await launch(store, listening, {"day": "x"})
    assert report.raise_for_status().counts == report.counts
    assert seen == [(1, 1, 1, "demo")] * 2


async def test_results_are_durable_and_the_end_is_not_while_after_listeners_run(
    store: Store, trace: Trace
) -> None:
    seen: list[object] = []

    def after(ctx: JobContext, outcome: JobOutcome) -> None:
        seen.extend(store.statuses)
        seen.extend(one.status for one in store.executions)

    listening = job(trace.step("work"), listeners=[JobListener("look", after=after)])
    await launch(store, listening)
    assert seen == [("work", "COMPLETED"), BatchStatus.STARTED]
    assert store.settled()


async def test_a_failing_before_listener_fails_the_job_without_running_anything(
    store: Store, trace: Trace
) -> None:
    listeners = [tracing(trace, "a"), broken_before("bad"), tracing(trace, "c")]
    report = await launch(store, job(trace.step("work"), listeners=listeners))
    assert message_of(report) == "bad is broken"
    assert trace.calls == ["a before demo", "c after FAILED", "a after FAILED"]
    assert store.steps == ()
    (execution,) = store.executions
    assert (execution.status, execution.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert execution.failure is not None
    assert execution.failure == report.failure
    assert execution.failure.category is FailureCategory.USER_COMPONENT
    assert (execution.failure.where, execution.failure.code) == (
        "bad",
        "before_job_listener_failed",
    )


async def test_a_failing_after_listener_turns_completed_into_failed(
    store: Store, trace: Trace
) -> None:
    listeners = [tracing(trace, "a"), broken_after("first"), broken_after("second")]
    listening = job(trace.step("work"), listeners=listeners)
    report = await launch(store, listening)
    assert message_of(report) == "second is broken"
    assert report.failure is not None
    assert report.failure.code == "after_job_listener_failed"
    assert store.statuses == [("work", "COMPLETED")]
    assert store.executions[0].status is BatchStatus.FAILED
    assert trace.calls == ["a before demo", "work", "a after COMPLETED"]


async def test_the_next_launch_reuses_all_and_calls_the_listeners_again(
    store: Store, trace: Trace
) -> None:
    work = trace.step("work")
    await launch(store, job(work, listeners=[broken_after("bad")]))
    report = await launch(store, job(work, listeners=[tracing(trace, "good")]))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["work", "good before demo", "good after COMPLETED"]


async def test_a_failing_after_listener_leaves_the_failure_of_a_failed_job(
    store: Store, trace: Trace
) -> None:
    broken = Step("work", trace.failing("work"))
    report = await launch(store, job(broken, listeners=[broken_after("bad")]))
    assert message_of(report) == "work is broken"


async def test_after_listeners_see_why_the_job_failed(store: Store) -> None:
    seen = []

    def look(ctx: JobContext, outcome: JobOutcome) -> None:
        seen.append(outcome)

    broken = Step("work", Trace().failing("work"))
    await launch(store, job(broken, listeners=[JobListener("look", after=look)]))
    assert seen == [JobOutcome(BatchStatus.FAILED, "FAILED", "work is broken")]


async def test_a_failing_after_listener_does_not_change_an_unknown_outcome(
    store: Store,
) -> None:
    def pay(ctx: StepContext) -> None:
        raise OutcomeUnknown("did the bank book it?")

    report = await launch(store, job(Step("pay", pay), listeners=[broken_after("bad")]))
    assert report.status is BatchStatus.UNKNOWN
    assert store.executions[0].status is BatchStatus.UNKNOWN


async def test_a_failing_after_listener_does_not_change_a_stop(
    store: Store, trace: Trace
) -> None:
    stopping = Decision("wait", lambda ctx: "WAIT", then={"WAIT": STOP})
    report = await launch(store, job(stopping, listeners=[broken_after("bad")]))
    assert report.status is BatchStatus.STOPPED
    assert store.executions[0].status is BatchStatus.STOPPED


async def test_a_listener_that_does_not_know_fails(store: Store, trace: Trace) -> None:
    def before(ctx: JobContext) -> None:
        raise OutcomeUnknown("was it locked?")

    listeners = [JobListener("lock", before=before)]
    report = await launch(store, job(trace.step("work"), listeners=listeners))
    assert message_of(report) == "was it locked?"
    assert trace.calls == []


async def test_what_listeners_return_is_ignored(store: Store, trace: Trace) -> None:
    answering = JobListener(
        "answer", before=lambda ctx: 1, after=lambda ctx, outcome: Exit("PART")
    )
    report = await launch(store, job(trace.step("work"), listeners=[answering]))
    assert report.exit_code == "COMPLETED"


async def test_a_stop_cancels_a_before_listener_and_no_further_one_is_called(
    store: Store, trace: Trace
) -> None:
    async def before(ctx: JobContext) -> None:
        runtime.stop()
        await trio.sleep_forever()

    slow = JobListener("slow", before=before)
    listeners = [tracing(trace, "a"), slow, tracing(trace, "c")]
    async with running(store) as runtime:
        report = await runtime.launch(job(trace.step("work"), listeners=listeners))
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == ["a before demo", "c after STOPPED", "a after STOPPED"]
    assert store.steps == ()
    assert store.settled()


async def test_a_plain_before_listener_is_waited_for(
    store: Store, trace: Trace
) -> None:
    def before(ctx: JobContext) -> None:
        trio.from_thread.run_sync(runtime.stop)
        while not ctx.stop.is_set():
            pass
        trace.calls.append("waited for")

    listeners = [JobListener("slow", before=before), tracing(trace, "b")]
    async with running(store, inline=False) as runtime:
        report = await runtime.launch(job(trace.step("work"), listeners=listeners))
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == ["waited for", "b after STOPPED"]


async def test_a_stop_waits_for_after_listeners_and_changes_nothing_any_more(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        runtime.stop()
        await trio.sleep(5)
        trace.calls.append(f"told {outcome.status}")

    listeners = [JobListener("slow", after=after)]
    async with running(store) as runtime:
        report = await runtime.launch(job(trace.step("work"), listeners=listeners))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["work", "told COMPLETED"]


async def test_after_listeners_have_their_time_although_the_grace_has_passed(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    calls = []

    async def work(ctx: StepContext) -> None:
        runtime.stop()
        await ctx.stop.wait()

    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        await trio.sleep(60)
        calls.append(outcome.status)

    cooperating = Step("work", work, on_stop="cooperate", grace=5)
    listeners = [JobListener("slow", after=after)]
    async with running(store, lease=600) as runtime:
        report = await runtime.launch(job(cooperating, listeners=listeners))
    assert report.status is BatchStatus.STOPPED
    assert calls == [BatchStatus.STOPPED]


async def test_no_after_listener_is_called_when_the_scope_around_is_cancelled(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        scope.cancel()
        await trio.sleep_forever()

    listening = job(Step("work", work), listeners=[tracing(trace, "a")])
    async with running(store) as runtime:
        with trio.CancelScope() as scope:
            await runtime.launch(listening)
    assert scope.cancelled_caught
    assert trace.calls == ["a before demo"]
    assert store.executions[0].status is BatchStatus.STOPPED


async def test_an_after_listener_that_is_cancelled_leaves_the_job_stopped(
    store: Store, trace: Trace
) -> None:
    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        scope.cancel()
        await trio.sleep_forever()

    listeners = [tracing(trace, "a"), JobListener("slow", after=after)]
    listening = job(trace.step("work"), listeners=listeners)
    async with running(store) as runtime:
        with trio.CancelScope() as scope:
            await runtime.launch(listening)
    assert trace.calls == ["a before demo", "work"]
    assert store.statuses == [("work", "COMPLETED")]
    assert store.executions[0].status is BatchStatus.STOPPED


async def test_no_after_listener_is_called_when_the_store_fails(
    store: Store, trace: Trace
) -> None:
    store.faults[3] = StoreUnusable("the disk is broken")
    listening = job(trace.step("work"), listeners=[tracing(trace, "a")])
    with pytest.raises(StoreUnusable):
        await launch(store, listening)
    assert trace.calls == ["a before demo", "work"]
    assert store.executions[0].status is BatchStatus.FAILED


async def test_the_listeners_of_a_split_run_around_all_of_it(
    store: Store, trace: Trace
) -> None:
    split = Split("both", [trace.step("b"), trace.step("c")])
    listening = job(trace.step("a"), split, listeners=[tracing(trace, "l")])
    await launch(store, listening)
    assert trace.calls == ["l before demo", "a", "b", "c", "l after COMPLETED"]


async def test_only_before_listeners_keep_the_first_step_from_the_first_commit(
    store: Store, trace: Trace
) -> None:
    listeners = [JobListener("late", after=lambda ctx, outcome: None)]
    await launch(store, job(trace.step("work"), listeners=listeners))
    assert len(store.commands) == 3


def test_a_job_with_listeners_is_no_other_definition(trace: Trace) -> None:
    plain = job(trace.step("work"))
    listening = evolve(plain, listeners=[tracing(trace, "a")])
    assert compile_job(listening).plan == compile_job(plain).plan
