"""Cancelling the scope around a launch: STOPPED is written, then Cancelled goes on."""

import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.job.components import copying
from tests.job.harness import Store, Trace, job, launch, running, single
from triolet.actors import BatchStatus, Decision, Step, StepContext, StepListener


class CancelAt(trio.abc.Instrument):
    """Cancel a scope when the run reaches its n-th task step."""

    def __init__(self, scope: trio.CancelScope, n: int) -> None:
        self.scope = scope
        self.left = n

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


async def test_inside_user_code_the_step_is_stopped_and_cancelled_goes_on(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        trace.calls.append("began")
        await trio.sleep(3600)

    with trio.move_on_after(5) as scope:
        await launch(store, job(Step("work", work), trace.step("next")))
    assert scope.cancelled_caught
    assert trace.calls == ["began"]
    assert store.statuses == [("work", "STOPPED")]
    (execution,) = store.executions
    assert (execution.status, execution.exit_code) == (BatchStatus.STOPPED, "STOPPED")
    assert execution.failure is None
    report = await launch(store, job(Step("work", trace.work("again"))), anew=True)
    assert report.status is BatchStatus.COMPLETED


async def test_only_the_launch_is_cancelled_not_the_runtime(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            await trio.sleep(3600)

    async with running(store) as runtime:
        with trio.move_on_after(5):
            await runtime.launch(single(work))
        assert runtime.running == ()
        report = await runtime.launch(single(work))
    assert report.status is BatchStatus.COMPLETED
    assert report.restart_of == 1


async def test_a_cancelled_scope_around_the_launch_itself_runs_nothing(
    store: Store, trace: Trace
) -> None:
    async with running(store) as runtime:
        with trio.CancelScope() as scope:
            scope.cancel()
            await runtime.launch(job(trace.step("a")))
        assert scope.cancelled_caught
    assert trace.calls == []
    assert store.settled()
    assert store.executions[0].status is BatchStatus.STOPPED


async def test_a_cancelled_scope_around_the_runtime_opens_and_closes_it(
    store: Store, trace: Trace
) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await launch(store, job(trace.step("a")))
    assert scope.cancelled_caught
    assert trace.calls == []
    assert store.settled()


async def test_between_two_steps_the_next_one_does_not_begin(
    store: Store, trace: Trace
) -> None:
    with trio.CancelScope() as scope:

        async def work(ctx: StepContext) -> None:
            scope.cancel()

        await launch(store, job(Step("a", work), trace.step("b")))
    assert scope.cancelled_caught
    assert trace.calls == []
    assert store.statuses[0] == ("a", "COMPLETED")
    assert store.settled()


async def test_a_tasklet_in_its_thread_is_waited_for_and_its_result_kept(
    store: Store, trace: Trace
) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def work(ctx: StepContext) -> None:
        busy.set()
        go_on.wait(5)
        ctx.state["done"] = True

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await trio.to_thread.run_sync(busy.wait)
                scope.cancel()
                go_on.set()

            nursery.start_soon(cancel)
            await launch(
                store, job(Step("work", work), trace.step("next")), inline=False
            )
    assert scope.cancelled_caught
    assert store.statuses[0] == ("work", "COMPLETED")
    assert '"done":true' in (store.steps[0].context or "")
    assert trace.calls == []
    assert store.settled()


async def test_a_tasklet_in_its_thread_learns_of_it_by_its_stop_token(
    store: Store,
) -> None:
    busy = threading.Event()

    def work(ctx: StepContext) -> None:
        while not ctx.stop.is_set():
            busy.set()
        ctx.state["tidy"] = True

    with trio.fail_after(5), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def cancel() -> None:
                await trio.to_thread.run_sync(busy.wait)
                scope.cancel()

            nursery.start_soon(cancel)
            await launch(store, single(work), inline=False)
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert store.statuses == [("work", "STOPPED")]
    assert '"tidy":true' in (store.steps[0].context or "")


async def test_a_tasklet_that_hides_the_cancellation_in_a_group_is_stopped_too(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("while tidying up")

    with trio.move_on_after(5) as scope:
        await launch(store, single(work))
    assert scope.cancelled_caught
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()


async def test_in_a_decider_no_decision_is_recorded(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def decide(ctx: object) -> str:
        await trio.sleep(3600)
        return "GO"

    choice = Decision("way", decide, then={"*": "next"})
    with trio.move_on_after(5) as scope:
        await launch(store, job(trace.step("a"), choice, trace.step("next")))
    assert scope.cancelled_caught
    assert store.dump().decisions == ()
    assert store.executions[0].status is BatchStatus.STOPPED


@pytest.mark.parametrize("when", ["before", "after"])
async def test_in_a_listener_the_step_is_stopped(
    store: Store, trace: Trace, when: str, autojump_clock: trio.testing.MockClock
) -> None:
    async def sleep(*arguments: object) -> None:
        await trio.sleep(3600)

    listener = StepListener("slow", **{when: sleep})  # type: ignore[arg-type]  # mypy takes revision into account
    with trio.move_on_after(5) as scope:
        await launch(store, job(trace.step("work", listeners=[listener])))
    assert scope.cancelled_caught
    assert trace.calls == ([] if when == "before" else ["work"])
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()


async def test_during_a_commit_the_commit_is_finished_first(
    store: Store, trace: Trace
) -> None:
    with trio.CancelScope() as scope:
        store.watch = lambda command: (
            scope.cancel() if len(store.commands) == 2 else None
        )
        await launch(store, job(trace.step("a"), trace.step("b"), trace.step("c")))
    assert scope.cancelled_caught
    assert trace.calls == ["a"]
    assert store.statuses == [("a", "COMPLETED"), ("b", "STOPPED")]
    assert store.settled()


async def test_keyboard_interrupt_goes_on_and_leaves_the_job_stopped(
    store: Store,
) -> None:
    async def work(ctx: StepContext) -> None:
        raise KeyboardInterrupt

    gone_on: list[BaseException] = []
    async with running(store) as runtime:
        try:
            await runtime.launch(single(work))
        except KeyboardInterrupt as exc:
            gone_on.append(exc)
    assert len(gone_on) == 1
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()


class Exotic(BaseException):
    """Derived from BaseException, as other libraries' cancellations are."""


async def test_what_is_no_exception_goes_on_and_leaves_the_job_failed(
    store: Store,
) -> None:
    async def work(ctx: StepContext) -> None:
        raise Exotic

    async with running(store) as runtime:
        with pytest.raises(Exotic):
            await runtime.launch(single(work))
        assert store.statuses == [("work", "FAILED")]
        assert store.settled()


@pytest.mark.parametrize("exc", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
async def test_what_the_users_block_raises_leaves_the_runtime_as_it_is(
    store: Store, exc: BaseException
) -> None:
    def block() -> None:
        raise exc

    caught: list[BaseException] = []
    try:
        async with running(store):
            block()
    except BaseException as gone_on:
        caught.append(gone_on)
    assert caught == [exc]


async def undisturbed(make: Callable[[Store, list[str]], object]) -> int:
    """Count the task steps of a launch that nobody disturbs."""
    counter = CancelAt(trio.CancelScope(), -1)
    trio.lowlevel.add_instrument(counter)
    store = Store()
    await launch(store, make(store, []))  # type: ignore[arg-type]  # a Job
    trio.lowlevel.remove_instrument(counter)
    return -1 - counter.left


def nodes(store: Store, calls: list[str]) -> object:
    chunk, _, _ = copying(range(6), size=2)

    async def work(ctx: StepContext) -> None:
        calls.append(ctx.node)
        await trio.lowlevel.checkpoint()

    return job(
        Step("a", work, listeners=[StepListener("l", before=lambda ctx: None)]),
        Decision("way", lambda ctx: "GO", then={"GO": "copy"}),
        Step("copy", chunk),
        Step("b", work),
    )


async def test_cancelled_at_any_task_step_the_next_launch_brings_it_to_the_same_end() -> (
    None
):
    """C166, C171."""
    count = await undisturbed(nodes)
    assert count > 20
    for step in range(1, count + 5):
        store, calls = Store(), list[str]()
        with trio.CancelScope() as scope:
            killer = CancelAt(scope, step)
            trio.lowlevel.add_instrument(killer)
            await launch(store, nodes(store, calls))  # type: ignore[arg-type]
        trio.lowlevel.remove_instrument(killer)
        assert store.settled(), step
        (execution,) = store.executions or (None,)
        if execution is None or execution.status is not BatchStatus.COMPLETED:
            report = await launch(store, nodes(store, calls))  # type: ignore[arg-type]
            assert report.status is BatchStatus.COMPLETED
        assert store.rows() == list(range(6)), step
        assert set(calls) == {"a", "b"}
        assert store.settled()
