"""Stops that operators ask for: when they are seen, and what they make of a job."""

from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.harness import Crash, Store, Trace, job, launch, running, trio_clock
from triolet.actors import (
    BatchStatus,
    Event,
    EventKind,
    InvalidValue,
    LaunchReport,
    RuntimeOptions,
    Step,
    StepContext,
    StoreUnusable,
)
from triolet.storage.backend import run
from triolet.storage.commands import (
    Advance,
    BeginStopping,
    Command,
    FindStops,
    RequestStop,
)


@pytest.fixture
def store() -> Store:
    return Store(clock=trio_clock)


def request(store: Store, execution_id: int = 1) -> None:
    """Ask for a stop from outside of every runtime."""
    ask: Command[Any] = RequestStop(
        execution_id=execution_id, actor="eve", operation_id=f"stop {execution_id}"
    )
    run(store.inner, UUID(int=9), ask)


def sleeping(node: str, trace: Trace, seconds: float = 3600) -> Step:
    async def work(ctx: StepContext) -> None:
        trace.calls.append(node)
        await trio.sleep(seconds)

    return Step(node, work)


async def test_a_stop_is_seen_within_the_poll_and_the_job_ends_stopped(
    store: Store, autojump_clock: trio.testing.MockClock, trace: Trace
) -> None:
    events: list[Event] = []
    reports: list[LaunchReport] = []
    began = trio.current_time()
    async with (
        running(store, events=events.append, stop_poll=2.0) as runtime,
        trio.open_nursery() as nursery,
    ):

        async def run_it() -> None:
            patient = job(sleeping("a", trace), trace.step("b"))
            reports.append(await runtime.launch(patient))

        nursery.start_soon(run_it)
        await trio.sleep(3)
        request(store)
    assert trio.current_time() - began == pytest.approx(4)
    assert [report.status for report in reports] == [BatchStatus.STOPPED]
    (execution,) = store.executions
    # Begun, STOPPING, exit code, status.
    assert (execution.status, execution.version) == (BatchStatus.STOPPED, 4)
    assert EventKind.STOP_REQUESTED in [event.kind for event in events]
    assert trace.calls == ["a"]


async def test_a_stopping_execution_can_be_seen_as_such(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[str] = []

    async def work(ctx: StepContext) -> None:
        request(store)
        await ctx.stop.wait()
        seen.append(store.executions[0].status.value)

    step = Step("a", work, on_stop="cooperate")
    await launch(store, job(step, Step("b", work)))
    assert seen == ["STOPPING"]


async def test_the_last_step_may_end_but_the_job_is_stopped_and_completes_later(
    store: Store, autojump_clock: trio.testing.MockClock, trace: Trace
) -> None:
    def stop_at_the_end(command: Command[Any]) -> None:
        if isinstance(command, Advance) and command.end is not None:
            request(store)
            run(store.inner, UUID(int=8), BeginStopping(1, 1))

    patient = job(trace.step("a"))
    store.watch = stop_at_the_end
    stopped = await launch(store, patient)
    store.watch = lambda command: None
    assert (stopped.status, stopped.exit_code) == (BatchStatus.STOPPED, "STOPPED")
    assert store.statuses == [("a", "COMPLETED")]
    again = await launch(store, patient)
    assert again.status is BatchStatus.COMPLETED
    assert [step.reused for step in again.steps] == [True]
    assert trace.calls == ["a"]


async def test_only_the_execution_that_was_named_is_stopped(
    store: Store, autojump_clock: trio.testing.MockClock, trace: Trace
) -> None:
    """C072."""
    ends: dict[int, BatchStatus] = {}
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def run_it(day: int) -> None:
            report = await runtime.launch(job(sleeping("a", trace, 10)), day=day)
            ends[report.execution_id] = report.status

        for day in (1, 2):
            nursery.start_soon(run_it, day)
        await trio.sleep(1.5)
        request(store, 2)
    assert ends == {1: BatchStatus.COMPLETED, 2: BatchStatus.STOPPED}


async def test_one_question_serves_all_jobs_and_none_is_put_while_nothing_runs(
    store: Store,
    autojump_clock: trio.testing.MockClock,
    trace: Trace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions: list[float] = []
    apply = store.inner.apply

    def watched(batch_id: Any, batch: Any) -> Any:
        if any(isinstance(command, FindStops) for command in batch):
            questions.append(trio.current_time())
        return apply(batch_id, batch)

    monkeypatch.setattr(store.inner, "apply", watched)
    async with running(store) as runtime, trio.open_nursery() as nursery:
        await trio.sleep(100)
        assert questions == []
        for day in range(3):
            nursery.start_soon(_launch, runtime, job(sleeping("a", trace, 4.5)), day)
        await trio.sleep(100)
    assert len(questions) == 4


async def _launch(runtime: Any, patient: Any, day: int) -> None:
    await runtime.launch(patient, day=day)


async def test_a_push_makes_the_runtime_look_at_once(
    store: Store, autojump_clock: trio.testing.MockClock, trace: Trace
) -> None:
    began = trio.current_time()
    async with (
        running(store, stop_poll=60.0) as runtime,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_launch, runtime, job(sleeping("a", trace)), 1)
        await trio.sleep(5)
        request(store)
        runtime._launches.stops.wake()
    assert trio.current_time() - began == pytest.approx(5)
    assert store.executions[0].status is BatchStatus.STOPPED


async def test_a_store_that_does_not_answer_is_asked_again(
    store: Store,
    autojump_clock: trio.testing.MockClock,
    trace: Trace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apply = store.inner.apply
    failures = [1, 2]

    def failing(batch_id: Any, batch: Any) -> Any:
        if failures and any(isinstance(command, FindStops) for command in batch):
            failures.pop()
            raise StoreUnusable("it is read-only for a while")
        return apply(batch_id, batch)

    monkeypatch.setattr(store.inner, "apply", failing)
    began = trio.current_time()
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(_launch, runtime, job(sleeping("a", trace)), 1)
        await trio.sleep(0.5)
        request(store)
    assert trio.current_time() - began == pytest.approx(3)
    assert store.executions[0].status is BatchStatus.STOPPED


async def test_a_stop_outlives_the_owner_and_only_an_explicit_launch_goes_on(
    store: Store, autojump_clock: trio.testing.MockClock, trace: Trace
) -> None:
    """C078: what an operator stopped and what died are kept apart."""
    patient = job(trace.step("a"), trace.step("b"))
    store.faults[2] = Crash()
    with pytest.raises(BaseExceptionGroup):
        await launch(store, patient)
    request(store)
    await trio.sleep(31)
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    stopped, again = store.executions
    assert stopped.status is BatchStatus.STOPPED
    assert again.restart_of == 1
    assert trace.calls == ["a", "a", "b"]


@pytest.mark.parametrize("seconds", [0.05, 61])
def test_the_poll_has_bounds(seconds: float) -> None:
    with pytest.raises(InvalidValue, match=r"0\.1 to 60 seconds"):
        evolve(RuntimeOptions(), stop_poll=seconds)
