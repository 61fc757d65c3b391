"""Triolet itself, under the workloads of its peers.

The command line's patience, the default number of connections; each call opens a
runtime of its own, whose opening is measured with it.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from triolet.actors import (
    BatchStatus,
    Chunk,
    CompiledJob,
    CsvReader,
    Job,
    LaunchReport,
    Runtime,
    RuntimeOptions,
    Step,
    TableWriter,
    compile_job,
    open_runtime,
)
from triolet.actors.cli.running import PATIENCE_SECS
from triolet.storage.postgres import PostgresBackend

from ..rows import check
from . import workload

T = TypeVar("T")

OPTIONS = RuntimeOptions(patience=PATIENCE_SECS)
COLUMNS = {"carrier": str, "flight": int, "origin": str}


async def _no_op(_: object) -> None:
    workload.no_op()


async def _die(_: object) -> None:
    workload.die()


def _job(
    name: str, steps: int, last: Callable[[object], Awaitable[None]]
) -> CompiledJob:
    plain = [Step(f"step-{number}", _no_op) for number in range(steps - 1)]
    return compile_job(Job(name, [*plain, Step("last", last)]))


SHORT = _job("short", workload.STEPS, _no_op)


async def _short(runtime: Runtime, number: int) -> None:
    _check(await runtime.launch(SHORT, number=number))


def _check(report: LaunchReport) -> None:
    check(report.status, BatchStatus.COMPLETED, "the job's status")


class Peer:
    """Runtimes on the database that is loaded."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._started = 0

    def start(self) -> None:
        """Make the schema; each call opens a runtime."""
        backend = PostgresBackend(self._url, writer=bytes(16))
        backend.connect()
        backend.close()

    def _run(self, work: Callable[[Runtime], Awaitable[T]]) -> T:
        async def within() -> T:
            async with open_runtime(self._url, OPTIONS) as runtime:
                return await work(runtime)

        return trio.run(within)

    def _numbers(self, count: int) -> range:
        first, self._started = self._started, self._started + count
        return range(first, self._started)

    def sequential(self, workflows: int) -> Sequence[float]:
        async def work(runtime: Runtime) -> list[float]:
            times = []
            for number in self._numbers(workflows):
                began = time.perf_counter()
                await _short(runtime, number)
                times.append(time.perf_counter() - began)
            return times

        return self._run(work)

    def concurrent(self, workflows: int) -> None:
        async def work(runtime: Runtime) -> None:
            async with trio.open_nursery() as nursery:
                for number in self._numbers(workflows):
                    nursery.start_soon(_short, runtime, number)

        self._run(work)

    def die(self, steps: int) -> None:
        self._run(partial(_launch, job=_job("long", steps, _die)))

    def restart(self, steps: int) -> float:
        job = _job("long", steps, _no_op)
        began = time.perf_counter()
        _check(self._run(partial(_launch, job=job)))
        return time.perf_counter() - began

    def load(self, source: Path) -> None:
        chunk = Chunk(
            CsvReader(source), TableWriter("flights", COLUMNS), size=workload.CHUNK
        )
        job = compile_job(Job("load", [Step("load", chunk)]))
        _check(self._run(partial(_launch, job=job)))


async def _launch(runtime: Runtime, job: CompiledJob) -> LaunchReport:
    return await runtime.launch(job)


if __name__ == "__main__":
    workload.main("benchmarks.peers.ours", Peer)
