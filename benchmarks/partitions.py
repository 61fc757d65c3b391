"""Partitions: how many workers are worth, how fast they stop, what an idle job holds."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import trio
from attrs import frozen

from tests.postgres.server import Server
from triolet.actors import (
    BatchStatus,
    CompiledJob,
    Job,
    LaunchReport,
    PartitionedStep,
    PlannerContext,
    Runtime,
    RuntimeOptions,
    Step,
    StepContext,
    compile_job,
    open_runtime,
)

from .benchmark import Benchmark, Workspace
from .rounds import Round, bounded, compared
from .rows import Row, check

EIGHT_TARGET = 4.0
SIXTY_FOUR_TARGET = 10.0
EFFICIENCY_TARGET = 0.8
WAIT_SECS = 0.04
STOP_MEMORY_MS = 100.0
STOP_POSTGRES_MS = 300.0
IDLE_KIB = 40.0
BYTES = 1024
MANY = 64


@frozen(kw_only=True)
class Size:
    """How much is measured."""

    partitions: int = 1000
    alone: int = 200
    """Partitions that one worker does, which takes long."""
    waiting: int = MANY
    jobs: int = 1000
    rounds: int = 3


FULL_SIZE = Size()


def _plan(ctx: PlannerContext) -> list[tuple[str, dict[str, object]]]:
    return [(f"{number:04}", {}) for number in range(ctx.partitions or 0)]


async def _nothing(ctx: StepContext) -> None:
    pass


async def _wait(ctx: StepContext) -> None:
    await trio.sleep(WAIT_SECS)


async def _wait_for_ever(ctx: StepContext) -> None:
    await trio.sleep_forever()


def _job(
    work: Callable[[StepContext], object], partitions: int, workers: int
) -> CompiledJob:
    step = PartitionedStep("parts", work, _plan, partitions, max_workers=workers)
    return compile_job(Job(f"parts-{workers}", [step]))


async def rate(url: str, partitions: int, workers: int) -> float:
    """Give partitions per second, the plan and the aggregate included."""
    job = _job(_nothing, partitions, workers)
    async with open_runtime(url) as runtime:
        began = time.perf_counter()
        report = await runtime.launch(job)
        took = time.perf_counter() - began
    check(report.status, BatchStatus.COMPLETED, "the job's status")
    check(len(report.partitions), partitions, "partitions in the report")
    return partitions / took


def many_workers(
    name: str, workspace: Workspace, workers: int, target: float, size: Size = FULL_SIZE
) -> Row:
    """Compare the rate of many workers with that of one, each commit of whom stands alone."""
    rounds = []
    with Server(parent=workspace.folder) as server:
        for _ in range(size.rounds):
            rates = []
            for partitions, count in ((size.alone, 1), (size.partitions, workers)):
                server.create_database("parts")
                url = server.url("parts")
                rates.append(trio.run(rate, url, partitions, count))
                server.drop_database("parts")
            rounds.append(Round(*rates))
    return compared(name, "partitions/s", "higher", target, rounds)


async def _took(partitions: int, workers: int) -> float:
    job = _job(_wait, partitions, workers)
    async with open_runtime("memory:") as runtime:
        gc.collect()  # what was made before is not the partitions'
        began = time.perf_counter()
        report = await runtime.launch(job)
        took = time.perf_counter() - began
    check(report.status, BatchStatus.COMPLETED, "the job's status")
    return took


def efficiency(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure T1 / (n x Tn) of partitions that wait: 1 would be perfect."""
    count = size.waiting
    trio.run(_took, count, count)  # imports what is used first
    rounds = []
    for _ in range(size.rounds):
        alone = trio.run(_took, count, 1)
        together = trio.run(_took, count, count)
        rounds.append(Round(1.0, alone / (count * together)))
    return compared(name, "T1/(n Tn)", "higher", EFFICIENCY_TARGET, rounds)


async def stop_secs(url: str, partitions: int) -> float:
    """Stop running partitions; the seconds from the request to the report."""
    reports: list[LaunchReport] = []
    job = _job(_wait_for_ever, partitions, partitions)

    async def launch(runtime: Runtime) -> None:
        reports.append(await runtime.launch(job))

    async with open_runtime(url, RuntimeOptions()) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(launch, runtime)
            await trio.sleep(1.0)
            began = time.perf_counter()
            runtime.stop()
        took = time.perf_counter() - began
    stopped = [one.status for one in reports[0].partitions]
    check(stopped, [BatchStatus.STOPPED] * partitions, "the partitions' statuses")
    return took


def stop_memory(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure a stop on the memory backend."""
    times = [trio.run(stop_secs, "memory:", size.waiting) for _ in range(size.rounds)]
    return bounded(name, "ms", STOP_MEMORY_MS, [1000 * one for one in times])


def stop_postgres(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure a stop on PostgreSQL."""
    times = []
    with Server(parent=workspace.folder) as server:
        for _ in range(size.rounds):
            server.create_database("parts")
            times.append(trio.run(stop_secs, server.url("parts"), size.waiting))
            server.drop_database("parts")
    return bounded(name, "ms", STOP_POSTGRES_MS, [1000 * one for one in times])


async def _idle_kib(jobs: int) -> float:
    job = compile_job(Job("idle", [Step("wait", _wait_for_ever)]))
    async with open_runtime("memory:") as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(partial(runtime.launch, job, number=-1))
        await trio.sleep(0.1)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(jobs):
            nursery.start_soon(partial(runtime.launch, job, number=number))
        while len(runtime.running) <= jobs:  # noqa: ASYNC110  # nobody tells
            await trio.sleep(0.05)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        nursery.cancel_scope.cancel()
    return (after - before) / jobs / BYTES


def per_job(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure what Python allocates for a job that waits, its rows in memory included."""
    values = [trio.run(_idle_kib, size.jobs) for _ in range(size.rounds)]
    return bounded(name, "KiB", IDLE_KIB, values)


def _workers(count: int, target: float) -> Callable[[str, Workspace], Row]:
    return lambda name, workspace: many_workers(name, workspace, count, target)


BENCHMARKS = (
    Benchmark("postgres.partitions_8", _workers(8, EIGHT_TARGET)),
    Benchmark("postgres.partitions_64", _workers(MANY, SIXTY_FOUR_TARGET)),
    Benchmark("memory.partitions", efficiency),
    Benchmark("stop.partitions_memory", stop_memory),
    Benchmark("stop.partitions_postgres", stop_postgres),
    Benchmark("memory.per_job", per_job),
)
