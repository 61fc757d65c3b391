"""Jobs whose time is over: whatever runs is brought to its end, and nothing follows."""

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from tests.job.components import copying
from tests.job.harness import Store, Trace, job, launch, message_of, running
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    DeciderContext,
    Decision,
    Event,
    EventKind,
    FailureCategory,
    JobContext,
    JobListener,
    JobOutcome,
    LaunchReport,
    Node,
    OutcomeUnknown,
    PartitionedStep,
    PlannerContext,
    Split,
    Step,
    StepContext,
    StepListener,
)


async def sleeping(ctx: object) -> None:
    await trio.sleep(3600)


def timed_out(report: LaunchReport) -> None:
    """Check that the job failed because its time was over."""
    assert message_of(report).startswith("job 'demo' took longer than its timeout of 5")
    assert report.failure is not None
    assert report.failure.code == "job_timed_out"
    assert report.failure.category is FailureCategory.TIMEOUT
    assert report.failure.where == "demo"


async def test_the_running_step_is_stopped_and_the_job_has_failed(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    events: list[Event] = []
    patient = job(trace.step("a"), Step("b", sleeping), trace.step("c"), timeout=5)
    report = await launch(store, patient, events=events.append)
    timed_out(report)
    assert message_of(report) == (
        "job 'demo' took longer than its timeout of 5 s and was brought to an end: "
        "launch the job again, which gives it the whole time anew"
    )
    assert trio.current_time() == 5
    assert trace.calls == ["a"]
    assert store.statuses == [("a", "COMPLETED"), ("b", "STOPPED")]
    (execution,) = store.executions
    assert (execution.status, execution.exit_code) == (BatchStatus.FAILED, "FAILED")
    kinds = [event.kind for event in events]
    assert kinds.count(EventKind.JOB_TIMED_OUT) == 1
    assert EventKind.STOP_REQUESTED not in kinds
    (event,) = [one for one in events if one.kind is EventKind.JOB_TIMED_OUT]
    assert event.seconds == 5


async def test_a_job_that_ends_in_time_is_left_alone(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(2)

    async with running(store) as runtime:
        report = await runtime.launch(job(Step("a", work), Step("b", work), timeout=5))
        await trio.sleep(100)
    assert report.status is BatchStatus.COMPLETED


async def test_a_relaunch_goes_on_with_the_whole_time(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(4)

    patient = job(Step("a", work), Step("b", work), timeout=5)
    timed_out(await launch(store, patient))
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert report.step("a").reused
    assert trio.current_time() == 9


async def test_a_cooperating_tasklet_has_its_grace(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    work = Step("a", sleeping, on_stop="cooperate", grace=7)
    timed_out(await launch(store, job(work, timeout=5)))
    assert trio.current_time() == 12


async def test_a_step_that_completes_nevertheless_is_not_run_again(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    chunk, reader, _ = copying(range(30))

    async def process(item: int) -> int:
        await trio.sleep(0.3)
        return item

    patient = job(
        Step("copy", type(chunk)(reader, chunk.writer, process, size=30)),
        trace.step("next"),
        timeout=5,
    )
    timed_out(await launch(store, patient))
    assert store.statuses == [("copy", "COMPLETED")]
    assert trace.calls == []
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == list(range(30))


async def test_the_branches_of_a_split_are_stopped(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    branches = [
        [Step("b", sleeping), trace.step("never")],
        [Step("c", sleeping, on_stop="cooperate", grace=7)],
        [trace.step("d")],
    ]
    split = Split("both", branches, max_parallel=2)
    patient = job(trace.step("a"), split, trace.step("e"), timeout=5)
    timed_out(await launch(store, patient))
    assert trio.current_time() == 12
    assert trace.calls == ["a"]
    assert store.statuses == [
        ("a", "COMPLETED"),
        ("b", "STOPPED"),
        ("c", "STOPPED"),
    ]


def three(ctx: object) -> list[tuple[str, dict[str, Any]]]:
    return [(key, {}) for key in "abc"]


async def test_the_workers_of_a_partitioned_step_are_stopped(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def share(ctx: StepContext) -> None:
        assert ctx.partition is not None
        await trio.sleep({"a": 1, "b": 3600, "c": 3600}[ctx.partition.key])

    parts = PartitionedStep("parts", share, three, max_workers=2)
    report = await launch(store, job(parts, trace.step("next"), timeout=5))
    timed_out(report)
    assert trio.current_time() == 5
    assert report.step("parts").status is BatchStatus.STOPPED
    assert [one.status.value for one in report.partitions] == [
        "COMPLETED",
        "STOPPED",
        "STOPPED",
    ]


async def slow_answer(ctx: DeciderContext) -> str:
    await trio.sleep(3600)
    return "GO"


async def slow_plan(ctx: PlannerContext) -> list[tuple[str, dict[str, Any]]]:
    await trio.sleep(3600)
    return []


@pytest.mark.parametrize(
    "node",
    [
        Decision("way", slow_answer, then={"GO": COMPLETE}),
        PartitionedStep("way", sleeping, slow_plan),
        Step("way", sleeping, listeners=[StepListener("slow", before=sleeping)]),
    ],
    ids=["decider", "planner", "listener"],
)
async def test_other_code_is_cancelled(
    store: Store, node: Node, autojump_clock: trio.testing.MockClock
) -> None:
    timed_out(await launch(store, job(node, timeout=5)))
    assert trio.current_time() == 5
    assert store.settled()


async def test_a_before_job_listener_is_cancelled_and_no_node_begins(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    listener = JobListener("slow", before=sleeping)
    patient = job(trace.step("a"), timeout=5, listeners=[listener])
    timed_out(await launch(store, patient))
    assert trio.current_time() == 5
    assert trace.calls == []
    assert store.steps == ()


async def test_after_job_listeners_see_the_failure_and_have_their_time(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[JobOutcome] = []

    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        await trio.sleep(100)
        seen.append(outcome)

    listener = JobListener("all", after=after)
    patient = job(Step("a", sleeping), timeout=5, listeners=[listener])
    timed_out(await launch(store, patient))
    assert trio.current_time() == 105
    (outcome,) = seen
    assert outcome.status is BatchStatus.FAILED
    assert "timeout of 5 s" in (outcome.message or "")


async def test_time_that_after_job_listeners_take_is_not_limited(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    async def after(ctx: JobContext, outcome: JobOutcome) -> None:
        await trio.sleep(100)

    listener = JobListener("all", after=after)
    patient = job(trace.step("a"), timeout=5, listeners=[listener])
    events: list[Event] = []
    report = await launch(store, patient, events=events.append)
    assert report.status is BatchStatus.COMPLETED
    assert EventKind.JOB_TIMED_OUT not in [event.kind for event in events]


async def raising(ctx: StepContext) -> None:
    await ctx.stop.wait()
    raise ValueError("could not tidy up")


async def unsure(ctx: StepContext) -> None:
    await ctx.stop.wait()
    raise OutcomeUnknown("did it arrive?")


@pytest.mark.parametrize(
    ("work", "status"),
    [(raising, BatchStatus.FAILED), (unsure, BatchStatus.UNKNOWN)],
)
async def test_what_a_step_came_to_by_itself_stays(
    store: Store,
    autojump_clock: trio.testing.MockClock,
    work: Callable[[StepContext], Any],
    status: BatchStatus,
) -> None:
    report = await launch(store, job(Step("a", work, on_stop="cooperate"), timeout=5))
    assert report.status is status
    assert report.failure is not None
    assert report.failure.code != "job_timed_out"
    assert store.statuses == [("a", status.value)]


async def test_a_failure_does_not_lead_on_when_the_time_is_over(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    then = {"FAILED": "tidy", "*": COMPLETE}
    step = Step("a", raising, on_stop="cooperate", then=then)
    timed_out(await launch(store, job(step, trace.step("tidy"), timeout=5)))
    assert trace.calls == []


async def test_of_two_limits_the_one_that_is_over_first_counts(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    step = Step("a", sleeping, timeout=4, on_stop="cooperate", grace=7)
    report = await launch(store, job(step, timeout=5))
    assert trio.current_time() == 11
    assert store.statuses == [("a", "FAILED")]
    assert "step 'a' took longer" in message_of(report)

    step = Step("a", sleeping, timeout=6, on_stop="cooperate", grace=7)
    timed_out(await launch(store, job(step, timeout=5)))
    assert store.statuses[1] == ("a", "STOPPED")


@pytest.mark.parametrize("stop_at", [4, 6])
async def test_whichever_comes_first_of_a_stop_and_the_time_wins(
    store: Store, autojump_clock: trio.testing.MockClock, stop_at: float
) -> None:
    step = Step("a", sleeping, on_stop="cooperate", grace=10)
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(stop_at)
            runtime.stop()

        nursery.start_soon(stop)
        report = await runtime.launch(job(step, timeout=5))
    assert trio.current_time() == min(stop_at, 5) + 10
    if stop_at < 5:
        assert report.status is BatchStatus.STOPPED
    else:
        timed_out(report)


async def test_whoever_listens_is_told_of_work_that_does_not_heed_the_time(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    told: list[float] = []

    def sink(event: Event) -> None:
        if event.kind is EventKind.STOP_WAITING:
            told.append(trio.current_time())

    async def work(ctx: StepContext) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)

    timed_out(await launch(store, job(Step("a", work), timeout=5), events=sink))
    assert told == [6]


async def test_a_cancelled_scope_around_the_launch_stops_the_job(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(store) as runtime:
        with trio.move_on_after(3):
            await runtime.launch(job(Step("a", sleeping), timeout=5))
        await trio.sleep(100)
    assert [one.status.value for one in store.executions] == ["STOPPED"]
