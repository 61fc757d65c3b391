"""Operators who ask at the same moment, and jobs that run meanwhile."""

import random
import threading
import time
from collections.abc import Callable
from uuid import UUID

import pytest
import trio

from triolet.actors import (
    BatchStatus,
    Directive,
    Job,
    LaunchReport,
    OutcomeUnknown,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)
from triolet.actors.job.operating import Words, recovery_of
from triolet.storage.backend import run
from triolet.storage.commands import (
    Abandon,
    Diagnose,
    ExecutionNotFound,
    ListOperations,
    Operated,
    OperationIdConflict,
    RequestStop,
    ShowExecution,
)
from triolet.storage.model.operation import Action
from triolet.storage.stores import StoreOptions, open_store

THREADS = 6


def at_once(work: Callable[[int], None]) -> None:
    """Let several threads begin at the same moment."""
    barrier = threading.Barrier(THREADS)
    faults: list[Exception] = []

    def begin(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except Exception as exc:
            faults.append(exc)

    threads = [threading.Thread(target=begin, args=(one,)) for one in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


async def launch(url: str, job: Job) -> LaunchReport:
    async with open_runtime(url, RuntimeOptions(stop_poll=0.1)) as runtime:
        return await runtime.launch(job)


def test_one_request_that_is_sent_many_times_at_once_is_done_once(
    each_postgres_url: str,
) -> None:
    def unsure(ctx: StepContext) -> None:
        raise OutcomeUnknown("the bank did not answer")

    trio.run(launch, each_postgres_url, Job("unsure", [Step("a", unsure)]))
    backends = [
        open_store(each_postgres_url, StoreOptions(create=False))
        for _ in range(THREADS)
    ]
    (seen,) = run(backends[0], UUID(int=1), Diagnose(1)).unresolved
    words = Words(actor="eve", operation_id="once", reason="it was booked")
    request = recovery_of(seen, Directive.MARK_FAILED, words)
    replies: list[Operated] = []

    at_once(lambda one: replies.append(run(backends[one], UUID(int=9 + one), request)))

    for backend in backends:
        backend.close()
    assert sorted(reply.replayed for reply in replies) == [False] + [True] * 5
    assert {reply.operation.result for reply in replies} == {BatchStatus.FAILED}


def test_one_operation_id_is_taken_by_one_of_many_at_once(
    each_postgres_url: str,
) -> None:
    def fails(ctx: StepContext) -> None:
        raise ValueError("no paper")

    for number in range(THREADS):
        trio.run(launch, each_postgres_url, Job(f"job{number}", [Step("a", fails)]))
    backends = [open_store(each_postgres_url) for _ in range(THREADS)]
    done: list[Operated] = []
    refused: list[OperationIdConflict] = []

    def request(one: int) -> None:
        kind = (RequestStop, Abandon)[one % 2]
        ask = kind(execution_id=one + 1, actor="eve", operation_id="once")
        try:
            done.append(run(backends[one], UUID(int=9 + one), ask))
        except OperationIdConflict as exc:
            refused.append(exc)

    at_once(request)

    (winner,) = done
    assert len(refused) == THREADS - 1
    assert not winner.replayed
    abandoned = 0
    for number in range(1, THREADS + 1):
        detail = run(backends[0], UUID(int=0), ShowExecution(number))
        history = run(backends[0], UUID(int=0), ListOperations(number))
        abandoned += detail.execution.status is BatchStatus.ABANDONED
        mine = number == winner.operation.execution_id
        assert history.operations == ((winner.operation,) if mine else ())
    assert abandoned == (winner.operation.action is Action.ABANDON)
    for backend in backends:
        backend.close()


@pytest.mark.parametrize("seed", range(2))
def test_stops_at_any_moment_end_a_job_as_stopped(
    each_postgres_url: str, seed: int
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(0.002)

    job = Job("long", [Step(f"s{number}", work) for number in range(300)])
    open_store(each_postgres_url).close()
    over = threading.Event()

    def request(number: int) -> None:
        dice = random.Random(10 * seed + number)
        if number == 0:
            reports.append(trio.run(launch, each_postgres_url, job))
            over.set()
            return
        backend = open_store(each_postgres_url)
        while not over.is_set():
            time.sleep(dice.uniform(0, 0.05))
            ask = RequestStop(
                execution_id=1, actor="eve", operation_id=f"{dice.getrandbits(64)}"
            )
            try:
                run(backend, UUID(int=dice.getrandbits(128)), ask)
            except ExecutionNotFound:
                continue
        backend.close()

    reports: list[LaunchReport] = []
    at_once(request)
    assert [report.status for report in reports] == [BatchStatus.STOPPED]
    assert trio.run(launch, each_postgres_url, job).status is BatchStatus.COMPLETED
