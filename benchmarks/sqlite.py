"""Durable steps on SQLite, against as many bare commits of one row."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import trio
from attrs import frozen

from triolet.actors import Runtime, open_runtime

from .benchmark import Benchmark, Workspace, plain_connection, url_of
from .noop import STEPS, launch_at_once, launch_in_turn, launch_one
from .rounds import ROUNDS, compared, in_turns
from .rows import Row, check

SEQUENTIAL_TARGET = 0.5
CONCURRENT_TARGET = 2.5


@frozen(kw_only=True)
class Size:
    """How much is measured."""

    commits: int = 2000
    jobs: int = 200
    rounds: int = ROUNDS + 2


FULL_SIZE = Size()


def bare_commits(workspace: Workspace, commits: int) -> float:
    """Give rows per second of a loop that inserts and commits one row at a time."""
    with workspace.store() as path:
        db = plain_connection(path)
        db.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, name TEXT)")
        began = time.perf_counter()
        for number in range(commits):
            db.execute("INSERT INTO bare (name) VALUES (?)", (f"step-{number}",))
        took = time.perf_counter() - began
        (rows,) = db.execute("SELECT count(*) FROM bare").fetchone()
        db.close()
    check(rows, commits, "rows of the bare loop")
    return commits / took


Launches = Callable[[Runtime, int], Awaitable[None]]


async def _in_turn(runtime: Runtime, jobs: int) -> None:
    await launch_in_turn(runtime, 0, jobs)


async def _steps_per_second(url: str, jobs: int, launches: Launches) -> float:
    async with open_runtime(url) as runtime:
        await launch_one(runtime, -1)
        began = time.perf_counter()
        await launches(runtime, jobs)
        took = time.perf_counter() - began
    return jobs * STEPS / took


def durable_steps(workspace: Workspace, jobs: int, launches: Launches) -> float:
    """Give steps per second of *jobs* jobs, and look for them in the file."""
    with workspace.store() as path:
        rate = trio.run(_steps_per_second, url_of(path), jobs, launches)
        check(_completed(path), (jobs + 1) * STEPS, "completed steps in the store")
    return rate


def _completed(path: Path) -> int:
    db = plain_connection(path)
    (steps,) = db.execute(
        "SELECT count(*) FROM triolet_step s "
        "JOIN triolet_execution e ON e.id = s.execution_id "
        "WHERE s.status = 'COMPLETED' AND e.status = 'COMPLETED'"
    ).fetchone()
    db.close()
    return int(steps)


def _measure(
    name: str, workspace: Workspace, size: Size, target: float, launches: Launches
) -> Row:
    rounds = in_turns(
        partial(bare_commits, workspace, size.commits),
        partial(durable_steps, workspace, size.jobs, launches),
        size.rounds,
    )
    return compared(name, "steps/s", "higher", target, rounds)


def sequential(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure one job after another."""
    return _measure(name, workspace, size, SEQUENTIAL_TARGET, _in_turn)


def concurrent(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure all jobs side by side."""
    return _measure(name, workspace, size, CONCURRENT_TARGET, launch_at_once)


BENCHMARKS = (
    Benchmark("sqlite.sequential", sequential),
    Benchmark("sqlite.concurrent", concurrent),
)
