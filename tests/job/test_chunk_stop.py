"""Stopping a chunk step: which chunks are finished, rolled back, or never begun."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
import trio.testing

from tests.job.components import AsyncReader, ListReader, copying
from tests.job.harness import Store, Trace, job, launch, running, single
from triolet.actors import BatchStatus, Chunk, Event, EventKind, Runtime, Step


def stopping_after(commits: int, runtimes: list[Runtime]) -> Callable[[Event], None]:
    """Make a sink that stops its runtime when that many chunks are committed."""

    def sink(event: Event) -> None:
        if event.kind is EventKind.CHUNK_COMMITTED:
            assert event.counts is not None
            if event.counts.committed == commits:
                runtimes[0].stop()

    return sink


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "threads"])
async def test_a_stop_between_two_chunks_prevents_the_next_one(
    store: Store, inline: bool
) -> None:
    """C070."""
    processed: list[int] = []

    def process(item: int) -> int:
        processed.append(item)
        return item

    chunk, reader, writer = copying(range(100), processor=process)
    runtimes: list[Runtime] = []
    sink = stopping_after(3, runtimes)
    async with running(store, events=sink, inline=inline) as runtime:
        runtimes.append(runtime)
        report = await runtime.launch(single(chunk))
    assert report.status is BatchStatus.STOPPED
    assert report.counts.committed == 3
    assert store.rows() == list(range(30))
    assert processed == list(range(30))
    assert reader.log + writer.log == [
        "open reader",
        "close reader",
        "open writer",
        "close writer",
    ]


@pytest.mark.parametrize("phase", ["read", "write"])
async def test_a_stop_during_a_chunk_finishes_it(store: Store, phase: str) -> None:
    """C070."""
    async with running(store) as runtime:
        chunk, reader, writer = copying(range(100))
        if phase == "read":
            reader.on_read = lambda position: runtime.stop() if position == 20 else None
        else:
            writer.on_write = lambda rows: runtime.stop() if 25 in rows else None
        report = await runtime.launch(single(chunk))
    assert report.status is BatchStatus.STOPPED
    assert store.rows() == list(range(30))
    assert report.counts.committed == 3
    report = await launch(store, single(chunk))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == list(range(100))


async def test_a_step_whose_last_chunk_is_durable_has_completed_despite_the_stop(
    store: Store, trace: Trace
) -> None:
    chunk, _, _ = copying(range(30))
    runtimes: list[Runtime] = []
    async with running(store, events=stopping_after(3, runtimes)) as runtime:
        runtimes.append(runtime)
        copy = job(Step("copy", chunk), trace.step("next"))
        report = await runtime.launch(copy)
    assert report.status is BatchStatus.STOPPED
    assert store.statuses == [("copy", "COMPLETED")]
    assert trace.calls == []
    report = await launch(store, copy)
    assert report.status is BatchStatus.COMPLETED
    assert report.step("copy").reused
    assert store.rows() == list(range(30))


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_chunk_in_flight_can_be_rolled_back_by_a_stop(
    store: Store, kind: str
) -> None:
    reading = threading.Event()

    def on_read(position: int) -> None:
        if position == 20 and len(store.steps) == 1:
            reading.set()
            while not stopped[0]:
                pass

    stopped = [False]
    chunk, reader, _ = copying(range(100), in_flight="rollback_chunk")
    reader.on_read = on_read
    if kind == "async":
        reader.on_read = lambda position: None
        slow = SlowAt(reader, 20)
        chunk = Chunk(slow, chunk.writer, size=10, in_flight="rollback_chunk")
    async with running(store, inline=kind == "async") as runtime:

        async def stop() -> None:
            if kind == "async":
                await trio.testing.wait_all_tasks_blocked()
            else:
                await trio.to_thread.run_sync(reading.wait)
            runtime.stop()
            await trio.testing.wait_all_tasks_blocked()
            stopped[0] = True

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop)
                report = await runtime.launch(single(chunk))
    assert report.status is BatchStatus.STOPPED
    assert store.rows() == list(range(20))
    assert reader.log == ["open reader", "close reader"]
    report = await launch(store, single(chunk))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == list(range(100))


class SlowAt(AsyncReader):
    """Its read never ends at one position, the first time."""

    def __init__(self, inner: ListReader, position: int) -> None:
        super().__init__(inner)
        self.slow_at: int | None = position

    async def read(self, n: int) -> Sequence[Any]:
        if self.inner.position == self.slow_at:
            self.slow_at = None
            await trio.sleep_forever()
        return await super().read(n)


async def test_a_chunk_that_does_not_finish_within_its_grace_is_rolled_back(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    chunk, reader, writer = copying(range(30))
    chunk = Chunk(SlowAt(reader, 20), writer, size=10)
    async with running(store, lease=600) as runtime:

        async def stop() -> None:
            await trio.sleep(1)
            runtime.stop()

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            report = await runtime.launch(job(Step("work", chunk, grace=7)))
    assert report.status is BatchStatus.STOPPED
    assert trio.current_time() - began == 8
    assert store.rows() == list(range(20))
    assert reader.log == ["open reader", "close reader"]


async def test_a_stop_before_the_step_began_opens_nothing(store: Store) -> None:
    chunk, reader, writer = copying(range(30))
    async with running(store) as runtime:

        async def stopping(ctx: object) -> None:
            runtime.stop()

        report = await runtime.launch(job(Step("a", stopping), Step("copy", chunk)))
    assert report.status is BatchStatus.STOPPED
    assert reader.log + writer.log == []


async def test_a_step_can_be_started_again_as_soon_as_it_is_reported_stopped(
    store: Store,
) -> None:
    """C064."""
    chunk, reader, writer = copying(range(200), size=2)
    committed = []

    def sink(event: Event) -> None:
        if event.kind is EventKind.CHUNK_COMMITTED:
            committed.append(event)
            if len(committed) % 2 == 0 and event.execution_id is not None:
                runtime.stop(event.execution_id)

    launches = 0
    async with running(store, events=sink) as runtime:
        status = BatchStatus.STOPPED
        while status is BatchStatus.STOPPED:
            report = await runtime.launch(single(chunk))
            status = report.status
            launches += 1
    assert status is BatchStatus.COMPLETED
    assert launches == 50
    assert store.rows() == list(range(200))
    for log, part in ((reader.log, "reader"), (writer.log, "writer")):
        assert log == [f"open {part}", f"close {part}"] * launches
