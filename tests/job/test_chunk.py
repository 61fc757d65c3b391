"""Chunk steps: components of every kind, counts, checkpoints, and what failures leave."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.components import (
    AsyncReader,
    AsyncWriter,
    ListReader,
    ListWriter,
    RowWriter,
    copying,
    fail_once,
)
from tests.job.harness import Store, job, launch, message_of, running, single
from triolet.actors import (
    FILTERED,
    BatchStatus,
    Chunk,
    ChunkKey,
    Counts,
    FailureCategory,
    OutcomeUnknown,
    Step,
    StepContext,
)


def double(item: int) -> int:
    return 2 * item


async def double_later(item: int) -> int:
    await trio.lowlevel.checkpoint()
    return 2 * item


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "threads"])
@pytest.mark.parametrize("process", [None, double, double_later])
@pytest.mark.parametrize("write", [ListWriter, AsyncWriter, RowWriter])
@pytest.mark.parametrize("read", [ListReader, AsyncReader])
async def test_components_of_every_kind_go_together(
    store: Store,
    read: type[Any],
    write: type[Any],
    process: Callable[[int], object] | None,
    inline: bool,
) -> None:
    reader, listed = ListReader(range(25)), ListWriter()
    chunk = Chunk(
        reader if read is ListReader else AsyncReader(reader),
        RowWriter()
        if write is RowWriter
        else listed
        if write is ListWriter
        else AsyncWriter(listed),
        process,
        size=10,
    )
    report = await launch(store, single(chunk), inline=inline)
    assert report.status is BatchStatus.COMPLETED
    written = store.rows() if write is RowWriter else listed.rows
    assert written == [item if process is None else 2 * item for item in range(25)]
    assert report.counts == Counts(read=25, processed=25, written=25, committed=3)


async def test_each_chunk_is_committed_with_its_counts_and_its_checkpoint(
    store: Store,
) -> None:
    seen = []

    def look(rows: Sequence[int]) -> None:
        (step,) = store.steps
        position = None if step.checkpoint is None else step.checkpoint
        seen.append((step.counts.read, step.counts.committed, position))

    chunk, _, writer = copying(range(5), size=2)
    writer.on_write = look
    await launch(store, single(chunk))
    assert [(read, committed) for read, committed, _ in seen] == [
        (0, 0),
        (2, 1),
        (4, 2),
    ]
    assert seen[0][2] is None
    assert '"position":4' in (seen[2][2] or "")


async def test_filtered_items_are_counted_and_not_written(store: Store) -> None:
    chunk, _, _ = copying(
        range(25), processor=lambda item: item if item % 3 else FILTERED
    )
    report = await launch(store, single(chunk))
    assert store.rows() == [item for item in range(25) if item % 3]
    assert report.counts == Counts(
        read=25, processed=16, written=16, filtered=9, committed=3
    )


async def test_an_async_processor_may_filter_too(store: Store) -> None:
    async def odd(item: int) -> object:
        return item if item % 2 else FILTERED

    writer = ListWriter()
    report = await launch(store, single(Chunk(ListReader(range(5)), writer, odd)))
    assert writer.rows == [1, 3]
    assert report.counts == Counts(
        read=5, processed=2, written=2, filtered=3, committed=1
    )


@pytest.mark.parametrize("make", [ListWriter, RowWriter])
async def test_a_writer_is_not_called_for_a_chunk_that_was_filtered_as_a_whole(
    store: Store, make: type[Any]
) -> None:
    writer = make()
    chunk = Chunk(
        ListReader(range(4)),
        writer,
        lambda item: FILTERED if item < 2 else item,
        size=2,
    )
    report = await launch(store, single(chunk))
    assert len(writer.keys) == 1
    assert report.counts == Counts(
        read=4, processed=2, written=2, filtered=2, committed=2
    )


@settings(deadline=None)
@given(
    items=st.lists(st.integers(0, 5), max_size=20),
    size=st.integers(1, 7),
    wanted=st.sets(st.integers(0, 5)),
    failures=st.lists(st.integers(0, 20), max_size=3),
)
async def test_read_is_written_and_filtered_together_whatever_fails(
    items: list[int], size: int, wanted: set[int], failures: list[int]
) -> None:
    pending, calls = set(failures), [0]

    def process(item: int) -> object:
        calls[0] += 1
        if calls[0] in pending:
            raise ValueError("now and then")
        return item if item in wanted else FILTERED

    store = Store()
    chunk, _, _ = copying(items, size, processor=process)
    while True:
        report = await launch(store, single(chunk))
        counts = store.steps[-1].counts
        assert counts.read == counts.written + counts.filtered
        assert counts.processed == counts.written
        if report.status is BatchStatus.COMPLETED:
            break
    assert store.rows() == [item for item in items if item in wanted]
    assert counts.read == len(items)
    assert counts.committed == -(-len(items) // size)


async def test_an_empty_input_completes_without_a_commit_of_a_chunk(
    store: Store,
) -> None:
    chunk, reader, writer = copying([])
    report = await launch(store, single(chunk))
    assert report.status is BatchStatus.COMPLETED
    assert report.counts == Counts()
    assert store.rows() == []
    assert reader.log + writer.log == [
        "open reader",
        "close reader",
        "open writer",
        "close writer",
    ]


async def test_a_failing_chunk_leaves_the_chunks_before_it(store: Store) -> None:
    chunk, _, writer = copying(range(100))
    writer.on_write = fail_once(35)
    report = await launch(store, single(chunk))
    assert message_of(report) == "35 is not wanted"
    assert store.rows() == list(range(30))
    (step,) = store.steps
    assert step.counts == Counts(
        read=30, processed=30, written=30, committed=3, rolled_back=1
    )
    assert step.failure is not None
    assert (step.failure.where, step.failure.code) == ("work", "writer_failed")


async def test_a_restart_goes_on_from_the_checkpoint(store: Store) -> None:
    chunk, reader, writer = copying(range(100))
    writer.on_write = fail_once(35)
    await launch(store, single(chunk))
    report = await launch(store, single(chunk))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == list(range(100))
    assert reader.states == [None, {"position": 30, "tag": "x"}]
    assert report.counts == Counts(
        read=100, processed=100, written=100, committed=10, rolled_back=1
    )


async def test_a_completed_chunk_step_that_runs_again_begins_at_the_beginning(
    store: Store,
) -> None:
    chunk, reader, _ = copying(range(4), size=2)

    def check(ctx: StepContext) -> None:
        assert ctx.attempt > 1

    again = Step("work", chunk, allow_start_if_complete=True), Step("check", check)
    await launch(store, job(*again))
    report = await launch(store, job(*again))
    assert report.status is BatchStatus.COMPLETED
    assert reader.states == [None, None]
    assert report.step("work").counts.read == 4


async def test_a_chunk_that_is_written_again_carries_the_same_key(store: Store) -> None:
    writer = ListWriter(on_write=fail_once(5))
    chunk = Chunk(ListReader(range(7)), writer, size=3)
    await launch(store, single(chunk))
    await launch(store, single(chunk))
    assert writer.chunks == [[0, 1, 2], [3, 4, 5], [3, 4, 5], [6]]
    assert [key.ordinal for key in writer.keys] == [0, 3, 3, 6]
    assert writer.keys[1] == writer.keys[2]
    assert writer.keys[0] == ChunkKey(instance_id=1, node="work", visit=1, ordinal=0)


async def test_keys_of_different_instances_differ(store: Store) -> None:
    writer = ListWriter()
    for day in ("mon", "tue"):
        chunk = Chunk(ListReader(range(2)), writer)
        await launch(store, single(chunk), {"day": day})
    assert len(set(writer.keys)) == 2


def reading(returned: object) -> Chunk:
    """Make a chunk whose reader returns nonsense."""
    reader = ListReader([])

    class Nonsense(ListReader):
        def read(self, n: int) -> Sequence[Any]:
            return returned  # type: ignore[return-value]  # that is the point

    return Chunk(Nonsense(reader.items), ListWriter(), size=3)


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "the reader returned a NoneType; return a list of items"),
        ("abc", "the reader returned a str; return a list of items"),
        (b"abc", "the reader returned a bytes; return a list of items"),
        (iter([1]), "the reader returned a list_iterator; return a list of items"),
        ({1, 2}, "the reader returned a set; return a list of items"),
        ([1, 2, 3, 4], "the reader returned 4 items when asked for 3"),
    ],
    ids=["none", "str", "bytes", "iterator", "set", "too many"],
)
@pytest.mark.parametrize("inline", [True, False], ids=["inline", "threads"])
async def test_a_reader_that_breaks_its_contract_fails_the_step_with_the_reason(
    store: Store, returned: object, reason: str, inline: bool
) -> None:
    report = await launch(store, single(reading(returned)), inline=inline)
    assert message_of(report) == reason
    assert report.failure is not None
    assert report.failure.code == "reader_failed"


async def test_a_failing_reader_fails_the_step(store: Store) -> None:
    def broken(position: int) -> None:
        if position:
            raise OSError("the tape is torn")

    reader = ListReader(range(9), on_read=broken)
    report = await launch(store, single(Chunk(reader, ListWriter(), size=4)))
    assert message_of(report) == "the tape is torn"
    assert report.failure is not None
    assert report.failure.code == "reader_failed"
    assert report.counts.read == 4


def strict(item: int) -> int:
    if item == 104:
        raise ValueError("too much")
    return item


async def strict_later(item: int) -> int:
    await trio.lowlevel.checkpoint()
    return strict(item)


class Own(Sequence[int]):
    """A sequence whose iterator knows no length."""

    def __init__(self, items: Sequence[int]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]


@pytest.mark.parametrize("process", [strict, strict_later])
@pytest.mark.parametrize("kind", [list, tuple, Own], ids=["list", "tuple", "own"])
async def test_a_failing_processor_is_reported_with_the_number_of_the_item(
    store: Store, process: Callable[[int], object], kind: Callable[[Any], Any]
) -> None:
    class Reader(ListReader):
        def read(self, n: int) -> Sequence[Any]:
            found: Sequence[Any] = kind(super().read(n))
            return found

    reader = Reader(range(100, 109))
    report = await launch(store, single(Chunk(reader, ListWriter(), process, size=3)))
    assert message_of(report) == "item 5: too much"
    assert report.failure is not None
    assert report.failure.code == "processor_failed"
    assert report.failure.type == "ValueError"


async def test_a_processor_that_raises_stop_iteration_loses_no_item(
    store: Store,
) -> None:
    def process(item: int) -> int:
        return item if item < 3 else next(iter([]))

    chunk, _, _ = copying(range(9), size=9, processor=process)
    report = await launch(store, single(chunk))
    assert report.status is BatchStatus.FAILED
    assert "item 4" in message_of(report)
    assert store.rows() == []


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"x": object()}, "the checkpoint of 'work'['x'] holds an object"),
        ([1], "the checkpoint of 'work' must be a dict of JSON values, not list"),
        (None, "must be a dict"),
        ({"x": "y" * 70_000}, "at most 65536 are allowed"),
        ({"x": "a\0b"}, "U+0000"),
    ],
)
async def test_a_state_that_cannot_be_stored_fails_the_chunk_with_the_reason(
    store: Store, state: object, reason: str
) -> None:
    class Reader(ListReader):
        def state(self) -> Any:
            return state

    report = await launch(store, single(Chunk(Reader(range(3)), RowWriter())))
    assert reason in message_of(report)
    assert report.failure is not None
    assert report.failure.category is FailureCategory.SERIALIZATION
    assert store.rows() == []
    assert store.settled()


async def test_a_writer_that_cannot_tell_whether_it_wrote_ends_the_job_unknown(
    store: Store,
) -> None:
    def unsure(rows: Sequence[int]) -> None:
        raise OutcomeUnknown("no answer from the queue")

    writer = ListWriter(on_write=unsure)
    report = await launch(store, single(Chunk(ListReader(range(3)), writer)))
    assert report.status is BatchStatus.UNKNOWN
    assert store.statuses == [("work", "UNKNOWN")]
    assert writer.log == ["open writer", "close writer"]


async def test_a_chunk_step_keeps_the_state_of_its_listeners_out_of_the_checkpoint(
    store: Store,
) -> None:
    chunk, reader, writer = copying(range(4), size=2)
    writer.on_write = fail_once(3)
    async with running(store) as runtime:
        for _ in range(2):
            await runtime.launch(single(chunk))
    assert [step.context for step in store.steps] == [None, None]
    assert reader.states[1] == {"position": 2, "tag": "x"}
