"""Cases of the area chunk: position, rows and counts move together, or not at all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.world import World
from tests.job.components import (
    ListReader,
    ListWriter,
    copying,
    fail_once,
)
from triolet.actors import (
    BatchStatus,
    Chunk,
    ChunkKey,
    Counts,
    Cursor,
    DefinitionError,
    Event,
    EventKind,
    Job,
    JsonObject,
    Runtime,
    RuntimeOptions,
    Step,
    StepContext,
    StepListener,
    compile_job,
    open_runtime,
)


def copy(chunk: Chunk, **settings: Any) -> Job:
    return Job("copy", [Step("copy", chunk, **settings)])


@contextmanager
def worlds() -> Iterator[World]:
    """Make a world for one example of a property."""
    with TemporaryDirectory() as folder:
        yield World(Path(folder))


async def until_complete(world: World, job: Job) -> int:
    """Launch again and again; give the number of launches."""
    for launches in range(1, 50):
        report = await world.launch(job)
        if report.status is BatchStatus.COMPLETED:
            return launches
    raise AssertionError("it never completes")


async def test_position_context_counts_and_rows_stay_behind_with_a_failing_chunk(
    world: World,
) -> None:
    """C046: the writer fails in chunk 4 after it changed what it could reach."""
    chunk, reader, writer = copying(range(100))
    failures: list[int] = []

    def spoil(rows: Sequence[int]) -> None:
        if 35 in rows and not failures:
            failures.append(35)
            reader.position = 99
            raise ValueError("35 is not wanted")

    writer.on_write = spoil

    def touch(ctx: StepContext) -> None:
        ctx.state["touched"] = True

    job = copy(chunk, listeners=[StepListener("touch", before=touch)])
    report = await world.launch(job)
    assert report.status is BatchStatus.FAILED
    (step,) = (await world.show(report.execution_id)).steps
    assert step.context is None
    assert '"position":30' in (step.checkpoint or "")
    assert step.counts == Counts(
        read=30, processed=30, written=30, committed=3, rolled_back=1
    )
    assert world.rows() == list(range(30))
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert reader.states[1] == {"position": 30, "tag": "x"}
    assert world.rows() == list(range(100))
    assert report.counts.read == 100


@define(eq=False)
class PagingReader:
    """Fetches rows page by page, by key; what it remembers is the last key it gave."""

    table: Sequence[int]
    page: int
    last: int = -1
    fetched: list[int] = field(factory=list)

    def open(self, state: JsonObject | None) -> None:
        last = -1 if state is None else state["last"]
        assert isinstance(last, int)
        self.last = last
        self.fetched = []

    def read(self, n: int) -> list[int]:
        if not self.fetched:
            beyond = [key for key in self.table if key > self.last]
            self.fetched = beyond[: self.page]
        found, self.fetched = self.fetched[:n], self.fetched[n:]
        if found:
            self.last = found[-1]
        return found

    def state(self) -> JsonObject:
        return {"last": self.last}

    def close(self) -> None:
        self.fetched = []


async def test_a_row_that_was_fetched_but_not_committed_is_read_again(
    world: World,
) -> None:
    """C057: two rows, page 20, chunk 1, the second one fails."""
    _, _, writer = copying([])
    writer.on_write = fail_once(7)
    job = copy(Chunk(PagingReader([5, 7], 20), writer, size=1))
    assert (await world.launch(job)).status is BatchStatus.FAILED
    assert world.rows() == [5]
    assert (await world.launch(job)).status is BatchStatus.COMPLETED
    assert world.rows() == [5, 7]


@settings(deadline=None, max_examples=15)
@given(
    rows=st.integers(1, 12),
    page=st.integers(1, 14),
    size=st.integers(1, 14),
    failing=st.integers(0, 12),
)
async def test_whatever_page_chunk_and_failing_row_every_row_is_written_once(
    rows: int, page: int, size: int, failing: int
) -> None:
    """C057."""
    _, _, writer = copying([])
    writer.on_write = fail_once(3 * failing)
    table = [3 * number for number in range(rows)]
    with worlds() as world:
        job = copy(Chunk(PagingReader(table, page), writer, size=size))
        assert await until_complete(world, job) == (2 if failing < rows else 1)
        assert world.rows() == table


async def test_an_item_is_processed_once_per_attempt_at_its_chunk(
    world: World,
) -> None:
    """C062: no call besides those that were asked for."""
    calls: list[int] = []

    def process(item: int) -> int:
        calls.append(item)
        if item == 4 and calls.count(4) == 1:
            raise ValueError("fatal")
        return item

    chunk, _, _ = copying(range(9), size=3, processor=process)
    job = copy(chunk)
    assert (await world.launch(job)).status is BatchStatus.FAILED
    assert calls == [0, 1, 2, 3, 4]
    assert (await world.launch(job)).status is BatchStatus.COMPLETED
    assert calls == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8]


async def test_a_write_failure_processes_no_item_again_within_its_attempt(
    world: World,
) -> None:
    """C062."""
    calls: list[int] = []

    def process(item: int) -> int:
        calls.append(item)
        return item

    chunk, _, writer = copying(range(6), size=3, processor=process)
    writer.on_write = fail_once(4)
    await world.launch(copy(chunk))
    assert calls == [0, 1, 2, 3, 4, 5]


class Elsewhere(ListWriter):
    """Another database: its rows stay whatever becomes of the chunk.

    It knows the keys of the chunks that it has, and discards what comes again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.durable: dict[ChunkKey, list[Any]] = {}

    def write(self, cursor: Cursor | None, rows: Sequence[Any], key: ChunkKey) -> None:
        self.durable.setdefault(key, list(rows))
        super().write(cursor, rows, key)


async def test_a_writer_elsewhere_can_tell_a_repetition_by_its_key(
    world: World,
) -> None:
    """C063: the rows are there, then the process dies before the position is."""
    writer = Elsewhere()
    writer.on_write = fail_once(13)
    job = copy(Chunk(ListReader(range(30)), writer, size=10))
    assert (await world.launch(job)).status is BatchStatus.FAILED
    assert (await world.launch(job)).status is BatchStatus.COMPLETED
    assert writer.keys[1] == writer.keys[2]
    assert len(writer.rows) == 40
    assert [row for rows in writer.durable.values() for row in rows] == list(range(30))


def test_a_writer_that_does_not_say_how_it_delivers_is_a_definition_error(
    world: World,
) -> None:
    """C063."""

    class Mute:
        def open(self, cursor: object) -> None: ...
        def write(self, cursor: object, rows: object, key: object) -> None: ...
        def close(self) -> None: ...

    with pytest.raises(DefinitionError, match="delivery"):
        compile_job(copy(Chunk(ListReader([]), Mute())))


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "threads"])
async def test_a_stop_after_chunk_n_leaves_n_chunks(world: World, inline: bool) -> None:
    """C070, C064: and the components are closed when it is reported."""
    chunk, reader, writer = copying(range(100))
    runtimes: list[Runtime] = []

    def sink(event: Event) -> None:
        if event.kind is EventKind.CHUNK_COMMITTED and event.execution_id is not None:
            runtimes[0].stop(event.execution_id)

    options = RuntimeOptions(inline=inline, events=sink)
    async with open_runtime(world.url, options) as runtime:
        runtimes.append(runtime)
        reports = []
        for launches in range(1, 11):
            reports.append(await runtime.launch(copy(chunk)))
            assert reports[-1].counts.committed == launches
            assert reader.log[-1] == "close reader"
            assert writer.log[-1] == "close writer"
    assert reports[-1].step("copy").status is BatchStatus.COMPLETED
    assert world.rows() == list(range(100))


async def test_rows_that_a_chunk_wrote_go_with_it(world: World) -> None:
    """C096: what is written through the given cursor commits or rolls back with it."""
    chunk, _, writer = copying(range(20))
    writer.on_write = fail_once(15)
    await world.launch(copy(chunk))
    assert world.rows() == list(range(10))
    await world.launch(copy(chunk))
    assert world.rows() == list(range(20))
