"""Jobs of one step: the order of rows, listeners and ends, and what a report keeps."""

import pytest
import trio
import trio.testing

from tests.job.components import ListReader, RowWriter
from tests.job.harness import Store, Trace, launch, message_of, running
from triolet.actors import (
    BatchStatus,
    Chunk,
    ChunkJob,
    Exit,
    IncompatibleDefinition,
    Job,
    JobContext,
    JobListener,
    JobOutcome,
    OutcomeUnknown,
    Overridden,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
    TaskletJob,
)
from triolet.storage.commands import Advance, OpenExecution

COMPLETED, FAILED, STOPPED = (
    BatchStatus.COMPLETED,
    BatchStatus.FAILED,
    BatchStatus.STOPPED,
)


def job_listener(trace: Trace, name: str, broken: str = "") -> JobListener:
    def before(ctx: JobContext) -> None:
        trace.calls.append(f"{name} before job")
        if broken == "before":
            raise ValueError(f"{name} is broken")

    def after(ctx: JobContext, outcome: JobOutcome) -> None:
        trace.calls.append(f"{name} after job {outcome.status}")
        if broken == "after":
            raise ValueError(f"{name} is broken")

    return JobListener(name, before=before, after=after)


def step_listener(trace: Trace, name: str, broken: str = "") -> StepListener:
    def before(ctx: StepContext) -> None:
        trace.calls.append(f"{name} before step")
        if broken == "before":
            raise ValueError(f"{name} is broken")

    def after(ctx: StepContext, outcome: StepOutcome) -> None:
        trace.calls.append(f"{name} after step {outcome.status}")
        if broken == "after":
            raise ValueError(f"{name} is broken")

    return StepListener(name, before=before, after=after)


def tasklet_job(
    trace: Trace, work: object = None, *, job: str = "", step: str = ""
) -> TaskletJob:
    """Make a job with two listeners of each kind, of which the second may be broken."""
    return TaskletJob(
        "demo",
        Step(
            "work",
            work or trace.work("work"),  # type: ignore[arg-type]  # any tasklet
            listeners=[step_listener(trace, "a"), step_listener(trace, "b", step)],
        ),
        listeners=[job_listener(trace, "a"), job_listener(trace, "b", job)],
    )


async def test_listeners_nest_around_the_work(store: Store, trace: Trace) -> None:
    report = await launch(store, tasklet_job(trace))
    assert (report.status, report.exit_code) == (COMPLETED, "COMPLETED")
    assert trace.calls == [
        "a before job",
        "b before job",
        "a before step",
        "b before step",
        "work",
        "b after step COMPLETED",
        "a after step COMPLETED",
        "b after job COMPLETED",
        "a after job COMPLETED",
    ]
    assert report.overridden is None
    assert report.step("work").overridden is None
    assert store.settled()


async def test_without_listeners_its_life_is_two_commands(
    store: Store, trace: Trace
) -> None:
    await launch(store, TaskletJob("demo", trace.step("work")))
    opening, end = store.commands
    assert isinstance(opening, OpenExecution)
    assert opening.first is not None
    assert opening.definition.format == 1
    assert isinstance(end, Advance)
    assert end.finish is not None
    assert end.end is not None


async def test_the_row_of_the_step_comes_with_the_execution_and_before_listeners(
    store: Store, trace: Trace
) -> None:
    seen = []

    def before(ctx: JobContext) -> None:
        seen.append((ctx.attempt, store.statuses[-1]))

    listener = JobListener("look", before=before)
    step = Step("work", trace.failing("work", until=2))
    for _ in range(2):
        await launch(store, TaskletJob("demo", step, listeners=[listener]))
    assert seen == [(1, ("work", "STARTING")), (2, ("work", "STARTING"))]
    assert store.statuses == [("work", "FAILED"), ("work", "COMPLETED")]


async def test_a_failing_before_job_listener_fails_the_step_and_calls_no_other(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, tasklet_job(trace, job="before"))
    assert message_of(report) == "b is broken"
    assert trace.calls == ["a before job", "b before job"]
    step = report.step("work")
    assert (step.status, step.exit_code) == (FAILED, "FAILED")
    assert step.failure is not None
    assert step.failure.where == "b"
    assert store.statuses == [("work", "FAILED")]
    assert store.settled()


async def test_after_a_failing_before_step_listener_the_job_is_heard_to_its_end(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, tasklet_job(trace, step="before"))
    assert message_of(report) == "b is broken"
    assert trace.calls == [
        "a before job",
        "b before job",
        "a before step",
        "b before step",
        "b after job FAILED",
        "a after job FAILED",
    ]
    assert store.statuses == [("work", "FAILED")]


async def test_a_failing_after_job_listener_fails_the_job_and_not_its_step(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, tasklet_job(trace, job="after"))
    assert message_of(report) == "b is broken"
    assert report.overridden == Overridden(COMPLETED, "COMPLETED", None)
    assert store.statuses == [("work", "COMPLETED")]
    assert trace.calls[-1] == "a after job COMPLETED"
    again = await launch(store, tasklet_job(trace))
    assert again.status is COMPLETED
    assert again.step("work").reused
    assert trace.calls.count("work") == 1


async def test_a_failing_after_step_listener_is_told_beside_what_it_overrode(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, tasklet_job(trace, step="after"))
    assert message_of(report) == "b is broken"
    step = report.step("work")
    assert step.status is FAILED
    assert step.overridden == Overridden(COMPLETED, "COMPLETED", None)


async def test_the_failure_of_the_work_is_kept_when_a_listener_fails_too(
    store: Store, trace: Trace
) -> None:
    broken = tasklet_job(trace, trace.failing("work"), step="after", job="after")
    report = await launch(store, broken)
    step = report.step("work")
    assert step.failure is not None
    assert step.failure.message == "b is broken"
    assert step.overridden is not None
    assert step.overridden.status is FAILED
    assert step.overridden.failure is not None
    assert step.overridden.failure.message == "work is broken"
    assert message_of(report) == "b is broken"
    assert report.overridden is None


async def test_an_exit_code_that_a_listener_replaced_is_kept(store: Store) -> None:
    async def work(ctx: StepContext) -> Exit:
        return Exit("MANY")

    turn = StepListener("turn", after=lambda ctx, outcome: Exit("FEW"))
    report = await launch(store, TaskletJob("demo", Step("w", work, listeners=[turn])))
    assert report.status is COMPLETED
    assert report.step("w").exit_code == "FEW"
    assert report.step("w").overridden == Overridden(COMPLETED, "MANY", None)


async def test_a_custom_exit_completes_the_job(store: Store) -> None:
    async def work(ctx: StepContext) -> Exit:
        return Exit("PART")

    report = await launch(store, TaskletJob("demo", Step("work", work)))
    assert (report.status, report.exit_code) == (COMPLETED, "COMPLETED")
    assert report.step("work").exit_code == "PART"


@pytest.mark.parametrize("broken", ["after", ""])
async def test_an_unknown_outcome_is_never_overridden(
    store: Store, trace: Trace, broken: str
) -> None:
    async def work(ctx: StepContext) -> None:
        raise OutcomeUnknown

    report = await launch(store, tasklet_job(trace, work, step=broken, job=broken))
    assert report.status is BatchStatus.UNKNOWN
    assert report.step("work").status is BatchStatus.UNKNOWN
    assert report.overridden is None
    assert trace.calls[-1] == "a after job UNKNOWN"


async def stop_before(store: Store, trace: Trace, job: Job) -> None:
    async with running(store) as runtime:

        def stop(command: object) -> None:
            if isinstance(command, OpenExecution):
                runtime.stop()

        store.watch = stop
        report = await runtime.launch(job)
    store.watch = lambda command: None
    assert report.status is STOPPED


async def test_a_stop_before_it_begins_stops_job_and_step_without_their_code(
    store: Store, trace: Trace
) -> None:
    job = TaskletJob("demo", trace.step("work"), listeners=[job_listener(trace, "a")])
    await stop_before(store, trace, job)
    assert trace.calls == ["a after job STOPPED"]
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()
    await launch(store, job)
    assert trace.calls[1:] == ["a before job", "work", "a after job COMPLETED"]


async def test_a_stop_during_before_listeners_keeps_the_step_from_its_work(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def before(ctx: JobContext) -> None:
        trace.calls.append("before")
        await trio.sleep(60)

    job = TaskletJob(
        "demo", trace.step("work"), listeners=[JobListener("slow", before=before)]
    )
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, job)
        await trio.testing.wait_all_tasks_blocked()
        runtime.stop()
    assert trio.current_time() < 60
    assert trace.calls == ["before"]
    assert store.statuses == [("work", "STOPPED")]
    assert store.executions[0].status is STOPPED


async def test_cancelled_during_before_listeners_nothing_is_left_open(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def before(ctx: JobContext) -> None:
        await trio.sleep(60)

    job = TaskletJob(
        "demo", trace.step("work"), listeners=[JobListener("slow", before=before)]
    )
    with trio.move_on_after(1):
        await launch(store, job)
    assert store.statuses == [("work", "STOPPED")]
    assert store.settled()


async def test_a_start_limit_counts_although_no_definition_holds_it(
    store: Store, trace: Trace
) -> None:
    step = Step("work", trace.failing("work"), start_limit=1)
    await launch(store, TaskletJob("demo", step))
    report = await launch(store, TaskletJob("demo", step))
    assert "start" in message_of(report)
    assert trace.calls == ["work"]
    freed = TaskletJob("demo", Step("work", trace.work("freed")))
    assert (await launch(store, freed)).status is COMPLETED


async def test_a_chunk_job_continues_at_its_checkpoint(store: Store) -> None:
    broken = [1]

    def fail_once(item: int) -> int:
        if item == 3 and broken:
            broken.pop()
            raise ValueError("not yet")
        return item

    def job() -> ChunkJob:
        chunk = Chunk(ListReader([1, 2, 3, 4]), RowWriter(), fail_once, size=2)
        return ChunkJob("demo", Step("copy", chunk))

    first = await launch(store, job())
    assert first.status is FAILED
    assert store.rows() == [1, 2]
    second = await launch(store, job())
    assert second.status is COMPLETED
    assert store.rows() == [1, 2, 3, 4]
    assert second.counts.read == 4


async def test_a_flow_does_not_continue_it(store: Store, trace: Trace) -> None:
    step = Step("work", trace.failing("work"))
    await launch(store, TaskletJob("demo", step))
    with pytest.raises(IncompatibleDefinition) as caught:
        await launch(store, Job("demo", [step]))
    assert caught.value.changes[0] == "the job is a flow instead of a job of one step"


async def test_a_flow_may_be_declared_to_continue_it(
    store: Store, trace: Trace
) -> None:
    only = TaskletJob(
        "demo", trace.step("work"), listeners=[job_listener(trace, "a", "after")]
    )
    flow = Job("demo", [trace.step("fetch"), trace.step("more")])
    async with running(store) as runtime:
        first = await runtime.launch(only)
        detail = await runtime.show(first.execution_id)
        await runtime.upgrade(
            flow,
            from_revision=detail.execution.revision,
            renamed={"work": "fetch"},
        )
        report = await runtime.launch(flow)
    assert report.status is COMPLETED
    assert report.step("fetch").reused
    assert [call for call in trace.calls if "job" not in call] == ["work", "more"]


async def test_time_that_is_over_during_before_listeners_fails_job_but_not_its_step(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def before(ctx: JobContext) -> None:
        await trio.sleep(60)

    slow = JobListener("slow", before=before)
    job = TaskletJob("demo", trace.step("work"), listeners=[slow], timeout=5)
    report = await launch(store, job)
    assert report.status is FAILED
    assert report.failure is not None
    assert report.failure.code == "job_timed_out"
    assert store.statuses == [("work", "STOPPED")]
    assert trace.calls == []
    assert store.settled()
