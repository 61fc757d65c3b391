"""Stop, lease renewal and takeover on PostgreSQL, beside one job and beside many.

The limit is what the same takes while one execution runs; with 500 it must not take
more than twice as long.
"""

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio
from attrs import define, frozen

from tests.postgres.server import Server
from triolet.actors import (
    BatchStatus,
    Job,
    LaunchReport,
    Runtime,
    RuntimeOptions,
    Step,
    compile_job,
    open_runtime,
)
from triolet.actors.plan.job_traversal import entry_step
from triolet.storage.backend import run
from triolet.storage.commands import (
    Definition,
    OpenExecution,
    OwnerFacts,
    RegisterOwner,
    RenewLease,
)
from triolet.storage.model.parameters import parameters_of
from triolet.storage.stores import open_store

from .benchmark import Benchmark, Workspace
from .rounds import ROUNDS, Round, compared
from .rows import Row, check

TARGET = 2.0
OPTIONS = RuntimeOptions(stop_poll=60)


@frozen(kw_only=True)
class Size:
    """How much runs beside, and how often is measured."""

    beside: int = 500
    rounds: int = ROUNDS


FULL_SIZE = Size()


async def _wait(_: object) -> None:
    await trio.sleep_forever()


async def _nothing(_: object) -> None:
    pass


WAITS = compile_job(Job("waits", [Step("wait", _wait)]))
LEFT = compile_job(Job("left", [Step("go on", _nothing)]))


@define
class Load:
    """A runtime with jobs that wait, and another one that looks at it from outside."""

    url: str
    runtime: Runtime
    operator: Runtime
    nursery: trio.Nursery
    started: int = 0

    async def launch(self, number: int, reports: list[LaunchReport]) -> None:
        reports.append(await self.runtime.launch(WAITS, number=number))

    async def begin(self, jobs: int) -> None:
        """Launch jobs, and wait until all of them run."""
        wanted = len(self.runtime.running) + jobs
        for _ in range(jobs):
            self.started += 1
            self.nursery.start_soon(self.launch, self.started, [])
        while len(self.runtime.running) < wanted:  # noqa: ASYNC110  # nobody tells
            await trio.sleep(0.01)

    async def stop_secs(self) -> float:
        """Stop one more job from outside; the seconds until its launch has returned."""
        reports: list[LaunchReport] = []
        before = set(self.runtime.running)
        self.started += 1
        began = 0.0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.launch, self.started, reports)
            while not (new := set(self.runtime.running) - before):  # noqa: ASYNC110
                await trio.sleep(0.001)
            await trio.sleep(0.05)
            began = time.perf_counter()
            (execution_id,) = new
            await self.operator.request_stop(
                execution_id, actor="bench", operation_id=uuid.uuid4().hex
            )
        took = time.perf_counter() - began
        check(reports[0].status, BatchStatus.STOPPED, "the stopped job's status")
        return took

    async def renewal_secs(self) -> float:
        """Renew the lease of the runtime that has all the jobs."""
        command = RenewLease(self.runtime._owner_id, 30_000_000)
        began = time.perf_counter()
        await self.runtime._store.ask(command)
        return time.perf_counter() - began

    async def takeover_secs(self) -> float:
        """Continue what an owner has left whose lease has run out."""
        self.started += 1
        await trio.to_thread.run_sync(_leave, self.url, self.started)
        began = time.perf_counter()
        report = await self.operator.launch(LEFT, number=self.started)
        took = time.perf_counter() - began
        check(report.attempt, 2, "the attempt that took over")
        return took


def _leave(url: str, number: int) -> None:
    """Open an execution under an owner of another host, whose lease is over."""
    backend = open_store(url)
    facts = OwnerFacts(host="elsewhere", pid=1)
    owner = run(backend, uuid.uuid4(), RegisterOwner(facts, 0))
    opening = OpenExecution(
        job=LEFT.job,
        parameters=parameters_of({"number": number}),
        definition=Definition(
            revision=LEFT.revision,
            format=LEFT.plan.format,
            fingerprint=LEFT.plan.fingerprint,
            manifest=LEFT.plan.manifest,
        ),
        owner_id=owner.owner_id,
        failure_id=1,
        first=entry_step(LEFT.plan),
    )
    run(backend, uuid.uuid4(), opening)
    backend.close()


@asynccontextmanager
async def _loaded(url: str) -> AsyncIterator[Load]:
    async with (
        open_runtime(url, OPTIONS) as operator,
        open_runtime(url, OPTIONS) as runtime,
        trio.open_nursery() as nursery,
    ):
        yield Load(url, runtime, operator, nursery)
        nursery.cancel_scope.cancel()


Measure = Callable[[Load], Awaitable[float]]


async def _measured(url: str, size: Size, measure: Measure) -> list[Round]:
    few, many = [], []
    async with _loaded(url) as load:
        await load.begin(1)
        await measure(load)
        few = [await measure(load) for _ in range(size.rounds)]
        await load.begin(size.beside - 1)
        many = [await measure(load) for _ in range(size.rounds)]
    pairs = zip(sorted(few), sorted(many), strict=True)
    return [Round(one * 1000, other * 1000) for one, other in pairs]


def _row(name: str, workspace: Workspace, size: Size, measure: Measure) -> Row:
    with Server(parent=workspace.folder) as server:
        server.create_database("control")
        rounds = trio.run(_measured, server.url("control"), size, measure)
    return compared(name, "ms", "lower", TARGET, rounds)


def stop_latency(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure a stop from another runtime, from the request to the job's report."""
    return _row(name, workspace, size, Load.stop_secs)


def renewal(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure the renewal of the lease."""
    return _row(name, workspace, size, Load.renewal_secs)


def takeover(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure the launch of a job that an owner has left, to its end."""
    return _row(name, workspace, size, Load.takeover_secs)


BENCHMARKS = (
    Benchmark("postgres.stop_latency", stop_latency),
    Benchmark("postgres.renewal", renewal),
    Benchmark("postgres.takeover", takeover),
)
