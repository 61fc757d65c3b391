"""The launch report: what came of an attempt, for callers and for people."""

import re

import pytest

from tests.job.components import copying, fail_once
from tests.job.harness import JOB, Store, Trace, job, launch, running, single
from triolet.actors import (
    STOP,
    BatchStatus,
    Counts,
    Decision,
    JobFailed,
    Parameter,
    Step,
    StepContext,
    StepNotReported,
)


async def test_the_report_agrees_with_the_store(store: Store, trace: Trace) -> None:
    report = await launch(
        store, job(trace.step("a"), Step("b", trace.failing("b"))), {"day": "mon"}
    )
    (execution,) = store.executions
    assert (report.job, report.instance_id) == (JOB, execution.instance_id)
    assert (report.execution_id, report.attempt) == (execution.id, execution.attempt)
    assert (report.status, report.exit_code) == (execution.status, execution.exit_code)
    assert (report.counts, report.failure) == (execution.counts, execution.failure)
    assert report.parameters == execution.parameters
    assert (report.run, report.restart_of, report.took_over) == (None, None, None)
    assert [
        (one.node, one.step_id, one.status, one.exit_code, one.counts, one.failure)
        for one in report.steps
    ] == [
        (one.node, one.id, one.status, one.exit_code, one.counts, one.failure)
        for one in store.steps
    ]


async def test_steps_of_earlier_attempts_are_reported_as_reused(
    store: Store, trace: Trace
) -> None:
    nodes = trace.step("a"), Step("b", trace.failing("b", until=2)), trace.step("c")
    first = await launch(store, job(*nodes))
    second = await launch(store, job(*nodes))
    assert [(one.node, one.reused) for one in first.steps] == [
        ("a", False),
        ("b", False),
    ]
    assert [(one.node, one.reused) for one in second.steps] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert second.step("a").step_id == first.step("a").step_id
    assert second.restart_of == first.execution_id
    assert second.attempt == 2


async def test_counts_are_the_sum_over_the_latest_rows_of_all_nodes(
    store: Store,
) -> None:
    one, _, _ = copying(range(10), size=5)
    two, _, writer = copying(range(6), size=3)
    writer.on_write = fail_once(4)
    nodes = Step("one", one), Step("two", two)
    first = await launch(store, job(*nodes))
    assert first.counts == Counts(
        read=13, processed=13, written=13, committed=3, rolled_back=1
    )
    second = await launch(store, job(*nodes))
    assert second.counts == Counts(
        read=16, processed=16, written=16, committed=4, rolled_back=1
    )
    assert store.executions[1].counts == second.counts


async def test_a_step_is_found_by_its_node(store: Store, trace: Trace) -> None:
    report = await launch(store, job(trace.step("a")))
    assert report.step("a").node == "a"
    with pytest.raises(KeyError):
        report.step("b")


async def test_a_step_that_is_not_in_the_report_is_refused_with_those_that_are(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, job(trace.step("a"), trace.step("b")))
    with pytest.raises(StepNotReported) as caught:
        report.step("c")
    assert str(caught.value) == (
        "the report has no step 'c': this attempt came by 'a' and 'b'"
    )


async def test_a_completed_job_raises_nothing_for_its_status(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, job(trace.step("a")))
    assert report.raise_for_status() is report


async def test_a_failed_job_raises_an_error_that_says_why(
    store: Store, trace: Trace
) -> None:
    report = await launch(store, job(Step("a", trace.failing("a"))))
    with pytest.raises(JobFailed) as caught:
        report.raise_for_status()
    assert re.fullmatch(
        r"job 'demo' \(execution 1\) FAILED: a: ValueError: a is broken "
        r"\[USER_COMPONENT\] at harness.py, line \d+",
        str(caught.value),
    )
    assert caught.value.status is BatchStatus.FAILED


async def test_a_stopped_job_raises_too(store: Store) -> None:
    choice = Decision("way", lambda ctx: "WAIT", then={"WAIT": STOP})
    report = await launch(store, job(choice))
    with pytest.raises(JobFailed, match=r"^job 'demo' \(execution 1\) STOPPED$"):
        report.raise_for_status()


async def test_a_failure_without_stored_text_is_still_reported(
    store: Store, trace: Trace
) -> None:
    report = await launch(
        store, job(Step("a", trace.failing("a"))), store_error_text=False
    )
    assert report.failure is not None
    assert (report.failure.type, report.failure.message) == ("ValueError", None)
    why = r"FAILED: a: ValueError raised by the tasklet \[USER_COMPONENT\]"
    with pytest.raises(JobFailed, match=why):
        report.raise_for_status()


async def test_neither_report_nor_store_shows_secret_values(store: Store) -> None:
    def work(ctx: StepContext) -> None:
        assert ctx.parameters["key"] == "hunter2"

    secret = job(
        Step("work", work),
        parameters=[Parameter("key", str, secret=True, identifying=False)],
    )
    report = await launch(store, secret, {"key": "hunter2"})
    assert report.status is BatchStatus.COMPLETED
    assert "hunter2" not in repr(report)
    assert "hunter2" not in repr(store.dump())
    (stored,) = store.executions[0].parameters
    assert (stored.name, stored.value, stored.secret) == ("key", "", True)


async def test_a_restart_asks_for_secret_values_again(store: Store) -> None:
    seen: list[object] = []

    def work(ctx: StepContext) -> None:
        seen.append(ctx.parameters["key"])
        if ctx.attempt == 1:
            raise ValueError("broken")

    secret = job(
        Step("work", work),
        parameters=[Parameter("key", str, secret=True, identifying=False)],
    )
    async with running(store) as runtime:
        for key in ("hunter2", "hunter3"):
            await runtime.launch(secret, key=key)
    assert seen == ["hunter2", "hunter3"]


async def test_the_store_lists_and_shows_what_the_report_says(
    store: Store, trace: Trace
) -> None:
    nodes = trace.step("a"), Step("b", trace.failing("b", until=2))
    async with running(store) as runtime:
        await runtime.launch(job(*nodes))
        report = await runtime.launch(job(*nodes))
        page = await runtime.list(job=JOB)
        detail = await runtime.show(report.execution_id)
        assert await runtime.list(job="another") == type(page)((), False)
    assert [line.execution.id for line in page.lines] == [2, 1]
    assert detail.execution.status is BatchStatus.COMPLETED
    assert [one.node for one in detail.reused] == ["a"]
    assert [one.node for one in detail.steps] == ["b"]


async def test_a_job_of_one_lambda_is_a_job(store: Store) -> None:
    report = await launch(store, single(lambda ctx: None))
    assert report.status is BatchStatus.COMPLETED
