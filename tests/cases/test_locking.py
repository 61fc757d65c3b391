"""Cases of the area repository and locking: who waits for whom, and what old rows hold."""

import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
import trio
from attrs import define, field

from tests.cases.world import World
from tests.cli.programs import ended, spawn
from tests.job.components import ListReader, RowWriter, fail_once
from tests.job.harness import Trace
from triolet.actors import (
    COMPLETE,
    STOP,
    AlreadyRunning,
    BatchStatus,
    Chunk,
    Decision,
    Event,
    EventKind,
    ExecutionNotFound,
    InstanceComplete,
    Job,
    JsonObject,
    Node,
    Parameter,
    Partition,
    PartitionedStep,
    Runtime,
    RuntimeOptions,
    Split,
    Step,
    StepContext,
    TableWriter,
    open_runtime,
)
from triolet.storage.backend import run
from triolet.storage.commands import ListExecutions, RequestStop
from triolet.storage.stores import StoreOptions, migrate_store, open_store

Command = Callable[..., int]
Limit = Callable[[Runtime], Awaitable[object]]
NUMBER = Parameter("number", int, default=0)
DEADLINE_SECS = 90

# Many who work on the same instances

INSTANCES = 20
SUPERVISORS = 4


async def briefly(ctx: StepContext) -> None:
    await trio.sleep(random.random() / 100)


def busy() -> Job:
    """Make a job whose rows are made side by side, on several connections."""

    def make(partition: Partition) -> Chunk:
        items = [(partition.ordinal, at) for at in range(6)]
        writer = TableWriter("busy", {"part": int, "at": int})
        return Chunk(ListReader(items), writer, size=2)

    declared = make(Partition(key="", ordinal=1, context={}))
    parts = PartitionedStep(
        "parts", declared, lambda ctx: [(key, {}) for key in "abcd"], 4, factory=make
    )
    split = Split("both", [Step("l", briefly), Step("r", briefly)], max_parallel=2)
    nodes: list[Node] = [Step("first", briefly), split, parts, Step("last", briefly)]
    return Job("busy", nodes, parameters=[NUMBER])


async def test_supervisors_and_operators_at_the_same_instances_deadlock_nobody(
    postgres_url: str,
) -> None:
    """C091."""
    completed: set[int] = set()
    refused: Counter[str] = Counter()
    retried: list[str] = []

    def heard(event: Event) -> None:
        if event.kind is EventKind.STORE_RETRIED and "waited" in (event.message or ""):
            retried.append(event.message or "")

    options = RuntimeOptions(connections=3, stop_poll=0.1, events=heard)

    async def supervise(runtime: Runtime) -> None:
        while len(completed) < INSTANCES:
            number = random.choice([*{*range(INSTANCES)} - completed])
            try:
                report = await runtime.launch(busy(), number=number)
            except (AlreadyRunning, InstanceComplete) as exc:
                refused[type(exc).__name__] += 1
                await trio.sleep(0.01)
                continue
            assert report.status in (BatchStatus.COMPLETED, BatchStatus.STOPPED)
            if report.status is BatchStatus.COMPLETED:
                completed.add(number)

    async def operate(runtime: Runtime) -> None:
        for number in count(1):
            await trio.sleep(random.random() / 20)
            execution_id = 1 + number % (2 * INSTANCES)
            try:
                await runtime.request_stop(execution_id, actor="eve")
            except ExecutionNotFound:
                refused["ExecutionNotFound"] += 1

    async def supervisor() -> None:
        async with (
            open_runtime(postgres_url, options) as runtime,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(operate, runtime)
            async with trio.open_nursery() as launches:
                for _ in range(3):
                    launches.start_soon(supervise, runtime)
            nursery.cancel_scope.cancel()

    with trio.fail_after(DEADLINE_SECS):
        async with trio.open_nursery() as nursery:
            for _ in range(SUPERVISORS):
                nursery.start_soon(supervisor)
    assert refused["AlreadyRunning"] > 0
    with psycopg.connect(postgres_url, autocommit=True) as look:
        rows = look.execute("SELECT count(*) FROM busy").fetchall()
        unsettled = look.execute(
            "SELECT id FROM triolet.execution WHERE ended_at IS NULL"
        ).fetchall()
    assert rows == [(24 * INSTANCES,)]
    assert unsettled == []
    assert retried == []


# One file, many processes

LOADS = """
from triolet.actors import Chunk, Job, Parameter, Step, TableWriter

class Numbers:
    def open(self, state):
        self.at = state["at"] if state else 0
    def read(self, n):
        items = [(number,) for number in range(self.at, min(self.at + n, 500))]
        self.at += len(items)
        return items
    def state(self):
        return {"at": self.at}
    def close(self):
        pass

def job():
    chunk = Chunk(Numbers(), TableWriter("loaded", {"x": int}), size=1)
    return Job("loads", [Step("load", chunk)], parameters=[Parameter("number", int)])
"""


@define
class Beside:
    """Threads that use the file while others work on it; what they raise is kept."""

    url: str
    over: threading.Event = field(factory=threading.Event)
    faults: list[BaseException] = field(factory=list)
    done: Counter[str] = field(factory=Counter)

    def read(self) -> None:
        store = open_store(self.url, StoreOptions(read_only=True))
        while not self.over.wait(0.01):
            run(store, UUID(int=1), ListExecutions())
            self.done["read"] += 1
        store.close()

    def operate(self) -> None:
        store = open_store(self.url)
        for number in count(1):
            if self.over.wait(0.02):
                break
            stop = RequestStop(execution_id=99, actor="eve", operation_id=f"{number}")
            with pytest.raises(ExecutionNotFound):
                run(store, UUID(int=number), stop)
            self.done["operate"] += 1
        store.close()

    def lock(self) -> None:
        """Lock the file for three seconds, as somebody who knows nothing of us."""
        with closing(
            sqlite3.connect(
                self.url.removeprefix("sqlite:///"), timeout=30, isolation_level=None
            )
        ) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            time.sleep(3)
            foreign.execute("ROLLBACK")
        self.done["lock"] += 1

    def start(self, work: Callable[[], None]) -> threading.Thread:
        def kept() -> None:
            try:
                work()
            except BaseException as exc:  # the test looks at it
                self.faults.append(exc)

        thread = threading.Thread(target=kept)
        thread.start()
        return thread


def test_many_use_one_file_and_nobody_sees_a_lock(world: World) -> None:
    """C092: two processes load; a reader, an operator and a foreign lock beside them.

    A lock that stays is a clear error: see the tests of bad input.
    """
    migrate_store(world.url)
    (world.folder / "loads.py").write_text(LOADS)
    beside = Beside(world.url)
    children = [
        spawn(
            *("run", "loads.py:job", f"number={number}", "--store", world.url),
            cwd=world.folder,
        )
        for number in range(2)
    ]
    threads = [beside.start(work) for work in (beside.read, beside.operate)]
    time.sleep(0.5)
    threads.append(beside.start(beside.lock))
    try:
        ends = [ended(child) for child in children]
    finally:
        beside.over.set()
        for thread in threads:
            thread.join()
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert not any("lock" in err for _, _, err in ends)
    assert beside.faults == []
    assert beside.done["lock"] == 1
    assert beside.done["read"] > 20
    found = Counter(x for (x,) in world.query("SELECT x FROM loaded"))
    assert found == dict.fromkeys(range(500), 2)
    assert world.query("PRAGMA integrity_check") == [("ok",)]


# Limits


@define
class Bodies:
    """Counts how many bodies run at the same time."""

    now: int = 0
    most: int = 0

    async def __call__(self, ctx: StepContext) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await trio.sleep(0.02)
        self.now -= 1


async def limited_by_starts(runtime: Runtime) -> object:
    def broken(ctx: StepContext) -> None:
        raise ValueError("broken")

    job = Job("starts", [Step("work", broken, start_limit=2)])
    reports = [await runtime.launch(job) for _ in range(3)]
    return [report.failure and report.failure.code for report in reports]


async def limited_by_visits(runtime: Runtime) -> object:
    def again(ctx: object) -> str:
        return "AGAIN"

    rounds = Decision("d", again, then={"AGAIN": "a", "*": COMPLETE}, visit_limit=3)
    report = await runtime.launch(Job("visits", [Step("a", briefly), rounds]))
    return report.failure and report.failure.code


async def limited_by_workers(runtime: Runtime) -> object:
    bodies = Bodies()
    keys: list[tuple[str, JsonObject]] = [(str(at), {}) for at in range(8)]
    parts = PartitionedStep("parts", bodies, lambda ctx: keys, 8, max_workers=3)
    await runtime.launch(Job("workers", [parts]))
    return bodies.most


async def limited_by_branches(runtime: Runtime) -> object:
    bodies = Bodies()
    branches = [Step(f"b{at}", bodies) for at in range(6)]
    split = Split("split", branches, max_parallel=2)
    await runtime.launch(Job("branches", [Step("a", briefly), split]))
    return bodies.most


async def limited_by_places(runtime: Runtime) -> object:
    bodies = Bodies()
    job = Job("served", [Step("work", bodies)], parameters=[NUMBER])
    for number in range(6):
        await runtime.enqueue(job, number=number)
    await runtime.serve([job], max_running=2, until_idle=True)
    return bodies.most


async def limited_by_attempts(runtime: Runtime) -> object:
    job = Job("once", [Step("work", briefly, then={"*": STOP})], restartable=False)
    await runtime.launch(job)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is the point
        await runtime.launch(job)
    return type(caught.value).__name__


LIMITS: dict[Limit, object] = {
    limited_by_starts: ["tasklet_failed", "tasklet_failed", "start_limit_reached"],
    limited_by_visits: "visit_limit_reached",
    limited_by_workers: 3,
    limited_by_branches: 2,
    limited_by_places: 2,
    limited_by_attempts: "NotRestartable",
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_every_limit_holds_on_every_store(url: str, limit: Limit) -> None:
    """C093."""
    async with open_runtime(url) as runtime:
        outcome = await limit(runtime)
    assert outcome == LIMITS[limit]


# What was stored before

GOLDEN = Path(__file__).parents[1] / "storage" / "golden" / "sqlite_v1.sql"
FIRST_ATTEMPT_ONLY = (
    "DELETE FROM triolet_decision WHERE execution_id = 2; "
    "DELETE FROM triolet_step WHERE execution_id = 2; "
    "DELETE FROM triolet_execution WHERE id = 2"
)


class OldReader(ListReader):
    """Its position was called ``n`` when the store was written."""

    def open(self, state: JsonObject | None) -> None:
        super().open(None if state is None else {"position": state["n"]})


def golden_job(trace: Trace) -> Job:
    chunk = Chunk(OldReader([0, 1, 2]), RowWriter(), size=2)
    enough = Decision("enough", lambda ctx: "YES", then={"YES": "report", "*": STOP})
    days = Parameter("day", str), Parameter("token", str, secret=True)
    nodes: list[Node] = [Step("load", chunk), enough, trace.step("report")]
    return Job("golden", nodes, parameters=days)


async def test_a_store_of_the_first_release_is_listed_shown_and_restarted(
    world: World, command: Command, trace: Trace
) -> None:
    """C095."""
    with closing(sqlite3.connect(world.path)) as made:
        made.executescript(GOLDEN.read_text() + FIRST_ATTEMPT_ONLY)
    assert command("migrate") == 0
    assert command("list") == 0
    assert command("show", "1") == 0
    job = golden_job(trace)
    report = await world.launch(job, {"day": "2026-11-30", "token": "hush"})
    assert (report.status, report.restart_of) == (BatchStatus.COMPLETED, 1)
    assert report.step("load").reused
    assert trace.calls == ["report"]


async def test_a_context_that_cannot_be_read_blocks_only_its_own_restart(
    world: World, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """C095."""

    def job() -> Job:
        writer = RowWriter()
        writer.on_write = fail_once(7)
        chunk = Chunk(ListReader(range(10)), writer, size=5)
        return Job("load", [Step("load", chunk)], parameters=[NUMBER])

    for number in range(2):
        report = await world.launch(job(), {"number": number})
        assert report.status is BatchStatus.FAILED
    with closing(sqlite3.connect(world.path)) as spoilt, spoilt:
        spoilt.execute(
            "UPDATE triolet_step SET checkpoint = '{' WHERE execution_id = 1"
        )

    assert command("list") == 0
    assert command("show", "1") == 0
    capsys.readouterr()
    chunk = Chunk(ListReader(range(10)), RowWriter(), size=5)
    mended = Job("load", [Step("load", chunk)], parameters=[NUMBER])
    refused = await world.launch(mended, {"number": 0})
    assert refused.failure is not None
    assert "the checkpoint of 'load' in the store is corrupt" in (
        refused.failure.message or ""
    )
    other = await world.launch(mended, {"number": 1})
    assert other.status is BatchStatus.COMPLETED
    assert sorted(world.rows()) == sorted([*range(5), *range(10)])
