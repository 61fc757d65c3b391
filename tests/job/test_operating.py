"""What operators do through a runtime."""

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.harness import Crash, Store, Trace, job, launch, running, trio_clock
from triolet.actors import (
    ActionNotAllowed,
    AlreadyRunning,
    BatchStatus,
    Directive,
    EvidenceChanged,
    ExecutionNotFound,
    InstanceAbandoned,
    Job,
    OutcomeUnknown,
    OutcomeUnresolved,
    Step,
    StepContext,
)
from triolet.actors.kernel.liveness import this_process
from triolet.storage.commands import OwnerFacts


def unsure(ctx: StepContext) -> None:
    raise OutcomeUnknown("the bank did not answer")


async def test_what_failed_is_abandoned_and_stays_so(
    store: Store, trace: Trace
) -> None:
    patient = job(Step("a", trace.failing("a")))
    await launch(store, patient)
    async with running(store) as runtime:
        done = await runtime.abandon(1, actor="eve", reason="no longer needed")
        assert done.operation.result is BatchStatus.ABANDONED
        history = await runtime.operations(1)
        assert history.operations == (done.operation,)
        with pytest.raises(InstanceAbandoned):
            await runtime.launch(patient)


async def test_the_same_operation_id_does_it_once(store: Store, trace: Trace) -> None:
    await launch(store, job(Step("a", trace.failing("a"))))
    async with running(store) as runtime:
        first = await runtime.abandon(1, actor="eve", operation_id="mine")
        again = await runtime.abandon(1, actor="eve", operation_id="mine")
    assert (first.replayed, again.replayed) == (False, True)
    assert first.operation == again.operation


async def test_each_operation_has_an_id_of_its_own(store: Store, trace: Trace) -> None:
    await launch(store, job(Step("a", trace.failing("a"))))
    async with running(store) as runtime:
        for _ in range(2):
            await runtime.request_stop(1, actor="eve")
        assert len((await runtime.operations(1)).operations) == 2


async def test_an_unknown_outcome_blocks_until_it_is_recovered(
    store: Store, trace: Trace
) -> None:
    calls: list[int] = []

    def at_first_unsure(ctx: StepContext) -> None:
        calls.append(ctx.attempt)
        if ctx.attempt == 1:
            unsure(ctx)

    patient = job(Step("a", at_first_unsure))
    report = await launch(store, patient)
    assert report.status is BatchStatus.UNKNOWN
    async with running(store) as runtime:
        with pytest.raises(OutcomeUnresolved, match="triolet recover 1"):
            await runtime.launch(patient)
        (seen,) = (await runtime.diagnose()).unresolved
        assert [step.node for step in seen.steps] == ["a"]
        assert seen.evidence.unknown_commit
        done = await runtime.recover(1, Directive.MARK_FAILED, seen=seen, actor="eve")
        assert done.operation.result is BatchStatus.FAILED
        report = await runtime.launch(patient)
    assert report.status is BatchStatus.COMPLETED
    assert calls == [1, 2]


async def test_a_recovery_of_what_has_changed_is_refused(store: Store) -> None:
    await launch(store, job(Step("a", unsure)))
    async with running(store) as runtime:
        (seen,) = (await runtime.diagnose(1)).unresolved
        other = evolve(seen, evidence=evolve(seen.evidence, attempt=7))
        with pytest.raises(EvidenceChanged):
            await runtime.recover(1, Directive.ABANDON, seen=other, actor="eve")


async def test_what_has_ended_is_not_recovered_and_the_attempt_is_on_record(
    store: Store, trace: Trace
) -> None:
    await launch(store, job(trace.step("a")))
    async with running(store) as runtime:
        with pytest.raises(ActionNotAllowed, match="nothing can be done"):
            await runtime.recover(1, Directive.MARK_FAILED, actor="eve")
        (operation,) = (await runtime.operations(1)).operations
    assert operation.refusal == ActionNotAllowed(
        operation.action, 1, BatchStatus.COMPLETED
    )


async def test_what_does_not_exist_is_not_found(store: Store) -> None:
    async with running(store) as runtime:
        with pytest.raises(ExecutionNotFound):
            await runtime.recover(7, Directive.ABANDON, actor="eve")
        with pytest.raises(ExecutionNotFound):
            await runtime.request_stop(7, actor="eve")


async def test_what_runs_here_is_not_recovered_even_when_the_lease_ran_out(
    store: Store,
) -> None:
    refusals: list[AlreadyRunning] = []
    async with running(store) as runtime:

        async def work(ctx: StepContext) -> None:
            owners = store.inner._tables.owners
            owners[1] = evolve(owners[1], lease_until=0)
            with pytest.raises(AlreadyRunning) as caught:
                await runtime.recover(1, Directive.MARK_FAILED, actor="eve")
            refusals.append(caught.value)

        report = await runtime.launch(job(Step("a", work)))
    assert report.status is BatchStatus.COMPLETED
    assert len(refusals) == 1


async def orphaned(store: Store, patient: Job, owner: OwnerFacts) -> None:
    """Let a process with these facts die in the midst of the job."""
    store.faults[len(store.commands) + 2] = Crash()
    with pytest.raises(BaseExceptionGroup):
        await launch(store, patient)
    owners = store.inner._tables.owners
    owners[len(owners)] = evolve(owners[len(owners)], facts=owner)


async def test_of_a_dead_process_no_lease_is_awaited(
    store: Store, trace: Trace
) -> None:
    if this_process().process_start is None:
        pytest.skip("this platform cannot prove that a process is dead")
    dead = evolve(this_process(), pid=(1 << 22) + 1)
    await orphaned(store, job(trace.step("a")), dead)
    async with running(store) as runtime:
        done = await runtime.recover(1, Directive.TAKE_OVER, actor="eve")
    assert done.operation.result is BatchStatus.FAILED
    assert store.settled()


async def test_of_any_other_process_the_lease_is_awaited(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    await orphaned(store, job(trace.step("a")), OwnerFacts(host="mill", pid=42))
    async with running(store) as runtime:
        with pytest.raises(AlreadyRunning, match="process 42 on host mill"):
            await runtime.recover(1, Directive.TAKE_OVER, actor="eve")
        await trio.sleep(31)
        await runtime.recover(1, Directive.TAKE_OVER, actor="eve")
    assert store.settled()
