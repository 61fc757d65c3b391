"""Failures of other systems where work is submitted to running programs."""

import random
from collections import Counter
from functools import partial

import psycopg
import pytest
import trio
import trio.lowlevel
import trio.testing

from tests.cases.test_embedding import CancelAt
from tests.cases.world import World
from tests.job.components import ListReader, ListWriter
from tests.job.harness import Store, running
from triolet.actors import (
    BatchStatus,
    Chunk,
    ComponentsInUse,
    Job,
    Parameter,
    RequestStatus,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)
from triolet.actors.testing import leftovers

NUMBER = Parameter("number", int, default=0)
CYCLES = 200
ROUNDS = 240
CONNECTIONS = 3


async def test_a_launch_that_finds_no_place_leaves_nothing_behind(world: World) -> None:
    """C087."""
    gate = trio.Event()

    async def wait(ctx: StepContext) -> None:
        await gate.wait()

    chunk = Chunk(ListReader([1, 2, 3]), ListWriter(), size=2)
    job = Job("one", [Step("wait", wait), Step("load", chunk)], parameters=[NUMBER])
    async with (
        open_runtime(world.url, world.options) as runtime,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(lambda: runtime.launch(job, number=0))
        await trio.testing.wait_all_tasks_blocked(0.05)
        for number in range(1, 5):
            with pytest.raises(ComponentsInUse):
                await runtime.launch(job, number=number)
        assert len((await runtime.list()).lines) == 1
        assert len((await runtime.list(status=BatchStatus.STARTED)).lines) == 1
        gate.set()
        await trio.testing.wait_all_tasks_blocked(0.05)
        for number in range(1, 5):
            report = await runtime.launch(job, number=number)
            assert report.status is BatchStatus.COMPLETED
    assert world.query("SELECT 1 FROM triolet_execution WHERE ended_at IS NULL") == []


async def test_serving_starts_and_stops_quietly_and_loses_no_request(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """C174."""
    draw = random.Random(174)
    store = Store(clock=lambda: round(trio.current_time() * 1_000_000))
    runs: Counter[int] = Counter()

    async def work(ctx: StepContext) -> None:
        await trio.sleep(0.02)
        runs[int(str(ctx.parameters["number"]))] += 1

    job = Job("due", [Step("work", work)], parameters=[NUMBER])
    threads = leftovers.threads()
    asked = 0
    for _ in range(CYCLES):
        async with running(store) as runtime, trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(lambda: runtime.serve([job]))
            for _ in range(draw.randrange(3)):
                asked += 1
                await runtime.enqueue(job, number=asked)
                await trio.sleep(draw.random() * 0.05)
            match draw.randrange(3):
                case 0:
                    runtime.stop()
                    runtime.stop()
                case 1:
                    nursery.cancel_scope.cancel()
                case _:
                    runtime.stop()
                    nursery.cancel_scope.cancel()
    async with running(store) as runtime:
        await runtime.serve([job], until_idle=True)

    assert {one.status for one in store.dump().requests} == {RequestStatus.DONE}
    assert sorted(runs) == list(range(1, asked + 1))
    completed = [one for one in store.executions if one.status == "COMPLETED"]
    assert len(completed) == asked
    leftovers.refuse_threads(threads)
    assert [one.getMessage() for one in caplog.records if one.levelno >= 30] == []


def sessions(look: psycopg.Connection) -> list[str]:
    """List the states of all other sessions: with the one for control and the listener."""
    return [
        state
        for (state,) in look.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    ]


async def test_cancelled_launches_leave_all_connections_usable(
    postgres_url: str,
) -> None:
    """C163: of what would be a pool elsewhere, no connection is ever lent out."""

    async def work(ctx: StepContext) -> None:
        await trio.lowlevel.checkpoint()

    job = Job("one", [Step("a", work), Step("b", work)], parameters=[NUMBER])
    options = RuntimeOptions(connections=CONNECTIONS)
    async with open_runtime(postgres_url, options) as runtime:
        for number in range(ROUNDS):
            with trio.CancelScope() as scope:
                instrument = CancelAt(scope, 1 + number % 40)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await runtime.launch(job, number=number)
                finally:
                    trio.lowlevel.remove_instrument(instrument)
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for number in range(CONNECTIONS):
                    one = partial(runtime.launch, job, number=-1 - number)
                    nursery.start_soon(one)
        with (
            psycopg.connect(postgres_url, autocommit=True) as look,
            trio.fail_after(20),
        ):
            # The one for control may look for stops at this very moment.
            while (states := sessions(look)) != ["idle"] * (CONNECTIONS + 2):
                assert len(states) == CONNECTIONS + 2
                await trio.sleep(0.01)
        page = await runtime.list(limit=2 * ROUNDS)
    assert not any(one.execution.status.active for one in page.lines)
