"""Code that blocks the event loop is told by the name of its node, and nothing else."""

import asyncio
import logging
import sys
import time
from typing import Any

import pytest
import trio

from tests.job.components import ListReader, ListWriter
from tests.job.harness import Store, job, launch, running, single
from triolet.actors import (
    Chunk,
    Correlated,
    Decision,
    Event,
    EventKind,
    InvalidValue,
    PartitionedStep,
    RuntimeOptions,
    Split,
    Step,
    StepContext,
    StepListener,
    asyncio_tasklet,
)
from triolet.actors.job import loop_watch

BOUND = 0.05
BLOCK = 0.1
SETTLING_SECS = 0.1
"""Until the loop has gone to wait for a thread."""


class Clock:
    """Time that passes only when a test says so: no machine is too busy for it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


clock = Clock()


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "perf_counter", clock)


def block(seconds: float = 1.5 * BLOCK) -> None:
    clock.now += seconds


class Told(list[Event]):
    """An event sink that keeps what it hears of blocks, and all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: list[EventKind] = []

    def __call__(self, event: Event) -> None:
        self.kinds.append(event.kind)
        if event.kind is EventKind.LOOP_BLOCKED:
            self.append(event)

    @property
    def nodes(self) -> set[str | None]:
        return {event.node for event in self}


@pytest.fixture
def told() -> Told:
    return Told()


def watching(told: Told, bound: float = BOUND) -> dict[str, Any]:
    return {"inline": False, "block_warning": bound, "events": told}


@pytest.mark.parametrize("moment", ["whole", "first", "between", "last"])
async def test_a_block_is_told_with_its_step_whenever_it_happens(
    store: Store, told: Told, caplog: pytest.LogCaptureFixture, moment: str
) -> None:
    async def work(ctx: StepContext) -> None:
        if moment in ("between", "last"):
            await trio.lowlevel.checkpoint()
        block()
        if moment in ("first", "between"):
            await trio.lowlevel.checkpoint()

    caplog.handler.addFilter(Correlated())
    await launch(store, single(work), **watching(told))
    (event,) = told
    assert (event.node, event.step_id, event.execution_id) == ("work", 1, 1)
    assert event.seconds is not None
    assert BLOCK <= event.seconds < 2
    assert "while 'work' ran" in (event.message or "")
    (record,) = (one for one in caplog.records if one.name == "triolet.loop")
    assert record.levelno == logging.WARNING
    assert record.getMessage() == event.message
    assert vars(record)["step_id"] == 1
    order = [EventKind.LOOP_BLOCKED, EventKind.STEP_RESULT_COMMITTED]
    assert [kind for kind in told.kinds if kind in order] == order


async def test_a_block_is_told_right_after_it_while_the_step_goes_on(
    store: Store, told: Told
) -> None:
    async def work(ctx: StepContext) -> None:
        block()
        await trio.sleep(0.02)
        assert told.nodes == {"work"}

    report = await launch(store, single(work), **watching(told))
    report.raise_for_status()


async def test_it_is_told_of_all_code_of_a_job(store: Store, told: Told) -> None:
    async def code(*arguments: object) -> str:
        block()
        return "GO"

    async def before(ctx: StepContext) -> None:
        block()

    async def task(*arguments: object) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(code)

    async def plan(ctx: object) -> list[tuple[str, dict[str, object]]]:
        block()
        return [("only", {})]

    chunk = Chunk(ListReader([1]), ListWriter(), processor=code)
    await launch(
        store,
        job(
            Step("listened", task, listeners=[StepListener("l", before=before)]),
            Decision("way", code, then={"GO": "copy"}),
            Step("copy", chunk),
            Split("split", [[Step("left", task)], [Step("right", task)]]),
            PartitionedStep("parts", task, plan),
        ),
        **watching(told),
    )
    assert told.nodes == {"listened", "way", "copy", "left", "right", "parts"}
    assert [event.partition for event in told][-2:] == [None, "only"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="not with trio-asyncio")
async def test_it_is_told_of_asyncio_code(store: Store, told: Told) -> None:
    async def background() -> None:
        block()

    async def work(ctx: StepContext) -> None:
        await asyncio.create_task(background() if ctx.node == "b" else asyncio.sleep(0))

    steps = [Step(node, asyncio_tasklet(work)) for node in "abc"]
    await launch(store, job(*steps), **watching(told))
    assert told.nodes == {"b"}


async def test_two_runtimes_tell_of_their_own_jobs_only(store: Store) -> None:
    other, told, quiet, over = Store(), Told(), Told(), trio.Event()

    async def work(ctx: StepContext) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            block(3 * BLOCK)

    async def idle(ctx: StepContext) -> None:
        await over.wait()

    async with (
        running(store, **watching(told, 2 * BLOCK)) as first,
        running(other, **watching(quiet, 2 * BLOCK)) as second,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(second.launch, job(Step("idle", idle)))
        await first.launch(job(Step("work", work)))
        over.set()
    assert told.nodes == {"work"}
    assert len(told) == 3
    assert EventKind.JOB_ENDED in quiet.kinds
    assert quiet == []


async def test_nothing_is_told_of_threads_of_waiting_and_of_others_code(
    store: Store, told: Told
) -> None:
    def plain(*arguments: object) -> None:
        time.sleep(SETTLING_SECS)
        block()

    async def waiting(ctx: StepContext) -> None:
        await trio.to_thread.run_sync(plain)
        began.set()
        await over.wait()
        for _ in range(10):
            await trio.lowlevel.checkpoint()

    async def elsewhere() -> None:
        await began.wait()
        block()
        await trio.lowlevel.checkpoint()
        over.set()

    began, over = trio.Event(), trio.Event()
    async with running(store, **watching(told)) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                runtime.launch, job(Step("a", plain), Step("b", waiting))
            )
            nursery.start_soon(elsewhere)
        block()  # after the job, in its task
        await trio.lowlevel.checkpoint()
    assert EventKind.JOB_ENDED in told.kinds
    assert told == []


@pytest.mark.parametrize("off", [{"block_warning": 0}, {"inline": True}])
async def test_it_can_be_switched_off(
    store: Store, told: Told, off: dict[str, Any]
) -> None:
    async def work(ctx: StepContext) -> None:
        block()
        await trio.lowlevel.checkpoint()

    await launch(store, single(work), **{**watching(told), **off})
    assert told == []


async def test_it_watches_only_while_jobs_run(store: Store, told: Told) -> None:
    seen: list[int] = []

    def instruments() -> int:
        runner = trio.lowlevel.current_task()._runner
        return len(runner.instruments)

    async def work(ctx: StepContext) -> None:
        seen.append(instruments())

    before = instruments()
    async with running(store, **watching(told)) as runtime:
        assert instruments() == before
        await runtime.launch(single(work))
        await trio.sleep(0.001)  # not before the loop goes to wait
        assert instruments() == before
        await runtime.launch(single(work), anew=True)
    assert instruments() == before
    assert min(seen) > before


@pytest.mark.parametrize("wrong", [-1, 0.001, 61, float("nan"), "1", True])
def test_the_option_has_bounds(wrong: Any) -> None:
    with pytest.raises(InvalidValue, match="block_warning"):
        RuntimeOptions(block_warning=wrong)
