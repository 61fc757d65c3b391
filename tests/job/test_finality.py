"""Whether a report says that no later launch can continue the job."""

from collections.abc import Callable

import pytest
import trio

from tests.job.harness import Store, Trace, job, launch, running
from triolet.actors import (
    STOP,
    BatchStatus,
    Decision,
    Job,
    JobStep,
    PartitionedStep,
    Split,
    Step,
    StepContext,
)


def fails(ctx: StepContext) -> None:
    raise ValueError("declined")


def works(ctx: StepContext) -> None:
    pass


def once(work: object = fails) -> Step:
    return Step("once", work, restartable=False)  # type: ignore[arg-type]  # of a test


def child(*steps: Step, name: str = "child", **settings: object) -> Job:
    return Job(name, [*steps], **settings)  # type: ignore[arg-type]  # of a test


def partitioned() -> PartitionedStep:
    return PartitionedStep("parts", once(), lambda ctx: [("a", {})])


OVER: dict[str, Callable[[], Job]] = {
    "job": lambda: job(Step("a", fails), restartable=False),
    "step": lambda: job(once()),
    "limit": lambda: job(Step("a", fails, start_limit=1)),
    "partition": lambda: job(partitioned()),
    "child": lambda: job(JobStep("run", child(Step("a", fails), restartable=False))),
    "its step": lambda: job(JobStep("run", child(once()))),
    "its limit": lambda: job(JobStep("run", child(Step("a", fails, start_limit=1)))),
    "its child": lambda: job(
        JobStep("run", child(JobStep("run", child(once(), name="inner"))))
    ),
    "in a branch": lambda: job(
        Step("first", works),
        Split(
            "both",
            [[JobStep("run", child(once()))], [Step("b", works)]],
            on_failure="drain_siblings",
        ),
    ),
}


@pytest.mark.parametrize("case", OVER)
async def test_a_later_launch_comes_to_the_same(store: Store, case: str) -> None:
    reports = [await launch(store, OVER[case]())]
    if case != "job":
        reports.append(await launch(store, OVER[case]()))
    # The first attempt of a step with a start limit is told only by the second one.
    told = reports if "limit" not in case else reports[1:]
    assert [report.status for report in reports] == [BatchStatus.FAILED] * len(reports)
    assert all(report.over for report in told)


@pytest.mark.parametrize("barred", ["job", "step"])
async def test_a_child_that_was_stopped_may_be_over_as_well(
    store: Store, barred: str
) -> None:
    async def wait(ctx: StepContext) -> None:
        runtime.stop()
        await trio.sleep_forever()

    inner = (
        child(Step("a", wait), restartable=False)
        if barred == "job"
        else child(once(wait))
    )
    async with running(store) as runtime:
        report = await runtime.launch(job(JobStep("run", inner)))
    assert (report.status, report.over) == (BatchStatus.STOPPED, True)


async def test_an_abandoned_child_ends_its_parent_for_good(
    store: Store, trace: Trace
) -> None:
    outer = job(JobStep("run", child(Step("a", trace.failing("a")))))
    async with running(store) as runtime:
        assert not (await runtime.launch(outer)).over
        await runtime.abandon(2, actor="eve", reason="it is over")
        assert (await runtime.launch(outer)).over
        assert not (await runtime.launch(outer, anew=True)).over


async def test_what_may_go_on_is_not_over(store: Store, trace: Trace) -> None:
    completed = once(works)
    inner = child(completed, Step("a", trace.failing("a", 2)))
    first = await launch(store, job(JobStep("run", inner)))
    second = await launch(store, job(JobStep("run", inner)))
    assert (first.status, first.over) == (BatchStatus.FAILED, False)
    assert (second.status, second.over) == (BatchStatus.COMPLETED, False)


async def test_a_failed_child_that_led_on_is_not_what_failed(store: Store) -> None:
    def choose(ctx: object) -> str:
        return "STOP"

    patient = job(
        JobStep("run", child(once()), then={"FAILED": "d", "*": "d"}),
        Decision("d", choose, then={"*": STOP}),
    )
    report = await launch(store, patient)
    assert (report.status, report.over) == (BatchStatus.STOPPED, False)


ON = {"FAILED": "mend", "*": "mend"}
ROUTES: dict[str, Callable[[Step], Job]] = {
    "a child": lambda mend: job(JobStep("run", child(once()), then=ON), mend),
    "a branch": lambda mend: job(
        Step("first", works),
        Split("both", [[once()], [Step("b", works)]], then=ON),
        mend,
    ),
    "a partition": lambda mend: job(
        PartitionedStep("parts", once(), lambda ctx: [("a", {})], then=ON), mend
    ),
}


@pytest.mark.parametrize("case", ROUTES)
async def test_a_failure_that_leads_on_leaves_the_job_a_chance(
    store: Store, trace: Trace, case: str
) -> None:
    def patient() -> Job:
        return ROUTES[case](Step("mend", trace.failing("mend", 2)))

    first = await launch(store, patient())
    assert (first.status, first.over) == (BatchStatus.FAILED, False)
    assert (await launch(store, patient())).status is BatchStatus.COMPLETED
