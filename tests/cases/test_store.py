"""Failures of other systems' stores: races, lost outcomes, locks."""

from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
import trio

from tests.postgres.proxy import Phase, Proxy
from triolet.actors import (
    AlreadyRunning,
    BatchStatus,
    Chunk,
    ChunkKey,
    Cursor,
    Delivery,
    InstanceComplete,
    Job,
    JsonObject,
    LaunchReport,
    LeaseLost,
    RuntimeOptions,
    Step,
    StepContext,
    StoreError,
    open_runtime,
)
from triolet.storage.commands import ReleaseOwner

RACERS = 6
ROUNDS = 4


async def test_of_many_restarts_at_once_one_wins_and_the_body_runs_once(
    url: str,
) -> None:
    """C081."""
    bodies: Counter[int] = Counter()
    outcomes: Counter[str] = Counter()

    def job_of(fails: bool) -> Job:
        async def body(ctx: StepContext) -> None:
            if fails:
                raise ValueError("the first attempt")
            bodies[int(str(ctx.parameters["number"]))] += 1
            await trio.sleep(0.02)

        return Job("raced", [Step("body", body)])

    async def race(number: int, ready: trio.Event) -> None:
        async with open_runtime(url, RuntimeOptions(connections=1)) as runtime:
            await ready.wait()
            try:
                report = await runtime.launch(job_of(False), number=number)
            except (AlreadyRunning, InstanceComplete) as refused:
                outcomes[type(refused).__name__] += 1
            else:
                outcomes[report.status] += 1

    for number in range(ROUNDS):
        async with open_runtime(url) as runtime:
            await runtime.launch(job_of(True), number=number)
        ready = trio.Event()
        async with trio.open_nursery() as nursery:
            for _ in range(RACERS):
                nursery.start_soon(race, number, ready)
            await trio.sleep(0.2)
            ready.set()

    assert bodies == dict.fromkeys(range(ROUNDS), 1)
    assert outcomes[BatchStatus.COMPLETED] == ROUNDS
    assert outcomes.total() == ROUNDS * RACERS


class Numbers:
    """A reader of twenty numbers."""

    def __init__(self) -> None:
        self.at = 0

    def open(self, state: JsonObject | None) -> None:
        at = state["at"] if state else 0
        assert isinstance(at, int)
        self.at = at

    def read(self, n: int) -> list[int]:
        rows = list(range(self.at, min(self.at + n, 20)))
        self.at += len(rows)
        return rows

    def state(self) -> JsonObject:
        return {"at": self.at}

    def close(self) -> None:
        pass


class Rows:
    """A writer into the table ``row``, which may be slow at one number."""

    delivery = Delivery.ATOMIC

    def __init__(self, slow_at: int = -1) -> None:
        self.slow_at = slow_at

    def open(self, cursor: Cursor | None) -> None:
        assert cursor is not None
        cursor.execute('CREATE TABLE IF NOT EXISTS "row" (n bigint NOT NULL)')

    def write(
        self, cursor: Cursor | None, rows: list[int], chunk_key: ChunkKey
    ) -> None:
        assert cursor is not None
        if self.slow_at in rows:
            cursor.execute("SET LOCAL statement_timeout = '50ms'")
            cursor.execute("SELECT pg_sleep(10)")
        for row in rows:
            cursor.execute(f'INSERT INTO "row" VALUES ({row})')

    def close(self) -> None:
        pass


def loading(slow_at: int = -1) -> Job:
    return Job("loading", [Step("load", Chunk(Numbers(), Rows(slow_at), size=5))])


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_url) as proxy:
        yield proxy


def rows_in(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row for (row,) in connection.execute('SELECT n FROM "row" ORDER BY n')]


async def _launch(url: str, job: Job) -> LaunchReport:
    options = RuntimeOptions(ask_deadline=5)
    async with open_runtime(url, options) as runtime:
        return await runtime.launch(job)


@pytest.mark.parametrize("phase", ["before_commit", "after_commit_before_answer"])
@pytest.mark.parametrize("commit", [3, 4, 5])
async def test_a_chunk_whose_commit_is_cut_is_settled_and_the_job_goes_on(
    proxy: Proxy, postgres_url: str, phase: Phase, commit: int
) -> None:
    """C016: cut before the server saw it, and after it applied it."""
    proxy.arm(phase, commit)

    report = await _launch(proxy.url, loading())

    assert report.status is BatchStatus.COMPLETED
    assert rows_in(postgres_url) == list(range(20))


async def test_a_chunk_that_timed_out_before_its_commit_is_an_ordinary_failure(
    postgres_url: str,
) -> None:
    """C016: the transaction is known to have been rolled back."""
    first = await _launch(postgres_url, loading(slow_at=12))
    assert first.status is BatchStatus.FAILED
    assert rows_in(postgres_url) == list(range(10))

    second = await _launch(postgres_url, loading())

    assert second.status is BatchStatus.COMPLETED
    assert rows_in(postgres_url) == list(range(20))


async def nothing(ctx: StepContext) -> None:
    pass


@pytest.mark.parametrize("fails", [False, True])
async def test_a_job_does_not_go_on_while_an_outcome_cannot_be_recorded(
    proxy: Proxy, postgres_url: str, fails: bool
) -> None:
    """C082: the database is cut off at the very end of the step."""
    ran: list[str] = []

    async def first(ctx: StepContext) -> None:
        proxy.arm("before_commit", then_refuse=True)
        if fails:
            raise ValueError("the outcome is a failure")

    async def second(ctx: StepContext) -> None:
        ran.append("second")

    job = Job("cut", [Step("first", first), Step("second", second)])
    with pytest.raises(StoreError):
        await _launch(proxy.url, job)

    assert ran == []
    proxy.heal()
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT status FROM triolet.execution").fetchall()
    assert found == [("STARTED",)]
    job = Job("cut", [Step("first", nothing), Step("second", second)])
    with pytest.MonkeyPatch.context() as patch:
        # As for another process: the one that owned it is gone.
        patch.setattr("triolet.actors.job.launch.is_alive", lambda owner: False)
        report = await _launch(postgres_url, job)
    assert (report.status, ran) == (BatchStatus.COMPLETED, ["second"])


async def test_a_report_that_comes_after_a_takeover_is_fenced_out(url: str) -> None:
    """C022: what was decided once is not moved by a late report."""
    late = trio.Event()
    bodies: list[str] = []

    async def slow(ctx: StepContext) -> None:
        bodies.append("slow")
        await late.wait()

    async def quick(ctx: StepContext) -> None:
        bodies.append("quick")

    def job_of(body: object) -> Job:
        return Job("late", [Step("body", body)])  # type: ignore[arg-type]  # either

    raised: list[LeaseLost] = []
    async with (
        open_runtime(url) as runtime,
        open_runtime(url) as other,
        trio.open_nursery() as nursery,
    ):

        async def launch() -> None:
            try:
                await runtime.launch(job_of(slow))
            except LeaseLost as exc:
                raised.append(exc)

        nursery.start_soon(launch)
        while not bodies:  # noqa: ASYNC110  # the body's own note is the signal
            await trio.sleep(0.01)
        await runtime._store.ask(ReleaseOwner(runtime._owner_id))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("triolet.actors.job.launch.is_alive", lambda owner: None)
            report = await other.launch(job_of(quick))
        late.set()
    assert report.status is BatchStatus.COMPLETED
    assert (bodies, len(raised)) == (["slow", "quick"], 1)
