"""Cases of the area partition: planned once, done once each, summed up in the end."""

import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import trio
import trio.testing
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.test_chunks import until_complete, worlds
from tests.cases.world import World
from tests.cli.programs import ended, spawn, until
from tests.job.components import AsyncReader, ListReader, RowWriter
from tests.job.harness import Store, message_of, running, trio_clock
from triolet.actors import (
    AlreadyRunning,
    BatchStatus,
    Chunk,
    ChunkKey,
    Cursor,
    Delivery,
    Event,
    EventKind,
    Exit,
    Job,
    JsonObject,
    LaunchReport,
    Partition,
    PartitionedStep,
    PlannerContext,
    QueryReader,
    Runtime,
    RuntimeOptions,
    Step,
    StepContext,
    TableWriter,
    open_runtime,
)
from triolet.actors.testing import Fault, Scenario, StoreKind, Variant

DEADLINE_SECS = 60
Share = tuple[str, dict[str, Any]]
Hook = Callable[[str, Sequence[Any]], object]


def plan_of(*keys: str) -> Callable[[PlannerContext], list[Share]]:
    return lambda ctx: [(key, {"key": key}) for key in keys]


def key_of(ctx: StepContext) -> str:
    assert ctx.partition is not None
    return ctx.partition.key


def parts(work: Any, *keys: str, node: str = "parts", **more: Any) -> PartitionedStep:
    return PartitionedStep(node, work, plan_of(*keys), len(keys), **more)


def one(step: PartitionedStep) -> Job:
    return Job("parted", [step])


def standing(report: LaunchReport) -> dict[str, str]:
    """Say of every partition what this attempt saw of it."""
    return {
        part.key: "reused"
        if part.reused
        else part.status.value
        if part.began
        else "pending"
        for part in report.partitions
    }


@define
class Bodies:
    """A worker that counts its calls and does what it is told to."""

    calls: Counter[str] = field(factory=Counter)
    failing: dict[str, int] = field(factory=dict)
    """How often a partition fails before it does not."""
    seconds: float = 0.0

    async def __call__(self, ctx: StepContext) -> None:
        key = key_of(ctx)
        self.calls[key] += 1
        await trio.sleep(self.seconds)
        if self.failing.get(key, 0) > 0:
            self.failing[key] -= 1
            raise ValueError(f"{key} is broken")


def copying(
    items: Mapping[str, Sequence[int]],
    hook: Hook = lambda key, rows: None,
    *,
    size: int = 10,
    **settings: Any,
) -> Job:
    """Make a job that copies items into the table ``rows``, each partition its own."""

    def make(partition: Partition) -> Chunk:
        writer = RowWriter()
        writer.on_write = lambda rows: hook(partition.key, rows)
        return Chunk(ListReader(items[partition.key]), writer, size=size)

    declared = Chunk(ListReader([]), RowWriter(), size=size)
    return one(parts(declared, *items, factory=make, **settings))


def ranges(count: int, size: int) -> dict[str, Sequence[int]]:
    """Divide the numbers from 0 among so many partitions."""
    return {f"p{at}": range(at * size, (at + 1) * size) for at in range(count)}


# The plan


async def test_a_planner_that_failed_is_asked_again(world: World) -> None:
    """C032."""
    bodies, asked = Bodies(), []

    def plan(ctx: PlannerContext) -> list[Share]:
        asked.append(ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("the catalogue is locked")
        return [(key, {}) for key in "abcd"]

    job = one(PartitionedStep("parts", bodies, plan, 4))
    assert message_of(await world.launch(job)) == "the catalogue is locked"
    assert world.statuses() == [("parts", "FAILED")]
    report = await world.launch(job)
    assert standing(report) == dict.fromkeys("abcd", "COMPLETED")
    assert asked == [1, 2]
    assert bodies.calls == dict.fromkeys("abcd", 1)


@pytest.mark.parametrize("store", StoreKind)
def test_a_process_that_dies_before_its_plan_is_stored_plans_again(
    store: StoreKind,
) -> None:
    """C032: what was only computed is as if it had never been."""
    asked: list[int] = []

    def world() -> Job:
        def plan(ctx: PlannerContext) -> list[Share]:
            asked.append(ctx.attempt)
            return [(f"{key} of {ctx.attempt}", {}) for key in "abcd"]

        return one(PartitionedStep("parts", Bodies(), plan, 4))

    scenario = Scenario(world, store=store)
    commits = scenario.run().commits
    planned = commits.index("start 'parts'") + 1
    for variant, attempts in {
        Variant.DIE_BEFORE: [1, 2],
        Variant.DIE_AFTER: [1],
    }.items():
        asked.clear()
        run = scenario.run(Fault(planned, variant))
        assert asked == attempts
        (report,) = run.reports
        attempt = attempts[-1]
        assert standing(report) == dict.fromkeys(
            [f"{key} of {attempt}" for key in "abcd"], "COMPLETED"
        )


async def test_a_plan_without_partitions_is_a_plan(world: World) -> None:
    """C032."""
    step = PartitionedStep("parts", Bodies(), lambda ctx: [])
    report = await world.launch(one(step))
    assert report.status is BatchStatus.COMPLETED
    assert report.partitions == ()
    assert world.statuses() == [("parts", "COMPLETED")]


INPUT: JsonObject = {
    "int": 7,
    "large": 1 << 70,
    "float": 0.5,
    "whole": 2.0,
    "yes": True,
    "nothing": None,
    "nested": [1, [2.5, {"é": [None, False]}], "3"],
}


async def test_what_a_planner_gave_comes_back_with_its_types(url: str) -> None:
    """C035."""
    seen: list[JsonObject] = []

    async def body(ctx: StepContext) -> None:
        assert ctx.partition is not None
        seen.append(ctx.partition.context)
        if ctx.attempt == 1:
            raise ValueError("broken")

    job = one(PartitionedStep("parts", body, lambda ctx: [("a", INPUT)], 1))
    statuses = []
    for _ in range(2):
        async with open_runtime(url) as runtime:
            statuses.append((await runtime.launch(job)).status)
    assert statuses == [BatchStatus.FAILED, BatchStatus.COMPLETED]
    assert seen == [INPUT, INPUT]
    assert [repr(sorted(one.items())) for one in seen] == 2 * [
        repr(sorted(INPUT.items()))
    ]


@pytest.mark.parametrize("value", [Decimal("1.5"), date(2026, 11, 30), float("nan")])
async def test_what_would_lose_its_type_is_refused_when_it_is_planned(
    world: World, value: object
) -> None:
    """C035."""
    step = PartitionedStep("parts", Bodies(), lambda ctx: [("a", {"it": value})], 1)
    assert "['it']" in message_of(await world.launch(one(step)))


# What all of them come to


async def test_the_sum_is_that_of_all_partitions_whenever_they_were_done(
    world: World,
) -> None:
    """C037."""
    items = {"a": range(5), "b": range(40), "c": range(7), "d": range(90, 100)}
    whole = await world.launch(copying(items, max_workers=1))
    runtimes: list[Runtime] = []

    def stop(event: Event) -> None:
        if event.kind is EventKind.STEP_RESULT_COMMITTED and event.partition == "b":
            runtimes[0].stop()

    options = RuntimeOptions(inline=True, events=stop)
    async with open_runtime(world.url, options) as runtime:
        runtimes.append(runtime)
        job = copying(items, max_workers=1)
        stopped = await runtime.launch(job, anew=True)
    assert stopped.status is BatchStatus.STOPPED
    assert [one.reused for one in stopped.partitions] == [False] * 4
    async with open_runtime(world.url, world.options) as runtime:
        report = await runtime.launch(job, continue_run=stopped.run)
    assert standing(report) == {
        "a": "reused",
        "b": "reused",
        "c": "COMPLETED",
        "d": "COMPLETED",
    }
    assert report.step("parts").counts == whole.step("parts").counts
    assert report.counts == whole.counts
    assert report.counts.written == 62


@pytest.mark.parametrize("store", StoreKind)
def test_what_was_done_when_the_process_died_is_summed_up_by_the_next(
    store: StoreKind,
) -> None:
    """C037: all four had completed, and nobody had noted what they come to."""
    items = ranges(4, 6)
    wrote: list[str] = []

    def world() -> Callable[[], Job]:
        wrote.clear()
        return lambda: copying(items, lambda key, rows: wrote.append(key))

    scenario = Scenario(world, store=store)
    whole = scenario.run()
    summed = len(whole.commits) - 1
    assert whole.commits[summed - 1].endswith("end COMPLETED")
    run = scenario.run(Fault(summed, Variant.DIE_BEFORE))
    (report,) = run.reports
    assert standing(report) == dict.fromkeys(items, "reused")
    assert sorted(wrote) == sorted(items)
    assert report.counts == whole.reports[0].counts
    assert report.counts.written == 24


@pytest.mark.parametrize(("count", "done"), [(5, 2), (1, 0)])
async def test_a_stop_among_partitions_stops_step_and_job_and_the_rest_is_left(
    world: World, autojump_clock: trio.testing.MockClock, count: int, done: int
) -> None:
    """C038."""
    bodies = Bodies(seconds=10)
    keys = [f"p{at}" for at in range(count)]
    job = one(parts(bodies, *keys, max_workers=1))
    reports = []
    async with open_runtime(world.url, world.options) as runtime:

        async def run() -> None:
            reports.append(await runtime.launch(job))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.sleep(10 * done + 5)
            runtime.stop()
    assert reports[0].status is BatchStatus.STOPPED
    assert reports[0].step("parts").status is BatchStatus.STOPPED
    before = [*bodies.calls.elements()]
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert list(standing(report).values()).count("reused") == done
    again = [*bodies.calls.elements()]
    assert len(again) - len(before) == count - done


async def test_an_exit_code_like_a_status_is_no_status(world: World) -> None:
    """C038: the worst of the statuses counts, and this one is COMPLETED."""

    async def body(ctx: StepContext) -> Exit:
        return Exit("STOPPED")

    report = await world.launch(one(parts(body, "a", "b")))
    assert report.status is BatchStatus.COMPLETED
    assert report.step("parts").exit_code == "STOPPED"
    assert set(standing(report).values()) == {"COMPLETED"}


# Connections and threads


@pytest.mark.parametrize(("connections", "threads"), [(1, 1), (2, 4)])
async def test_ten_workers_need_no_more_connections_than_there_are(
    url: str, tmp_path: Path, connections: int, threads: int
) -> None:
    """C041: each with a reader, a writer, and the job's own records."""
    source = tmp_path / "source.db"
    put_trades(source, 200)

    def make(partition: Partition) -> Chunk:
        first = partition.ordinal * 20 - 20
        query = f"SELECT id FROM trade WHERE id BETWEEN {first} AND {first + 19}"
        reader = QueryReader(lambda: connected(source), query, key=["id"])
        return Chunk(reader, TableWriter("copied", {"id": int}), size=7)

    declared = make(Partition(key="", ordinal=1, context={}))
    keys = [f"p{at}" for at in range(10)]
    job = one(parts(declared, *keys, factory=make, max_workers=10))
    options = RuntimeOptions(connections=connections, threads_max=threads)
    with trio.fail_after(DEADLINE_SECS):
        async with open_runtime(url, options) as runtime:
            report = await runtime.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert report.counts.written == 200


def connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, check_same_thread=False)


def put_trades(path: Path, count: int) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE trade (id INTEGER PRIMARY KEY, done INTEGER)")
        rows = [(number,) for number in range(count)]
        database.executemany("INSERT INTO trade VALUES (?, 0)", rows)


# The policies


@pytest.mark.parametrize("policy", ["cancel_siblings", "drain_siblings"])
async def test_an_early_failure_stops_the_others_soon_or_lets_them_work(
    world: World, autojump_clock: trio.testing.MockClock, policy: str
) -> None:
    """C042."""
    items = ranges(4, 60)
    broken = ["p1"]

    class Slow(AsyncReader):
        async def read(self, n: int) -> Sequence[Any]:
            await trio.sleep(60)
            return await super().read(n)

    def refuse(item: int) -> int:
        if item == 65 and broken:
            broken.clear()
            raise ValueError("65 is not wanted")
        return item

    def make(partition: Partition) -> Chunk:
        return Chunk(
            Slow(ListReader(items[partition.key])), RowWriter(), refuse, size=10
        )

    declared = Chunk(Slow(ListReader([])), RowWriter(), refuse, size=10)
    job = one(parts(declared, *items, factory=make, on_failure=policy))
    failed = await world.launch(job)
    assert message_of(failed).endswith("65 is not wanted")
    others = [one for one in failed.partitions if one.key != "p1"]
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert sorted(world.rows()) == list(range(240))
    if policy == "cancel_siblings":
        assert {one.status for one in others} == {BatchStatus.STOPPED}
        assert all(one.counts.committed <= 1 for one in others)
        assert set(standing(report).values()) == {"COMPLETED"}
    else:
        assert {one.status for one in others} == {BatchStatus.COMPLETED}
        assert standing(report) == {
            key: "COMPLETED" if key == "p1" else "reused" for key in items
        }


async def test_equal_keys_of_two_steps_are_different_partitions(world: World) -> None:
    """C043: steps cannot be nested; that their keys are apart is seen side by side."""
    first, second = Bodies(), Bodies(failing={"2": 1})
    keys = ("0", "1", "2")
    job = Job(
        "twice", [parts(first, *keys, node="one"), parts(second, *keys, node="two")]
    )
    assert message_of(await world.launch(job)) == "2 is broken"
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert first.calls == dict.fromkeys(keys, 1)
    assert second.calls == {"0": 1, "1": 1, "2": 2}


# Chunks side by side


@settings(deadline=None, max_examples=15)
@given(
    count=st.integers(1, 4),
    each=st.integers(1, 9),
    size=st.integers(1, 10),
    workers=st.integers(1, 4),
    failing=st.integers(0, 40),
)
async def test_whatever_the_sizes_every_item_of_every_partition_is_written_once(
    count: int, each: int, size: int, workers: int, failing: int
) -> None:
    """C045, C046."""
    left = [failing]

    def fail_once(key: str, rows: Sequence[int]) -> None:
        if left and left[0] in rows:
            left.clear()
            raise ValueError("not wanted")

    items = ranges(count, each)
    job = copying(items, fail_once, size=size, max_workers=workers)
    with worlds() as world:
        launches = await until_complete(world, job)
        assert launches == (2 if failing < count * each else 1)
        assert sorted(world.rows()) == list(range(count * each))


@pytest.mark.parametrize("store", StoreKind)
def test_a_process_may_die_again_and_again_among_chunks_side_by_side(
    store: StoreKind,
) -> None:
    """C060, C046: two hundred rows, thirty stories of up to four deaths."""
    items = ranges(4, 50)
    for seed in range(30):
        dice = Random(seed)
        scenario = Scenario(copying(items), store=store, seed=seed)
        deaths = sorted(dice.sample(range(1, 40), dice.randint(1, 4)))
        both = (Variant.DIE_BEFORE, Variant.DIE_AFTER)
        run = scenario.run(*(Fault(commit, dice.choice(both)) for commit in deaths))
        assert run.ending.status is BatchStatus.COMPLETED
        assert run.ending.rows["rows"] == {(number,): 1 for number in range(200)}


class Marks:
    """Marks what it is given in the table that the readers look at."""

    delivery: ClassVar = Delivery.ATOMIC

    def __init__(self, seen: Counter[int]) -> None:
        self.seen = seen

    def open(self, cursor: Cursor | None) -> None: ...

    def write(
        self, cursor: Cursor | None, rows: Sequence[tuple[int]], key: ChunkKey
    ) -> None:
        assert cursor is not None
        cursor.executemany("UPDATE trade SET done = 1 WHERE id = ?", rows)
        self.seen.update(number for (number,) in rows)

    def close(self) -> None: ...


@pytest.mark.parametrize("workers", [1, 4])
async def test_rows_that_leave_the_result_meanwhile_move_nothing(
    world: World, workers: int
) -> None:
    """C059, with workers side by side."""
    put_trades(world.path, 1000)
    seen: Counter[int] = Counter()

    def make(partition: Partition) -> Chunk:
        first = partition.ordinal * 250 - 250
        query = (
            "SELECT id FROM trade WHERE done = 0 "
            f"AND id BETWEEN {first} AND {first + 249}"
        )
        reader = QueryReader(lambda: connected(world.path), query, key=["id"])
        return Chunk(reader, Marks(seen), size=10)

    declared = make(Partition(key="", ordinal=1, context={}))
    keys = [f"p{at}" for at in range(4)]
    job = one(parts(declared, *keys, factory=make, max_workers=workers))
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert seen == dict.fromkeys(range(1000), 1)
    assert world.query("SELECT count(*) FROM trade WHERE done = 0") == [(0,)]


async def test_the_components_of_all_workers_are_closed_when_a_stop_is_reported(
    world: World,
) -> None:
    """C064: stopped after a chunk and started again at once, until all is done."""
    items = ranges(3, 40)
    logs: list[list[str]] = []
    runtimes: list[Runtime] = []

    def make(partition: Partition) -> Chunk:
        reader, writer = ListReader(items[partition.key]), RowWriter()
        logs.extend((reader.log, writer.log))
        return Chunk(reader, writer, size=10)

    def stop(event: Event) -> None:
        if event.kind is EventKind.CHUNK_COMMITTED:
            runtimes[0].stop(event.execution_id)

    declared = Chunk(ListReader([]), RowWriter(), size=10)
    job = one(parts(declared, *items, factory=make))
    options = RuntimeOptions(inline=True, events=stop)
    launches = 0
    async with open_runtime(world.url, options) as runtime:
        runtimes.append(runtime)
        status = None
        while status is not BatchStatus.COMPLETED and launches < 50:
            report = await runtime.launch(job)
            status = report.step("parts").status
            launches += 1
            assert all(log[-1].startswith("close") for log in logs if log)
    assert launches > 2
    assert sorted(world.rows()) == list(range(120))


class Two:
    """Writes into two tables, one after the other."""

    delivery: ClassVar = Delivery.ATOMIC

    def open(self, cursor: Cursor | None) -> None:
        assert cursor is not None
        cursor.execute("CREATE TABLE IF NOT EXISTS rows (x)")
        cursor.execute("CREATE TABLE IF NOT EXISTS audit (x)")

    def write(self, cursor: Cursor | None, rows: Sequence[int], key: ChunkKey) -> None:
        assert cursor is not None
        for table in ("audit", "rows"):
            for number in rows:
                if (table, number) == ("rows", 25):
                    raise ValueError("25 is not wanted")
                cursor.execute(f"INSERT INTO {table} VALUES (?)", (number,))

    def close(self) -> None: ...


async def test_nothing_of_a_failed_chunk_stays_while_others_are_committed(
    world: World,
) -> None:
    """C096."""
    items = ranges(4, 20)

    def make(partition: Partition) -> Chunk:
        return Chunk(ListReader(items[partition.key]), Two(), size=5)

    step = parts(
        make(Partition(key="p0", ordinal=1, context={})),
        *items,
        factory=make,
        on_failure="drain_siblings",
    )
    assert message_of(await world.launch(one(step))) == "25 is not wanted"
    written = {*range(80)} - {*range(25, 40)}
    assert sorted(world.rows()) == sorted(written)
    audit = world.query("SELECT x FROM audit ORDER BY x")
    assert [number for (number,) in audit] == sorted(written)


# Shutting down

SLOWLY = """
import time
from pathlib import Path
from triolet.actors import Chunk, Job, PartitionedStep, TableWriter

class Reader:
    def __init__(self, first):
        self.first = first
    def open(self, state):
        self.at = state["at"] if state else 0
    def read(self, n):
        Path("began").touch()
        time.sleep(0.02)
        items = [(self.first + at,) for at in range(self.at, min(self.at + n, 100))]
        self.at += len(items)
        return items
    def state(self):
        return {"at": self.at}
    def close(self):
        pass

def make(partition):
    first = partition.context["first"] if partition else 0
    return Chunk(Reader(first), TableWriter("copied", {"x": int}), size=2)

def plan(ctx):
    return [(str(at), {"first": 100 * at}) for at in range(3)]

def job():
    return Job("slow", [PartitionedStep("parts", make(None), plan, 3, factory=make,
                                        max_workers=2)])
"""


def test_a_signal_stops_all_workers_and_the_next_launch_does_the_rest(
    world: World,
) -> None:
    """C066."""
    (world.folder / "slow.py").write_text(SLOWLY)
    words = ("run", "slow.py:job", "--store", world.url)
    child = spawn(*words, cwd=world.folder)
    until((world.folder / "began").exists)
    child.send_signal(signal.SIGTERM)
    code, _, _ = ended(child)
    assert code == 12
    execution = "SELECT status, ended_at IS NULL FROM triolet_execution"
    assert world.query(execution) == [("STOPPED", 0)]
    assert "STARTED" not in dict(world.statuses()).values()
    assert ended(spawn(*words, cwd=world.folder))[0] == 0
    found = world.query("SELECT x FROM copied ORDER BY x")
    assert [number for (number,) in found] == list(range(300))


async def test_workers_that_take_their_time_to_stop_keep_their_lease(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C074: nobody else takes over while they come to their end."""
    store = Store(trio_clock)
    bodies = Bodies(seconds=8)
    worker = Step("body", bodies, on_stop="cooperate", grace=60)
    job = one(parts(worker, "a", "b", "c", max_workers=2))
    reports: list[LaunchReport] = []

    async with running(store, lease=2) as draining, running(store, lease=2) as idle:

        async def run() -> None:
            reports.append(await draining.launch(job))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.sleep(1)
            draining.stop()
            while not reports:
                if trio.current_time() < 7.5:
                    with pytest.raises(AlreadyRunning):
                        await idle.launch(job)
                await trio.sleep(0.5)
        assert bodies.calls == {"a": 1, "b": 1}
        assert standing(reports[0]) == {"a": "STOPPED", "b": "STOPPED", "c": "pending"}
        report = await idle.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert bodies.calls == {"a": 2, "b": 2, "c": 1}
