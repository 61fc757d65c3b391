"""The state of a tasklet: committed, restored, read by later steps, or refused."""

import pytest

from tests.job.harness import Store, job, launch, message_of, running, single
from triolet.actors import BatchStatus, FailureCategory, Step, StepContext


async def test_state_is_committed_with_the_step_and_read_by_later_steps(
    store: Store,
) -> None:
    seen: list[object] = []

    def write(ctx: StepContext) -> None:
        ctx.state.update(rows=17, names=["a", None, 1.5])

    def read(ctx: StepContext) -> None:
        seen.append(ctx.state_of("write"))
        seen.append(ctx.state_of("nobody"))
        ctx.state_of("write")["rows"] = 0
        seen.append(ctx.state_of("write")["rows"])

    await launch(store, job(Step("write", write), Step("read", read)))
    assert seen == [{"rows": 17, "names": ["a", None, 1.5]}, {}, 17]


async def test_a_failing_tasklet_commits_no_state(store: Store) -> None:
    def work(ctx: StepContext) -> None:
        ctx.state["half"] = True
        raise ValueError("broken")

    def look(ctx: StepContext) -> None:
        assert ctx.state_of("work") == {}

    nodes = Step("work", work, then={"FAILED": "look", "*": "look"}), Step("look", look)
    report = await launch(store, job(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert [step.context for step in store.steps] == [None, None]


async def test_a_restart_finds_the_state_that_an_earlier_attempt_committed(
    store: Store,
) -> None:
    seen: list[object] = []

    async def work(ctx: StepContext) -> None:
        seen.append(dict(ctx.state))
        ctx.state["attempt"] = ctx.attempt
        if ctx.attempt == 1:
            runtime.stop(ctx.execution_id)
            await ctx.stop.wait()
        elif ctx.attempt == 2:
            raise ValueError("broken")

    async with running(store) as runtime:
        patient = job(Step("work", work, on_stop="cooperate"))
        reports = [await runtime.launch(patient) for _ in range(3)]
    assert [report.status.value for report in reports] == [
        "STOPPED",
        "FAILED",
        "COMPLETED",
    ]
    assert seen == [{}, {"attempt": 1}, {"attempt": 1}]


async def test_a_completed_step_that_runs_again_begins_without_state(
    store: Store,
) -> None:
    seen: list[object] = []

    def work(ctx: StepContext) -> None:
        seen.append(dict(ctx.state))
        ctx.state["done"] = True

    def check(ctx: StepContext) -> None:
        assert ctx.attempt > 1

    nodes = Step("work", work, allow_start_if_complete=True), Step("check", check)
    await launch(store, job(*nodes))
    report = await launch(store, job(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert seen == [{}, {}]


async def test_state_that_was_emptied_is_committed_as_empty(store: Store) -> None:
    async def work(ctx: StepContext) -> None:
        if ctx.attempt > 1:
            ctx.state.clear()
            return
        ctx.state["x"] = 1
        runtime.stop(ctx.execution_id)
        await ctx.stop.wait()

    seen: list[object] = []

    def look(ctx: StepContext) -> None:
        seen.append(ctx.state_of("work"))

    async with running(store) as runtime:
        emptying = job(Step("work", work, on_stop="cooperate"), Step("look", look))
        await runtime.launch(emptying)
        assert store.steps[0].context is not None
        await runtime.launch(emptying)
    assert seen == [{}]


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (
            {"x": object()},
            "the state of 'work'['x'] holds an object, which is not JSON",
        ),
        ({"x": float("nan")}, "NaN"),
        ({1: "x"}, "key of type int"),
        ({"x": {1, 2}}, "set"),
        ({"x": "a\0b"}, "U+0000"),
        ({"a\0b": 1}, "U+0000"),
        ({"x": "\ud800"}, "surrogate"),
        ({"x": "y" * 65_536}, "at most 65536 are allowed"),
        ({"x": nested(20)}, "deeper than 16 levels"),
        ({"x": nested(500)}, "deep"),
        ({"x": nested(900)}, "deep"),
        ({"x": nested(100_000)}, "deep"),
        (["not", "a", "dict"], "must be a dict"),
    ],
    ids=[
        "object",
        "nan",
        "key",
        "set",
        "zero",
        "zero key",
        "surrogate",
        "large",
        "deep",
        "deeper",
        "near the limit",
        "too deep to look",
        "list",
    ],
)
async def test_state_that_cannot_be_stored_fails_the_step_with_the_reason(
    store: Store, bad: object, reason: str
) -> None:
    async def work(ctx: StepContext) -> None:
        ctx.state = bad  # type: ignore[assignment]  # that is the point

    report = await launch(store, single(work))
    assert reason in message_of(report)
    assert report.failure is not None
    assert report.failure.category is FailureCategory.SERIALIZATION
    assert store.settled()
