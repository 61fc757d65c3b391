"""User code that was written for asyncio: it runs, fails and ends as other code does."""

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from tests.job.components import ListReader, ListWriter
from tests.job.harness import Store, Trace, job, launch, message_of, running, single
from triolet.actors import (
    BatchStatus,
    Chunk,
    DeciderContext,
    Decision,
    Exit,
    InvalidValue,
    Split,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
    asyncio_tasklet,
)
from triolet.actors.testing import Scenario, crash_at_every_commit

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="trio-asyncio does not support it yet"
)


class CancelAt(trio.abc.Instrument):
    """Cancel a scope when the run reaches its n-th task step."""

    def __init__(self, scope: trio.CancelScope, n: int) -> None:
        self.scope = scope
        self.left = n

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


@asynccontextmanager
async def nothing_left_over() -> AsyncIterator[None]:
    """Check that tasks and busy threads are as many afterwards as before."""
    before = trio.lowlevel.current_statistics().tasks_living
    yield
    assert trio.lowlevel.current_statistics().tasks_living == before
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0


async def test_what_asyncio_offers_works_inside(store: Store) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    async def spoken() -> bytes:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            await writer.wait_closed()
        return answer

    async def work(ctx: StepContext) -> Exit:
        task = asyncio.current_task()
        assert task is not None
        assert asyncio.get_running_loop() is task.get_loop()
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            first = group.create_task(asyncio.sleep(0.001, "slept"))
            second = group.create_task(asyncio.to_thread(threading.get_ident))
        assert second.result() != threading.get_ident()
        ctx.state["said"] = [first.result(), (await spoken()).decode()]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.sleep(5)
        return Exit("DONE")

    async with nothing_left_over():
        report = await launch(store, single(asyncio_tasklet(work)))
    assert (report.status, report.steps[0].exit_code) == (BatchStatus.COMPLETED, "DONE")
    assert '"said":["slept","HELLO\\n"]' in (store.steps[0].context or "")


async def test_all_code_of_a_step_shares_a_loop_that_is_closed_with_it(
    store: Store,
) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    def note(result: object) -> Callable[..., Any]:
        async def code(*arguments: object) -> object:
            await asyncio.sleep(0)
            loops.append(asyncio.get_running_loop())
            return result

        return asyncio_tasklet(code)

    class Reader(ListReader):
        open = note(None)

    writer = ListWriter()
    chunk = Chunk(Reader([1, 2]), writer, processor=note("row"))
    listener = StepListener("l", before=note(None), after=note(None))
    await launch(
        store,
        job(
            Step("a", note(None), listeners=[listener]),
            Decision("way", note("GO"), then={"GO": "copy"}),
            Step("copy", chunk),
        ),
    )
    assert writer.rows == ["row", "row"]
    assert [len(loops), len({id(loop) for loop in loops})] == [7, 3]
    assert loops[0] is loops[1] is loops[2]
    assert loops[4] is loops[5] is loops[6]
    assert all(loop.is_closed() for loop in loops)


async def test_branches_that_run_side_by_side_have_loops_of_their_own(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    loops = set()

    async def work(ctx: StepContext) -> None:
        await asyncio.sleep(5)
        loops.add(asyncio.get_running_loop())

    branches = [[Step(name, asyncio_tasklet(work))] for name in "abc"]
    split = Split("all", branches, max_parallel=3)
    await launch(store, job(Step("z", lambda ctx: None), split))
    assert trio.current_time() < 10
    assert len(loops) == 3


@pytest.mark.parametrize("how", ["cancel", "stop", "grace"])
async def test_in_the_middle_it_is_cancelled_as_asyncio_does_it(
    store: Store, how: str, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []

    async def work(ctx: StepContext) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        finally:
            await asyncio.sleep(1)
            log.append("tidy")

    on_stop = "cooperate" if how == "grace" else "cancel"
    step = Step("work", asyncio_tasklet(work), on_stop=on_stop, grace=5)
    async with nothing_left_over():
        with trio.CancelScope() as scope:
            async with running(store) as runtime, trio.open_nursery() as nursery:
                nursery.start_soon(runtime.launch, job(step))
                await trio.sleep(1)
                if how == "cancel":
                    scope.cancel()
                else:
                    runtime.stop()
    assert scope.cancelled_caught == (how == "cancel")
    assert trio.current_time() < 10
    assert log == ["cancelled", "tidy"]
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()


async def by_waiting(ctx: StepContext) -> None:
    await asyncio.wait_for(ctx.stop.wait(), 3600)


async def by_looking(ctx: StepContext) -> None:
    while not ctx.stop.is_set():  # noqa: ASYNC110  # as its users do
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("heed", [by_waiting, by_looking])
async def test_the_stop_of_the_context_is_heeded(
    store: Store,
    heed: Callable[[StepContext], Any],
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def work(ctx: StepContext) -> None:
        await heed(ctx)
        ctx.state["tidy"] = True

    step = Step("work", asyncio_tasklet(work), on_stop="cooperate")
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, job(step))
        await trio.sleep(1)
        runtime.stop()
    assert trio.current_time() < 2
    assert store.statuses == [("work", "STOPPED")]
    assert '"tidy":true' in (store.steps[0].context or "")


async def test_a_listener_after_a_stop_still_has_the_loop_of_the_step(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[object] = []

    async def before(ctx: StepContext) -> None:
        seen.append(asyncio.get_running_loop())

    async def after(ctx: StepContext, outcome: StepOutcome) -> None:
        await asyncio.sleep(1)
        seen.extend([asyncio.get_running_loop(), outcome.status])

    async def work(ctx: StepContext) -> None:
        runtime.stop()
        await asyncio.sleep(3600)

    listener = StepListener(
        "l", before=asyncio_tasklet(before), after=asyncio_tasklet(after)
    )
    async with running(store) as runtime:
        await runtime.launch(single(asyncio_tasklet(work), listeners=[listener]))
    assert seen[0] is seen[1]
    assert seen[2] is BatchStatus.STOPPED


async def test_a_failure_is_one_of_the_step_with_its_line(store: Store) -> None:
    async def work(ctx: StepContext) -> None:
        await asyncio.sleep(0)
        raise ValueError("no such day")

    report = await launch(store, single(asyncio_tasklet(work)))
    assert message_of(report) == "no such day"
    assert report.failure is not None
    assert report.failure.type == "ValueError"
    assert "test_asyncio_tasklet.py, line" in (report.failure.place or "")


async def test_failures_of_a_task_group_are_one_of_the_step(store: Store) -> None:
    async def fail() -> None:
        raise ValueError("one of many")

    async def work(ctx: StepContext) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(asyncio.sleep(3600))

    report = await launch(store, single(asyncio_tasklet(work)))
    assert report.failure is not None
    assert report.failure.type == "ExceptionGroup"


async def test_a_cancellation_that_nobody_asked_for_is_a_failure_that_says_so(
    store: Store,
) -> None:
    async def work(ctx: StepContext) -> None:
        own = asyncio.create_task(asyncio.sleep(3600))
        own.cancel()
        await own

    report = await launch(store, single(asyncio_tasklet(work)))
    assert "asyncio.CancelledError" in message_of(report)
    assert "nobody had cancelled" in message_of(report)


@pytest.mark.parametrize("where", ["itself", "a task of it"])
async def test_an_exit_is_a_failure_that_says_so_and_hangs_nothing(
    store: Store, where: str
) -> None:
    async def leave() -> None:
        await asyncio.sleep(0)
        raise SystemExit(3)

    async def work(ctx: StepContext) -> None:
        others = [asyncio.create_task(asyncio.sleep(3600))]
        if where == "itself":
            await leave()
        others.append(asyncio.create_task(leave()))
        await asyncio.sleep(3600)

    with trio.fail_after(5):
        async with nothing_left_over():
            report = await launch(store, single(asyncio_tasklet(work)))
    assert "sys.exit(3)" in message_of(report)


@pytest.mark.parametrize("where", ["itself", "a task of it"])
async def test_keyboard_interrupt_goes_on(store: Store, where: str) -> None:
    async def interrupt() -> None:
        raise KeyboardInterrupt

    async def work(ctx: StepContext) -> None:
        if where == "itself":
            await interrupt()
        asyncio.create_task(interrupt())  # noqa: RUF006  # it ends at once
        await asyncio.sleep(3600)

    gone_on: list[BaseException] = []
    with trio.fail_after(5):
        async with running(store) as runtime:
            try:
                await runtime.launch(single(asyncio_tasklet(work)))
            except KeyboardInterrupt as exc:
                gone_on.append(exc)
    assert len(gone_on) == 1
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()


async def test_what_is_left_running_is_cancelled_before_the_result_is_committed(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []
    tasks = []

    async def lag(seconds: float) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(seconds)
            log.append(f"tidy {store.statuses[-1][1]}")

    async def work(ctx: StepContext) -> None:
        tasks.extend([asyncio.create_task(lag(0.1)), asyncio.create_task(lag(0.2))])
        await asyncio.sleep(0)

    async with nothing_left_over():
        report = await launch(store, single(asyncio_tasklet(work)))
    assert report.status is BatchStatus.COMPLETED
    assert log == ["tidy STARTED", "tidy STARTED"]
    assert [task.cancelled() for task in tasks] == [True, True]


async def test_it_is_told_when_what_is_left_running_does_not_end(
    store: Store,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(20)

    async def work(ctx: StepContext) -> None:
        asyncio.create_task(stubborn())  # noqa: RUF006
        await asyncio.sleep(0)

    await launch(store, single(asyncio_tasklet(work)))
    (record,) = (one for one in caplog.records if one.name == "triolet.asyncio")
    assert "left behind" in record.getMessage()
    assert 20 <= trio.current_time() < 30


async def test_failures_in_the_background_are_logged_and_fail_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(moment: str) -> None:
        try:
            await asyncio.sleep(0 if moment == "soon" else 3600)
        finally:
            raise ValueError(f"failed {moment}")

    async def work(ctx: StepContext) -> None:
        tasks = [asyncio.create_task(fail("soon"))]
        await asyncio.sleep(0.01)
        tasks.clear()
        gc.collect()
        asyncio.create_task(fail("at the end"))  # noqa: RUF006
        await asyncio.sleep(0.01)

    async with nothing_left_over():
        report = await launch(store, single(asyncio_tasklet(work)))
    assert report.status is BatchStatus.COMPLETED
    errors = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert ["failed soon" in str(one.exc_info) for one in errors] == [True, False]
    assert "failed at the end" in str(errors[1].exc_info)


async def test_cancelled_at_any_task_step_it_is_tidied_up_and_stopped() -> None:
    async def work(ctx: StepContext) -> None:
        calls.append("began")
        try:
            await asyncio.sleep(0)
            await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
        finally:
            calls.append("ended")

    step, cancelled, store = 0, True, Store()
    while cancelled:
        step += 1
        store, calls = Store(), list[str]()
        async with nothing_left_over():
            with trio.fail_after(5), trio.CancelScope() as scope:
                killer = CancelAt(scope, step)
                trio.lowlevel.add_instrument(killer)
                await launch(store, single(asyncio_tasklet(work)))
            trio.lowlevel.remove_instrument(killer)
        cancelled = scope.cancel_called
        assert store.settled(), step
        assert calls in ([], ["began", "ended"]), step
    assert step > 30
    assert store.statuses == [("work", "COMPLETED")]


def test_a_job_of_it_survives_a_crash_at_every_commit() -> None:
    async def work(ctx: StepContext) -> None:
        await asyncio.sleep(60)
        ctx.state["runs"] = 1

    async def decide(ctx: DeciderContext) -> str:
        await asyncio.sleep(60)
        return "GO"

    crash_at_every_commit(
        Scenario(
            lambda: job(
                Step("a", asyncio_tasklet(work)),
                Decision("way", asyncio_tasklet(decide), then={"GO": "b"}),
                Step("b", asyncio_tasklet(work)),
            )
        )
    )


async def test_a_plain_tasklet_may_run_asyncio_in_its_thread_meanwhile(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        await asyncio.sleep(0)

    def plain(ctx: StepContext) -> None:
        asyncio.run(work(ctx))

    report = await launch(
        store, job(Step("a", asyncio_tasklet(work)), Step("b", plain)), inline=False
    )
    assert report.status is BatchStatus.COMPLETED


def test_outside_of_a_job_it_is_an_async_function_of_trio() -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def twice(number: int) -> int:
        return await asyncio_tasklet(double)(number)

    assert trio.run(asyncio_tasklet(double), 4) == 8
    assert trio.run(asyncio_tasklet(twice), 4) == 8
    assert asyncio_tasklet(double).__name__ == "double"


@pytest.mark.parametrize("wrong", [print, lambda ctx: None, "work", None])
def test_what_is_no_coroutine_function_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidValue, match="must be a coroutine function"):
        asyncio_tasklet(wrong)


def test_asyncio_is_not_imported_before_it_is_used() -> None:
    script = (
        "import sys, triolet.actors.composition as c; "
        "from triolet.actors import asyncio_tasklet; "
        "print({'asyncio', 'trio_asyncio'} & {*sys.modules})"
    )
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output == "set()\n"
