"""Owners: who is dead, whose lease is awaited, and what is taken over."""

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.harness import (
    JOB,
    Crash,
    Store,
    Trace,
    job,
    launch,
    refusal,
    running,
    trio_clock,
)
from triolet.actors import (
    AlreadyRunning,
    BatchStatus,
    Event,
    EventKind,
    FailureCategory,
    Job,
    LeaseLost,
    OutcomeUnresolved,
    Step,
    StepContext,
)
from triolet.actors.kernel.liveness import this_process
from triolet.storage.commands import OpenExecution, OwnerFacts


def dead_owner() -> OwnerFacts:
    """Describe a process that is proved to have ended; no pid is that high."""
    return evolve(this_process(), pid=(1 << 22) + 1)


UNKNOWN_OWNER = OwnerFacts(host="mill", pid=42)


async def die(store: Store, patient: Job, facts: OwnerFacts, at: int = 2) -> None:
    """Let a process with these facts die when it sends its n-th command."""
    store.faults[len(store.commands) + at] = Crash()
    with pytest.raises(BaseExceptionGroup):
        await launch(store, patient)
    owners = store.inner._tables.owners
    owners[len(owners)] = evolve(owners[len(owners)], facts=facts)


async def test_what_a_dead_owner_left_is_taken_over_at_once(
    store: Store, trace: Trace
) -> None:
    if this_process().process_start is None:
        pytest.skip("this platform cannot prove that a process is dead")
    nodes = trace.step("a"), trace.step("b")
    await die(store, job(*nodes), dead_owner(), at=3)
    assert store.statuses == [("a", "COMPLETED"), ("b", "STARTED")]
    report = await launch(store, job(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert report.took_over == 1
    assert report.restart_of == 1
    assert trace.calls == ["a", "b", "b"]
    lost, again = store.executions
    assert (lost.status, again.status) == (BatchStatus.FAILED, BatchStatus.COMPLETED)
    assert lost.failure is not None
    assert lost.failure.category is FailureCategory.STALE_RECOVERED
    assert lost.ended_at is not None
    step = store.steps[1]
    assert (step.node, step.status) == ("b", BatchStatus.FAILED)
    assert step.failure is not None
    assert step.failure.category is FailureCategory.STALE_RECOVERED


async def test_of_an_owner_of_whom_nothing_is_known_the_lease_is_awaited(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    events: list[Event] = []
    await die(store, job(trace.step("a")), UNKNOWN_OWNER)
    began = trio.current_time()
    report = await launch(store, job(trace.step("a")), events=events.append)
    assert report.status is BatchStatus.COMPLETED
    assert report.took_over == 1
    assert 30 <= trio.current_time() - began < 31
    assert events[0].kind is EventKind.LAUNCH_WAITING
    assert events[0].job == JOB
    assert events[0].seconds is not None
    assert 30 <= events[0].seconds < 31
    assert "process 42 on host mill" in (events[0].message or "")


async def test_a_launch_need_not_wait_for_a_lease(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    await die(store, job(trace.step("a")), UNKNOWN_OWNER)
    began = trio.current_time()
    async with running(store) as runtime:
        with pytest.raises(AlreadyRunning, match="process 42 on host mill"):
            await runtime.launch(job(trace.step("a")), wait=False)
    assert trio.current_time() == began


async def test_a_lease_that_is_renewed_meanwhile_belongs_to_somebody_who_lives(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    await die(store, job(trace.step("a")), UNKNOWN_OWNER)
    owners = store.inner._tables.owners

    def renew(command: object) -> None:
        if isinstance(command, OpenExecution):
            until = trio_clock() + 30_000_000
            owners[1] = evolve(owners[1], lease_until=until)

    store.watch = renew
    error = await refusal(store, job(trace.step("a")))
    assert isinstance(error, AlreadyRunning)


async def test_stopping_the_runtime_ends_the_wait_for_a_lease(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    await die(store, job(trace.step("a")), UNKNOWN_OWNER)
    began = trio.current_time()
    async with running(store) as runtime, trio.open_nursery() as nursery:
        before = evolve(store.dump(), owners=())

        async def stop() -> None:
            await trio.sleep(5)
            runtime.stop()

        nursery.start_soon(stop)
        with pytest.raises(AlreadyRunning):
            await runtime.launch(job(trace.step("a")))
        assert trio.current_time() - began == 5
        assert evolve(store.dump(), owners=()) == before


async def test_cancelling_a_launch_that_waits_for_a_lease_writes_nothing(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    await die(store, job(trace.step("a")), UNKNOWN_OWNER)
    async with running(store) as runtime:
        before = evolve(store.dump(), owners=())
        with trio.move_on_after(5) as scope:
            await runtime.launch(job(trace.step("a")))
        assert scope.cancelled_caught
        assert evolve(store.dump(), owners=()) == before


async def test_an_owner_that_lost_its_lease_commits_nothing_any_more(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            owners = store.inner._tables.owners
            owners[1] = evolve(owners[1], lease_until=0, facts=UNKNOWN_OWNER)
            await launch(store, job(Step("work", work)))

    with pytest.raises(LeaseLost):
        await launch(store, job(Step("work", work)))
    assert store.statuses == [("work", "FAILED"), ("work", "COMPLETED")]
    assert [one.status.value for one in store.executions] == ["FAILED", "COMPLETED"]


async def test_a_dead_owner_whose_step_is_unknown_blocks_the_instance(
    store: Store, trace: Trace
) -> None:
    await die(store, job(trace.step("a")), UNKNOWN_OWNER)
    store.inner._tables.steps[1].status = BatchStatus.UNKNOWN
    owners = store.inner._tables.owners
    owners[1] = evolve(owners[1], lease_until=0)
    for _ in range(2):
        with pytest.raises(OutcomeUnresolved):
            await launch(store, job(trace.step("a")))
    assert [one.status.value for one in store.executions] == ["UNKNOWN"]


async def test_leaving_a_runtime_ends_its_lease(store: Store, trace: Trace) -> None:
    await launch(store, job(trace.step("a")))
    (owner,) = store.dump().owners
    assert owner.lease_until == 0
