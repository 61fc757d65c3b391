"""Step listeners: their order, what they may change, and what their failures do."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.job.harness import Store, Trace, job, launch, message_of, running
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    Exit,
    FailureCategory,
    OutcomeUnknown,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
)


def tracing(trace: Trace, name: str) -> StepListener:
    """Make a listener that notes both of its calls."""

    def before(ctx: StepContext) -> None:
        trace.calls.append(f"{name} before {ctx.node}")

    async def after(ctx: StepContext, outcome: StepOutcome) -> None:
        trace.calls.append(f"{name} after {outcome.status}")

    return StepListener(name, before=before, after=after)


def broken_before(name: str) -> StepListener:
    def before(ctx: StepContext) -> None:
        raise ValueError(f"{name} is broken")

    return StepListener(name, before=before)


def broken_after(name: str) -> StepListener:
    def after(ctx: StepContext, outcome: StepOutcome) -> None:
        raise ValueError(f"{name} is broken")

    return StepListener(name, after=after)


def answering(returned: object) -> StepListener:
    return StepListener("answer", after=lambda ctx, outcome: returned)


async def test_before_listeners_run_in_order_and_after_listeners_in_reverse(
    store: Store, trace: Trace
) -> None:
    listeners = [tracing(trace, "a"), tracing(trace, "b")]
    await launch(store, job(trace.step("work", listeners=listeners)))
    assert trace.calls == [
        "a before work",
        "b before work",
        "work",
        "b after COMPLETED",
        "a after COMPLETED",
    ]


async def test_the_step_is_durably_starting_while_before_listeners_run(
    store: Store, trace: Trace
) -> None:
    seen = []

    def look(ctx: StepContext) -> None:
        (step,) = store.steps
        seen.append((step.status, step.started_at))

    async def work(ctx: StepContext) -> None:
        (step,) = store.steps
        seen.append((step.status, step.started_at))

    listener = StepListener("look", before=look)
    await launch(store, job(Step("work", work, listeners=[listener])))
    (step,) = store.steps
    assert seen == [
        (BatchStatus.STARTING, None),
        (BatchStatus.STARTED, step.started_at),
    ]
    assert step.started_at is not None


async def test_the_result_is_not_durable_while_after_listeners_run(
    store: Store, trace: Trace
) -> None:
    seen = []

    def look(ctx: StepContext, outcome: StepOutcome) -> None:
        seen.extend(store.statuses)

    listener = StepListener("look", after=look)
    await launch(store, job(trace.step("work", listeners=[listener])))
    assert seen == [("work", "STARTED")]


async def test_a_failing_before_listener_fails_the_step_without_running_it(
    store: Store, trace: Trace
) -> None:
    listeners = [tracing(trace, "a"), broken_before("bad"), tracing(trace, "c")]
    report = await launch(
        store, job(trace.step("work", listeners=listeners), trace.step("next"))
    )
    assert trace.calls == ["a before work"]
    assert message_of(report) == "bad is broken"
    (step,) = store.steps
    assert (step.status, step.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert step.failure is not None
    assert (step.failure.where, step.failure.code) == (
        "bad",
        "before_step_listener_failed",
    )
    assert step.failure.category is FailureCategory.USER_COMPONENT
    assert step.ended_at is not None


async def test_a_failing_after_listener_fails_a_step_that_had_completed(
    store: Store, trace: Trace
) -> None:
    listeners = [tracing(trace, "a"), broken_after("bad"), tracing(trace, "c")]
    report = await launch(
        store, job(trace.step("work", listeners=listeners), trace.step("next"))
    )
    assert trace.calls == [
        "a before work",
        "c before work",
        "work",
        "c after COMPLETED",
        "a after COMPLETED",
    ]
    assert message_of(report) == "bad is broken"
    (step,) = store.steps
    assert (step.status, step.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert step.failure is not None
    assert step.failure.where == "bad"
    assert step.failure.code == "after_step_listener_failed"


async def test_the_first_failure_of_after_listeners_is_kept_and_each_has_its_own_id(
    store: Store, trace: Trace, caplog: pytest.LogCaptureFixture
) -> None:
    listeners = [broken_after("outer"), broken_after("inner")]
    broken = Step("work", trace.failing("work"), listeners=listeners)
    report = await launch(store, job(broken))
    assert message_of(report) == "inner is broken"
    logged = [record.getMessage() for record in caplog.records]
    assert logged == [
        "work failed: work is broken",
        "inner failed: inner is broken",
        "outer failed: outer is broken",
    ]


async def test_after_listeners_see_why_the_step_failed(store: Store) -> None:
    seen = []

    def look(ctx: StepContext, outcome: StepOutcome) -> None:
        seen.append(outcome)

    listener = StepListener("look", after=look)
    broken = Step("work", Trace().failing("work"), listeners=[listener])
    await launch(store, job(broken))
    assert seen == [StepOutcome(BatchStatus.FAILED, "FAILED", "work is broken")]


async def test_an_after_listener_may_replace_the_exit_code(
    store: Store, trace: Trace
) -> None:
    partly = trace.step(
        "work",
        listeners=[answering(Exit("PART"))],
        then={"PART": "rest", "*": COMPLETE},
    )
    report = await launch(store, job(partly, trace.step("rest")))
    assert trace.calls == ["work", "rest"]
    assert report.step("work").exit_code == "PART"
    assert report.step("work").status is BatchStatus.COMPLETED


async def test_the_exit_code_of_the_last_after_listener_stays(
    store: Store, trace: Trace
) -> None:
    listeners = [answering(Exit("OUTER")), answering(None), answering(Exit("INNER"))]
    await launch(store, job(trace.step("work", listeners=listeners)))
    assert store.steps[0].exit_code == "OUTER"


async def test_an_after_listener_cannot_make_a_failed_step_succeed(
    store: Store, trace: Trace
) -> None:
    listeners = [answering(Exit("FINE"))]
    broken = Step("work", trace.failing("work"), listeners=listeners)
    await launch(store, job(broken))
    (step,) = store.steps
    assert (step.status, step.exit_code) == (BatchStatus.FAILED, "FAILED")


async def test_an_after_listener_that_returns_anything_else_fails(
    store: Store, trace: Trace
) -> None:
    report = await launch(
        store, job(trace.step("work", listeners=[answering("COMPLETED")]))
    )
    assert message_of(report) == (
        "listener 'answer' returned a str; return None or Exit"
    )


async def test_a_failing_after_listener_does_not_change_an_unknown_outcome(
    store: Store,
) -> None:
    def pay(ctx: StepContext) -> None:
        raise OutcomeUnknown("did the bank book it?")

    paying = Step("pay", pay, listeners=[broken_after("bad")])
    report = await launch(store, job(paying))
    assert report.status is BatchStatus.UNKNOWN
    assert store.statuses == [("pay", "UNKNOWN")]


async def test_a_failing_after_listener_does_not_change_a_stop(store: Store) -> None:
    async with running(store) as runtime:

        async def work(ctx: StepContext) -> None:
            runtime.stop()
            await trio.sleep_forever()

        stopped = Step("work", work, listeners=[broken_after("bad")])
        report = await runtime.launch(job(stopped))
    assert report.status is BatchStatus.STOPPED
    assert store.statuses == [("work", "STOPPED")]


async def test_after_listeners_run_once_also_when_a_stop_meets_blocking_work(
    store: Store,
) -> None:
    calls = []

    def work(ctx: StepContext) -> None:
        trio.from_thread.run_sync(runtime.stop)
        while not ctx.stop.is_set():
            pass

    async def after(ctx: StepContext, outcome: StepOutcome) -> None:
        calls.append(outcome.status)
        await trio.lowlevel.checkpoint()

    listeners = [StepListener("a", after=after), StepListener("b", after=after)]
    async with running(store, inline=False) as runtime:
        report = await runtime.launch(job(Step("work", work, listeners=listeners)))
    assert report.status is BatchStatus.STOPPED
    assert calls == [BatchStatus.STOPPED, BatchStatus.STOPPED]


async def test_after_listeners_have_their_time_although_the_grace_has_passed(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    calls = []

    async def work(ctx: StepContext) -> None:
        runtime.stop()
        await trio.sleep_forever()

    async def after(ctx: StepContext, outcome: StepOutcome) -> None:
        await trio.sleep(60)
        calls.append(outcome.status)

    async with running(store, lease=600) as runtime:
        patient = Step(
            "work",
            work,
            on_stop="cooperate",
            grace=5,
            listeners=[StepListener("slow", after=after)],
        )
        report = await runtime.launch(job(patient))
    assert report.status is BatchStatus.STOPPED
    assert calls == [BatchStatus.STOPPED]


async def test_a_stop_during_a_before_listener_ends_the_step_without_running_it(
    store: Store, trace: Trace
) -> None:
    async def before(ctx: StepContext) -> None:
        runtime.stop()
        await trio.sleep_forever()

    async with running(store) as runtime:
        stopped = trace.step("work", listeners=[StepListener("slow", before=before)])
        report = await runtime.launch(job(stopped))
    assert report.status is BatchStatus.STOPPED
    assert trace.calls == []
    assert store.statuses == [("work", "STOPPED")]
    assert store.steps[0].started_at is not None


@pytest.mark.parametrize("make", [broken_before, broken_after])
async def test_a_broken_listener_is_called_again_by_a_restart(
    store: Store, trace: Trace, make: Callable[[str], StepListener]
) -> None:
    listening = job(trace.step("work", listeners=[make("bad")]), trace.step("next"))
    for _ in range(2):
        report = await launch(store, listening)
        assert message_of(report) == "bad is broken"
    assert store.statuses == [("work", "FAILED"), ("work", "FAILED")]
    assert "next" not in trace.calls


async def test_state_that_a_before_listener_leaves_is_committed_with_the_step(
    store: Store, trace: Trace
) -> None:
    def before(ctx: StepContext) -> None:
        ctx.state["prepared"] = True

    def look(ctx: StepContext) -> None:
        assert ctx.state_of("work") == {}

    listener = StepListener("prepare", before=before)
    report = await launch(
        store, job(trace.step("work", listeners=[listener]), Step("look", look))
    )
    assert report.status is BatchStatus.COMPLETED
