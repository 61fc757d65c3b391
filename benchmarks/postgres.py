"""Durable steps on PostgreSQL, against bare transactions of the same rows."""

import gc
import time
from functools import partial
from pathlib import Path

import psycopg
import trio
from attrs import frozen

from tests.postgres.server import Server
from triolet.actors import (
    BatchStatus,
    CompiledJob,
    Job,
    LaunchReport,
    Runtime,
    RuntimeOptions,
    Step,
    compile_job,
    open_runtime,
)
from triolet.actors.cli.running import PATIENCE_SECS

from . import flights
from .benchmark import Benchmark, Workspace
from .noop import STEPS, launch_at_once, launch_in_turn, launch_one
from .postgres_limit import bare_copy, bare_steps
from .rounds import ROUNDS, Round, compared, in_turns
from .rows import Row, check
from .sqlite import Launches

SEQUENTIAL_TARGET = 0.7
CONCURRENT_TARGET = 2.5
CSV_TARGET = 0.9
RESTART_STEPS = 1000
RESTART_TARGET = 1.5
RESTART_EXTRA_SECS = 0.02


@frozen(kw_only=True)
class Size:
    """How much is measured."""

    transactions: int = 2000
    in_turn: int = 200
    at_once: int = 500
    steps: int = RESTART_STEPS
    rows: int = 336_776
    rounds: int = ROUNDS


FULL_SIZE = Size()


async def _in_turn(runtime: Runtime, jobs: int) -> None:
    await launch_in_turn(runtime, 0, jobs)


def durable_steps(server: Server, jobs: int, launches: Launches) -> float:
    """Give steps per second of *jobs* jobs, and look for them in the store."""
    server.create_database("durable")
    url = server.url("durable")
    rate = trio.run(_steps_per_second, url, jobs, launches)
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM triolet.step s "
            "JOIN triolet.execution e ON e.id = s.execution_id "
            "WHERE s.status = 'COMPLETED' AND e.status = 'COMPLETED'"
        ).fetchone()
    server.drop_database("durable")
    check(found, ((jobs + 1) * STEPS,), "completed steps in the store")
    return rate


async def _steps_per_second(url: str, jobs: int, launches: Launches) -> float:
    async with open_runtime(url) as runtime:
        await launch_one(runtime, -1)
        began = time.perf_counter()
        await launches(runtime, jobs)
        took = time.perf_counter() - began
    return jobs * STEPS / took


def sequential(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure one job after another."""
    with Server(parent=workspace.folder) as server:
        rounds = in_turns(
            partial(bare_steps, server.url(), size.transactions),
            partial(durable_steps, server, size.in_turn, _in_turn),
            size.rounds,
        )
    return compared(name, "steps/s", "higher", SEQUENTIAL_TARGET, rounds)


def concurrent(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure all jobs side by side, against the same bare transactions."""
    with Server(parent=workspace.folder) as server:
        rounds = in_turns(
            partial(bare_steps, server.url(), size.transactions),
            partial(durable_steps, server, size.at_once, launch_at_once),
            size.rounds,
        )
    return compared(name, "steps/s", "higher", CONCURRENT_TARGET, rounds)


async def _nothing(_: object) -> None:
    pass


class _Dies:
    """A last step that fails the first time."""

    def __init__(self) -> None:
        self.tries = 0

    async def __call__(self, _: object) -> None:
        self.tries += 1
        if self.tries == 1:
            raise RuntimeError("the last step dies once")


def _long_job(steps: int) -> CompiledJob:
    every = [Step(f"step-{number}", _nothing) for number in range(steps - 1)]
    return compile_job(Job("long", [*every, Step("last", _Dies())]))


async def _restarted(url: str, steps: int) -> tuple[float, float]:
    """Give the seconds of a query of the same rows, and of the restart."""
    job = _long_job(steps)
    async with open_runtime(url) as runtime:
        report = await runtime.launch(job)
        check(report.status, BatchStatus.FAILED, "the job's status")
    query = _query_secs(url, steps)
    async with open_runtime(url) as runtime:
        gc.collect()  # what the first run has left behind is not the restart's
        began = time.perf_counter()
        report = await runtime.launch(job)
        took = time.perf_counter() - began
    check(report.status, BatchStatus.COMPLETED, "the job's status")
    reused = sum(step.reused for step in report.steps)
    check(reused, steps - 1, "steps that were reused")
    return query, took


def _query_secs(url: str, steps: int) -> float:
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1")
        began = time.perf_counter()
        rows = connection.execute("SELECT * FROM triolet.step").fetchall()
        took = time.perf_counter() - began
    check(len(rows), steps, "step rows")
    return took


def restart(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure the restart of a job of 1,000 steps that died in its last one."""
    rounds = []
    with Server(parent=workspace.folder) as server:
        for _ in range(size.rounds):
            server.create_database("durable")
            query, took = trio.run(_restarted, server.url("durable"), size.steps)
            server.drop_database("durable")
            bound = RESTART_TARGET * query + RESTART_EXTRA_SECS
            rounds.append(Round(bound * 1000, took * 1000))
    return compared(name, "ms", "lower", 1.0, rounds)


async def _loaded(url: str, job: Job) -> tuple[float, LaunchReport]:
    async with open_runtime(url, RuntimeOptions(patience=PATIENCE_SECS)) as runtime:
        began = time.perf_counter()
        report = await runtime.launch(job)
        return time.perf_counter() - began, report


def durable_load(server: Server, source: Path, columns: dict[str, type]) -> float:
    """Give rows per second of a job that loads a file, and look into the table."""
    server.create_database("durable")
    url = server.url("durable")
    took, report = trio.run(_loaded, url, flights.load_job(source, columns))
    check(report.status, BatchStatus.COMPLETED, "the job's status")
    with psycopg.connect(url) as connection:
        query = f"SELECT count(*) FROM {flights.TABLE}".encode()
        found = connection.execute(query).fetchone()
    server.drop_database("durable")
    rows = report.counts.written
    check(found, (rows,), "rows in the table")
    return rows / took


def csv_load(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure a CSV file of three columns into a table, chunk by chunk."""
    source, wide = workspace.new_file(".csv"), workspace.new_file(".csv")
    flights.write_csv(wide, flights.generated_lines(size.rows), size.rows)
    flights.write_narrow(source, wide)
    wide.unlink()
    with Server(parent=workspace.folder) as server:
        rounds = in_turns(
            partial(bare_copy, server.url(), source, flights.NARROW),
            partial(durable_load, server, source, flights.NARROW),
            size.rounds,
        )
    source.unlink()
    return compared(name, "rows/s", "higher", CSV_TARGET, rounds)


BENCHMARKS = (
    Benchmark("postgres.sequential", sequential),
    Benchmark("postgres.concurrent", concurrent),
    Benchmark("postgres.restart", restart),
    Benchmark("postgres.csv", csv_load),
)
