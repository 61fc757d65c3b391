"""Chunk steps from opening to closing: pairs, stops, cancellations, broken parts."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

from tests.job.components import (
    AsyncReader,
    AsyncWriter,
    ListReader,
    ListWriter,
)
from tests.job.harness import Store, job, launch, message_of, running, single
from triolet.actors import (
    BatchStatus,
    Chunk,
    Counts,
    Event,
    EventKind,
    JsonObject,
    Step,
)


class Brittle:
    """A part of a chunk that breaks in one of its methods."""

    def __init__(self, method: str, log: list[str]) -> None:
        self.method = method
        self.log = log

    def meet(self, method: str, part: str) -> None:
        self.log.append(f"{method} {part}")
        if method == self.method:
            raise ValueError(f"{method} is broken")


class BrittleReader(ListReader):
    def __init__(self, method: str, log: list[str]) -> None:
        super().__init__(range(4))
        self.brittle = Brittle(method, log)

    def open(self, state: JsonObject | None) -> None:
        self.brittle.meet("open", "reader")

    def read(self, n: int) -> Sequence[Any]:
        self.brittle.meet("read", "reader")
        return super().read(n)

    def close(self) -> None:
        self.brittle.meet("close", "reader")


class BrittleWriter(ListWriter):
    def __init__(self, method: str, log: list[str]) -> None:
        super().__init__()
        self.brittle = Brittle(method, log)

    def open(self, cursor: object) -> None:
        self.brittle.meet("open", "writer")

    def write(self, cursor: object, rows: Sequence[Any], key: object) -> None:
        self.brittle.meet("write", "writer")

    def close(self) -> None:
        self.brittle.meet("close", "writer")


def brittle(reader: str = "", writer: str = "") -> tuple[Chunk, list[str]]:
    log: list[str] = []
    parts = BrittleReader(reader, log), BrittleWriter(writer, log)
    return Chunk(*parts, size=4), log


@pytest.mark.parametrize(
    ("reader", "writer", "expected", "code"),
    [
        ("open", "", ["open reader", "close reader"], "reader_open_failed"),
        (
            "",
            "open",
            ["open reader", "open writer", "close writer", "close reader"],
            "writer_open_failed",
        ),
        (
            "read",
            "",
            [
                "open reader",
                "open writer",
                "read reader",
                "close writer",
                "close reader",
            ],
            "reader_failed",
        ),
        (
            "",
            "write",
            [
                "open reader",
                "open writer",
                "read reader",
                "write writer",
                "close writer",
                "close reader",
            ],
            "writer_failed",
        ),
    ],
    ids=["reader open", "writer open", "read", "write"],
)
async def test_whatever_was_opened_is_closed_when_something_fails(
    store: Store, reader: str, writer: str, expected: list[str], code: str
) -> None:
    chunk, log = brittle(reader, writer)
    report = await launch(store, single(chunk))
    assert log == expected
    assert report.failure is not None
    assert report.failure.code == code


@pytest.mark.parametrize(
    ("reader", "writer", "rolled_back"),
    [("open", "", 0), ("", "open", 0), ("read", "", 1), ("", "write", 1)],
    ids=["reader open", "writer open", "read", "write"],
)
async def test_only_a_chunk_that_had_begun_counts_as_rolled_back(
    store: Store, reader: str, writer: str, rolled_back: int
) -> None:
    chunk, _ = brittle(reader, writer)
    report = await launch(store, single(chunk))
    assert report.status is BatchStatus.FAILED
    assert report.counts.rolled_back == rolled_back


@pytest.mark.parametrize(
    ("reader", "writer", "code"),
    [
        ("close", "", "reader_close_failed"),
        ("", "close", "writer_close_failed"),
        ("close", "close", "writer_close_failed"),
    ],
    ids=["reader", "writer", "both"],
)
async def test_a_step_whose_components_cannot_be_closed_has_failed(
    store: Store, reader: str, writer: str, code: str
) -> None:
    chunk, log = brittle(reader, writer)
    report = await launch(store, single(chunk))
    assert message_of(report) == "close is broken"
    assert report.failure is not None
    assert report.failure.code == code
    assert log[-2:] == ["close writer", "close reader"]
    assert report.counts.read == 4


async def test_a_failure_is_kept_although_closing_fails_too(store: Store) -> None:
    chunk, log = brittle("read", "close")
    report = await launch(store, single(chunk))
    assert message_of(report) == "read is broken"
    assert log[-2:] == ["close writer", "close reader"]


async def test_closing_may_take_long_when_nothing_presses(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    class Flushing(AsyncWriter):
        async def close(self) -> None:
            await trio.sleep(60)
            self.inner.log.append("flushed")

    writer = Flushing(ListWriter())
    chunk = Chunk(ListReader(range(3)), writer)
    report = await launch(store, single(chunk), lease=600)
    assert report.status is BatchStatus.COMPLETED
    assert writer.inner.log == ["open writer", "flushed"]


class Hanging(AsyncWriter):
    """Its close never ends by itself."""

    async def close(self) -> None:
        self.inner.log.append("close writer")
        await trio.sleep_forever()


async def test_a_close_that_hangs_holds_up_neither_cancellation_nor_other_closes(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    class Slow(AsyncReader):
        async def read(self, n: int) -> Sequence[Any]:
            await trio.sleep(3600)
            return []

    reader, writer = ListReader(range(3)), ListWriter()
    chunk = Chunk(Slow(reader), Hanging(writer))
    began = trio.current_time()
    with trio.move_on_after(1) as scope:
        await launch(store, single(chunk), lease=600)
    assert scope.cancelled_caught
    assert trio.current_time() - began < 20
    assert writer.log == ["open writer", "close writer"]
    assert reader.log == ["open reader", "close reader"]
    assert store.statuses == [("work", "STOPPED")]


async def test_a_stop_reaches_a_close_that_hangs(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    reader, writer = ListReader(range(3)), ListWriter()
    chunk = Chunk(AsyncReader(reader), Hanging(writer))
    async with running(store, lease=600) as runtime:

        async def stop() -> None:
            await trio.sleep(10)
            runtime.stop()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            report = await runtime.launch(job(Step("work", chunk, grace=5)))
    assert report.status is BatchStatus.STOPPED
    assert reader.log == ["open reader", "close reader"]
    assert report.counts.read == 3


# Cancellation


@pytest.mark.parametrize("where", ["read", "write", "close"])
async def test_cancelling_closes_both_and_leaves_what_was_committed(
    store: Store, where: str, autojump_clock: trio.testing.MockClock
) -> None:
    reader, writer = ListReader(range(30)), ListWriter()

    class Reader(AsyncReader):
        async def read(self, n: int) -> Sequence[Any]:
            if where == "read" and reader.position == 20:
                await trio.sleep_forever()
            return await super().read(n)

    class Writer(AsyncWriter):
        async def write(self, cursor: Any, rows: Sequence[Any], key: Any) -> None:
            if where == "write" and 20 in rows:
                await trio.sleep_forever()
            await super().write(cursor, rows, key)

        async def close(self) -> None:
            await super().close()
            if where == "close":
                await trio.sleep_forever()

    chunk = Chunk(Reader(reader), Writer(writer), size=10)
    with trio.move_on_after(1) as scope:
        await launch(store, single(chunk))
    assert scope.cancelled_caught
    assert reader.log + writer.log == [
        "open reader",
        "close reader",
        "open writer",
        "close writer",
    ]
    (step,) = store.steps
    done = 30 if where == "close" else 20
    assert step.status is BatchStatus.STOPPED
    assert step.counts == Counts(
        read=done, processed=done, written=done, committed=done // 10
    )
    assert store.settled()


async def test_a_reader_that_cannot_tell_its_fraction_harms_nobody(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    class Reader(ListReader):
        def fraction(self) -> float:
            raise ZeroDivisionError("an empty file")

    events: list[Event] = []
    chunk = Chunk(Reader(range(3)), ListWriter())
    report = await launch(store, single(chunk), events=events.append)
    assert report.status is BatchStatus.COMPLETED
    (told,) = (one for one in events if one.kind is EventKind.CHUNK_COMMITTED)
    assert told.fraction is None
    assert "an empty file" in caplog.text
