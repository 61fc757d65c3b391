"""Durable steps on PostgreSQL, against bare transactions of the same rows."""

import time
from functools import partial

import psycopg
import trio
from attrs import frozen

from tests.postgres.server import Server
from triolet.actors import Runtime, open_runtime

from .benchmark import Benchmark, Workspace
from .noop import STEPS, launch_at_once, launch_in_turn, launch_one
from .postgres_limit import bare_steps
from .rounds import ROUNDS, compared, in_turns
from .rows import Row, check
from .sqlite import Launches

SEQUENTIAL_TARGET = 0.7
CONCURRENT_TARGET = 2.5


@frozen(kw_only=True)
class Size:
    """How much is measured."""

    transactions: int = 2000
    in_turn: int = 200
    at_once: int = 500
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


BENCHMARKS = (
    Benchmark("postgres.sequential", sequential),
    Benchmark("postgres.concurrent", concurrent),
)
