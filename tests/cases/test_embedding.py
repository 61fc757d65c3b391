"""Cases of the area embedding and cancellation: jobs inside other people's programs."""

import threading
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from tests.cases.world import World
from tests.job.components import AsyncReader, AsyncWriter, ListReader, ListWriter
from tests.job.harness import Store, Trace, running, trio_clock
from triolet.actors import (
    BatchStatus,
    Chunk,
    Event,
    Job,
    Parameter,
    RequestStatus,
    Runtime,
    RuntimeOptions,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
    open_runtime,
)


def one(work: object) -> Job:
    return Job("one", [Step("work", work)])  # type: ignore[arg-type]  # any work


class CancelAt(trio.abc.Instrument):
    """Cancel a scope when the run reaches its n-th task step."""

    def __init__(self, scope: trio.CancelScope, n: int) -> None:
        self.scope = scope
        self.left = n

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


class SlowClose(AsyncWriter):
    """Takes a while to close, whether cancelled or not."""

    async def close(self) -> None:
        await trio.sleep(1)
        await super().close()


async def test_a_cancellation_reaches_the_top_from_anywhere_and_clean_up_is_finished(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """C171, C166: commits, closes and the release of the lease are shielded."""
    step = 0
    cancelled = True
    while cancelled:
        step += 1
        reader, writer = ListReader(range(4)), ListWriter()
        chunk = Chunk(AsyncReader(reader), SlowClose(writer), size=2)
        with trio.CancelScope() as scope:
            killer = CancelAt(scope, step)
            trio.lowlevel.add_instrument(killer)
            await world.launch(one(chunk), anew=True)
        trio.lowlevel.remove_instrument(killer)
        cancelled = scope.cancel_called
        assert scope.cancelled_caught in (cancelled, False)
        for log in (reader.log, writer.log):
            assert log[-1:] in (
                [],
                [f"close {log[0].partition(' ')[2]}"] if log else [],
            )
        active = world.query(
            "SELECT count(*) FROM triolet_execution WHERE ended_at IS NULL"
        )
        assert active == [(0,)]
        assert world.query("SELECT max(lease_until) FROM triolet_owner") in (
            [(0,)],
            [(None,)],
        )
    assert step > 30


async def test_clean_up_that_hangs_is_given_up_after_a_bound(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """C171."""

    class Hanging(AsyncWriter):
        async def close(self) -> None:
            await trio.sleep_forever()

    class Endless(AsyncReader):
        async def read(self, n: int) -> list[int]:
            await trio.sleep(3600)
            return []

    chunk = Chunk(Endless(ListReader([])), Hanging(ListWriter()))
    began = trio.current_time()
    with trio.move_on_after(1) as scope:
        await world.launch(one(chunk))
    assert scope.cancelled_caught
    assert trio.current_time() - began < 10
    assert world.statuses() == [("work", "STOPPED")]


async def test_an_async_body_learns_of_a_cancellation_without_any_call_of_its_own(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """C175."""

    async def work(ctx: StepContext) -> None:
        await trio.sleep(3600)

    began = trio.current_time()
    with trio.move_on_after(5) as scope:
        await world.launch(one(work))
    assert scope.cancelled_caught
    assert trio.current_time() - began < 6


@pytest.mark.parametrize("how", ["cancel", "stop"])
async def test_a_plain_body_learns_of_it_by_a_flag(world: World, how: str) -> None:
    """C175."""
    busy = threading.Event()

    def work(ctx: StepContext) -> None:
        while not ctx.stop.is_set():
            busy.set()

    with trio.fail_after(10):
        async with open_runtime(world.url) as runtime, trio.open_nursery() as nursery:

            async def run() -> None:
                await runtime.launch(one(work))

            nursery.start_soon(run)
            await trio.to_thread.run_sync(busy.wait)
            if how == "stop":
                runtime.stop()
            else:
                nursery.cancel_scope.cancel()
    assert world.statuses() == [("work", "STOPPED")]


async def test_engines_with_equal_names_and_ids_do_not_meet(
    world: World, trace: Trace
) -> None:
    """C176: two stores, one definition, at once; contexts, stops, listeners apart."""
    other = World(world.folder / "other")
    other.folder.mkdir()
    told: dict[str, list[Event]] = {"mon": [], "tue": []}
    heard: list[tuple[object, str]] = []

    async def work(ctx: StepContext) -> None:
        ctx.state["day"] = ctx.parameters["day"]
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        if ctx.parameters["day"] == "mon":
            runtimes["mon"].stop()
            await trio.sleep_forever()

    def after(ctx: StepContext, outcome: StepOutcome) -> None:
        heard.append((ctx.parameters["day"], outcome.status.value))

    job = Job("one", [Step("work", work, listeners=[StepListener("l", after=after)])])
    statuses = {}
    options = {
        day: RuntimeOptions(inline=True, events=told[day].append) for day in told
    }
    async with (
        open_runtime(world.url, options["mon"]) as first,
        open_runtime(other.url, options["tue"]) as second,
    ):
        runtimes = {"mon": first, "tue": second}

        async def run(day: str) -> None:
            report = await runtimes[day].launch(job, day=day)
            statuses[day] = report.status
            assert (report.instance_id, report.execution_id) == (1, 1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, "mon")
            nursery.start_soon(run, "tue")
    assert statuses == {"mon": BatchStatus.STOPPED, "tue": BatchStatus.COMPLETED}
    assert sorted(heard, key=str) == [("mon", "STOPPED"), ("tue", "COMPLETED")]
    assert told["mon"][-1].status is BatchStatus.STOPPED
    assert told["tue"][-1].status is BatchStatus.COMPLETED
    assert world.stored_parameters() == [{"day": "mon"}]
    assert other.stored_parameters() == [{"day": "tue"}]
    assert other.query("SELECT context FROM triolet_step")[0][0].count("tue") == 1


NUMBER = Parameter("number", int, default=0, identifying=False)


def failing() -> Job:
    def work(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise ValueError("broken")

    return Job("one", [Step("work", work)], parameters=[NUMBER])


CALLS: dict[str, Callable[[Runtime], Awaitable[object]]] = {
    "launch": lambda runtime: runtime.launch(failing(), number=1),
    "restart": lambda runtime: runtime.restart(1, failing(), number=1),
    "serve": lambda runtime: runtime.serve([failing()], until_idle=True),
    "enqueue": lambda runtime: runtime.enqueue(failing()),
    "requests": lambda runtime: runtime.requests(),
    "request_stop": lambda runtime: runtime.request_stop(1, actor="eve"),
    "abandon": lambda runtime: runtime.abandon(1, actor="eve", reason="old"),
    "diagnose": lambda runtime: runtime.diagnose(),
    "operations": lambda runtime: runtime.operations(1),
    "list": lambda runtime: runtime.list(),
    "show": lambda runtime: runtime.show(1),
    "shutdown": lambda runtime: runtime.shutdown(1),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_cancelled_call_gives_its_result_or_is_cancelled_and_nothing_else(
    name: str, autojump_clock: trio.testing.MockClock
) -> None:
    """C166: at every task step of every coroutine that a runtime has."""
    step = 0
    cancelled = True
    while cancelled:
        step += 1
        store = Store(trio_clock)
        async with running(store) as runtime:
            await runtime.launch(failing())
            await runtime.enqueue(failing())
            done = False
            with trio.CancelScope() as scope:
                killer = CancelAt(scope, step)
                trio.lowlevel.add_instrument(killer)
                try:
                    await CALLS[name](runtime)
                    done = True
                finally:
                    trio.lowlevel.remove_instrument(killer)
            cancelled = scope.cancel_called
            assert done is not scope.cancelled_caught
            # The runtime works on.
            assert (await runtime.show(1)).execution.attempt == 1
        assert store.settled()
        assert RequestStatus.CLAIMED not in {
            one.status for one in store.dump().requests
        }
    assert step > 2 or name == "shutdown"  # there is nothing to be shut down
