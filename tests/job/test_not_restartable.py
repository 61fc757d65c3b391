"""Jobs and steps that must not be attempted twice."""

from uuid import UUID

import pytest
import trio
import trio.testing

from tests.job.harness import (
    Store,
    Trace,
    job,
    launch,
    message_of,
    refusal,
    running,
    trio_clock,
)
from tests.job.test_takeover import UNKNOWN_OWNER, die
from triolet.actors import (
    BatchStatus,
    FailureCategory,
    NotRestartable,
    PartitionedStep,
    PlannerContext,
    Split,
    Step,
    StepContext,
    compile_job,
)
from triolet.actors.cli.exit_codes import exit_of
from triolet.actors.job.launch import launch_of
from triolet.actors.job.previewing import previewed
from triolet.storage.backend import run


def once(trace: Trace, until: int = 2) -> Step:
    """Make a step that fails in its first attempt and must not have a second one."""
    return Step("once", trace.failing("once", until), restartable=False)


async def test_a_job_that_failed_is_not_launched_again(
    store: Store, trace: Trace
) -> None:
    patient = job(Step("work", trace.failing("work")), restartable=False)
    await launch(store, patient)
    error = await refusal(store, patient)
    assert isinstance(error, NotRestartable)
    assert (error.job, error.execution_id, error.code) == ("demo", 1, "not_restartable")
    assert "--new' (anew=True)" in str(error)
    assert exit_of(error) == 3
    assert trace.calls == ["work"]


async def test_a_job_that_was_stopped_is_not_launched_again(store: Store) -> None:
    async def work(ctx: StepContext) -> None:
        runtime.stop()
        await trio.sleep_forever()

    patient = job(Step("work", work), restartable=False)
    async with running(store) as runtime:
        await runtime.launch(patient)
    assert isinstance(await refusal(store, patient), NotRestartable)


async def test_it_may_be_launched_anew_and_with_other_parameters(
    store: Store, trace: Trace
) -> None:
    patient = job(Step("work", trace.failing("work")), restartable=False)
    for _ in range(2):
        await launch(store, patient, anew=True)
    await launch(store, patient, {"day": "x"})
    assert trace.calls == ["work"] * 3


async def test_what_the_launch_is_given_counts(store: Store, trace: Trace) -> None:
    work = Step("work", trace.failing("work", until=2))
    await launch(store, job(work, restartable=False))
    report = await launch(store, job(work))
    assert report.status is BatchStatus.COMPLETED


async def test_the_attempt_of_a_dead_process_is_closed_and_not_followed(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    patient = job(trace.step("work"), restartable=False)
    await die(store, patient, UNKNOWN_OWNER)
    assert not store.settled()
    for _ in range(2):
        with pytest.raises(NotRestartable):
            await launch(store, patient)
    assert trace.calls == ["work"]
    assert store.settled()
    (execution,) = store.executions
    assert execution.failure is not None
    assert execution.failure.category is FailureCategory.STALE_RECOVERED


async def test_a_step_that_did_not_complete_fails_the_job_in_the_next_attempt(
    store: Store, trace: Trace
) -> None:
    patient = job(trace.step("first"), once(trace), trace.step("next"))
    await launch(store, patient)
    for _ in range(2):
        report = await launch(store, patient)
        assert message_of(report) == (
            "step 'once' began in an earlier attempt, is FAILED and not restartable: "
            "run the job anew with 'triolet run ... --new' (anew=True)"
        )
        assert report.failure is not None
        assert report.failure.code == "step_not_restartable"
        assert report.failure.where == "once"
        assert report.failure.category is FailureCategory.ILLEGAL_TRANSITION
    assert trace.calls == ["first", "once"]
    assert store.statuses == [("first", "COMPLETED"), ("once", "FAILED")]


async def test_a_step_that_completed_is_reused(store: Store, trace: Trace) -> None:
    last = Step("last", trace.failing("last", until=2))
    patient = job(trace.step("once", restartable=False), last)
    await launch(store, patient)
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["once", "last", "last"]


async def test_a_branch_ends_at_a_step_that_is_not_run_again(
    store: Store, trace: Trace
) -> None:
    split = Split("both", [once(trace), trace.step("b")], on_failure="drain_siblings")
    patient = job(trace.step("a"), split)
    await launch(store, patient)
    report = await launch(store, patient)
    assert report.failure is not None
    assert report.failure.code == "step_not_restartable"
    assert trace.calls == ["a", "once", "b"]


async def test_a_partition_is_not_worked_on_again(store: Store, trace: Trace) -> None:
    def plan(ctx: PlannerContext) -> list[tuple[str, dict[str, int]]]:
        return [("x", {}), ("y", {})]

    parts = PartitionedStep("parts", once(trace), plan, on_failure="drain_siblings")
    patient = job(parts)
    await launch(store, patient)
    report = await launch(store, patient)
    assert message_of(report).startswith(
        "the 1st partition of step 'parts' began in an"
    )
    assert report.failure is not None
    assert report.failure.code == "step_not_restartable"
    assert trace.calls == ["once", "once"]


async def test_a_preview_tells_that_the_job_would_fail(
    store: Store, trace: Trace
) -> None:
    patient = compile_job(job(once(trace)))
    await launch(store, job(once(trace)))
    previewing = previewed(launch_of(patient, {}, anew=False))
    question = next(previewing)
    with pytest.raises(StopIteration) as done:
        previewing.send(run(store, UUID(int=0), question))
    assert done.value.value.ends is BatchStatus.FAILED
    assert "not restartable" in done.value.value.why
