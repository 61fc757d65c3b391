"""Absurd.

What was chosen, as the fastest that the SDK offers for each workload:

* The synchronous client. One after another: spawn, then `work_batch` in the same
  process and on the same connection, so that nothing polls.
* Side by side: all tasks spawned in one transaction, then 16 threads, each with a
  client and a connection of its own, which claim tasks in batches. The SDK's own
  workers share one connection among their threads or tasks, which is slower.
* The CSV file by a task on a connection that the program shares with the client, so
  that one transaction holds the step's rows, by COPY, and its checkpoint.
* The schema is the one that absurdctl carries, installed without psql.

A claim holds until its time is over, whether the worker lives or not. The restart
waits for that before the clock starts.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import absurdctl
import psycopg
from absurd_sdk import Absurd, TaskContext

from ..rows import check
from . import workload

THREADS = 16
BATCH = 8
CLAIM_SECS = 120
SHORT_CLAIM_SECS = 1


def short_task(params: object, ctx: TaskContext) -> None:
    for number in range(workload.STEPS):
        ctx.step(f"step-{number}", workload.no_op)


class Peer:
    """A client whose queue is in the database that is loaded."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = psycopg.connect(url, autocommit=True)
        found = self._connection.execute("SELECT to_regnamespace('absurd')").fetchone()
        self._client = self._new_client(self._connection)
        if found == (None,):
            self._connection.execute(absurdctl.BUNDLED_SCHEMA_SQL)
            self._client.create_queue()
        self._others: list[Absurd] = []

    def _new_client(self, place: psycopg.Connection | str) -> Absurd:
        client = Absurd(place)
        client.register_task("short")(short_task)
        return client

    def start(self) -> None:
        self._others = [self._new_client(self._url) for _ in range(THREADS)]

    def sequential(self, workflows: int) -> Sequence[float]:
        times = []
        for _ in range(workflows):
            began = time.perf_counter()
            self._client.spawn("short", None)
            self._client.work_batch()
            times.append(time.perf_counter() - began)
        self._check()
        return times

    def concurrent(self, workflows: int) -> None:
        with self._connection.transaction():
            for _ in range(workflows):
                self._client.spawn("short", None)
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(_work_all, self._others))
        self._check()

    def die(self, steps: int) -> None:
        self._register_long(workload.die)
        self._client.spawn("long", {"steps": steps})
        self._client.work_batch(claim_timeout=SHORT_CLAIM_SECS)

    def restart(self, steps: int) -> float:
        self._register_long(workload.no_op)
        time.sleep(2 * SHORT_CLAIM_SECS)
        began = time.perf_counter()
        self._client.work_batch()  # finds the claim over and queues the task anew
        self._client.work_batch()
        took = time.perf_counter() - began
        self._check()
        return took

    def _register_long(self, last: object) -> None:
        @self._client.register_task("long")
        def long_task(params: dict[str, int], ctx: TaskContext) -> None:
            for number in range(params["steps"] - 1):
                ctx.step(f"step-{number}", workload.no_op)
            ctx.step("last", last)

    def load(self, source: Path) -> None:
        @self._client.register_task("load")
        def load_task(params: None, ctx: TaskContext) -> None:
            cursor = self._connection.cursor()
            for number, rows in enumerate(workload.chunks(source)):
                with self._connection.transaction():
                    ctx.step(f"chunk-{number}", partial(workload.copy, cursor, rows))

        self._client.spawn("load", None)
        self._client.work_batch()
        self._check()

    def _check(self) -> None:
        left = self._connection.execute(
            "SELECT count(*) FROM absurd.t_default WHERE state <> 'completed'"
        ).fetchone()
        check(left, (0,), "tasks that are not completed")


def _work_all(client: Absurd) -> None:
    while tasks := client.claim_tasks(BATCH, CLAIM_SECS):
        for task in tasks:
            client._execute_task(task, CLAIM_SECS)


if __name__ == "__main__":
    workload.main("benchmarks.peers.absurd", Peer)
