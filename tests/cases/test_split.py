"""Cases of the area split: branches that finish, fail, are stopped, and meet again."""

import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
import trio
import trio.testing

from tests.cases.world import World
from tests.job.harness import Trace
from triolet.actors import (
    COMPLETE,
    FAIL,
    BatchStatus,
    Cursor,
    DeciderContext,
    Decision,
    DefinitionError,
    Exit,
    Job,
    Node,
    RuntimeOptions,
    Split,
    SplitObservation,
    Step,
    StepContext,
    compile_job,
    open_runtime,
)
from triolet.storage.model.execution import Terminal

DEADLINE_SECS = 30


async def nothing(ctx: StepContext) -> None:
    await trio.lowlevel.checkpoint()


def side_by_side(*nodes: Node) -> Job:
    return Job("side", [Step("first", nothing), *nodes])


def nodes_with(status: str, world: World) -> list[str]:
    return [node for node, found in world.statuses() if found == status]


# What a restart runs


async def test_a_restart_runs_only_the_step_of_a_branch_that_had_failed(
    world: World, trace: Trace
) -> None:
    """C023."""
    seen: list[SplitObservation] = []

    def look(ctx: DeciderContext) -> str:
        assert ctx.split is not None
        seen.append(ctx.split)
        return "GO"

    branches = [[trace.step(f"{name}1"), trace.step(f"{name}2")] for name in "abc"]
    branches[1][1] = Step("b2", trace.failing("b2", until=2))
    job = side_by_side(
        Split("all", branches, on_failure="drain_siblings"),
        Decision("look", look, then={"GO": "last"}),
        trace.step("last"),
    )
    assert (await world.launch(job)).status is BatchStatus.FAILED
    before = [*trace.calls]
    assert (await world.launch(job)).status is BatchStatus.COMPLETED
    assert sorted(before) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert trace.calls == [*before, "b2", "last"]
    (split,) = seen
    steps = [step for branch in split.branches for step in branch.steps]
    assert [step.node for step in steps] == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert {step.status for step in steps} == {BatchStatus.COMPLETED}


# Room for all


@pytest.mark.parametrize("limit", [1, 2, 8])
async def test_no_more_bodies_run_than_allowed_and_who_waits_takes_no_room(
    world: World, limit: int
) -> None:
    """C025: with a single thread for all bodies, too."""
    lock = threading.Lock()
    now, most = 0, 0

    def body(ctx: StepContext) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    branches = [Step(f"branch {number}", body) for number in range(8)]
    job = side_by_side(Split("all", branches, max_parallel=limit))
    with trio.fail_after(DEADLINE_SECS):
        for threads in (1, limit):
            options = RuntimeOptions(threads_max=threads)
            async with open_runtime(world.url, options) as runtime:
                report = await runtime.launch(job, anew=True)
            assert report.status is BatchStatus.COMPLETED
            assert most <= min(threads, limit)


def nested(depth: int, **settings: Any) -> Split:
    """Make splits in a split, each with a step beside the next one."""
    inner: Node = Step("deepest", settings.get("work", nothing))
    if depth > 1:
        inner = nested(depth - 1, **settings)
    beside = Step(f"beside {depth}", settings.get("work", nothing))
    limit = settings.get("limit", 1)
    return Split(f"split {depth}", [inner, beside], max_parallel=limit)


@pytest.mark.parametrize("limit", [1, 2])
async def test_splits_that_wait_for_inner_ones_hold_no_thread(
    world: World, limit: int
) -> None:
    """C025: five deep, with fewer threads than splits that wait."""
    lock = threading.Lock()
    now = most = 0

    def body(ctx: StepContext) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    job = side_by_side(nested(5, work=body, limit=2))
    options = RuntimeOptions(threads_max=limit)
    with trio.fail_after(DEADLINE_SECS):
        async with open_runtime(world.url, options) as runtime:
            report = await runtime.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert len(report.steps) == 7
    assert most <= limit


@pytest.mark.parametrize("answers", ["RUN RUN", "RUN SKIP", "SKIP RUN", "SKIP SKIP"])
async def test_a_decider_may_be_the_first_node_of_a_branch(
    world: World, trace: Trace, answers: str
) -> None:
    """C029: exactly the steps that were chosen run."""
    left, right = answers.split()
    job = side_by_side(
        Split("both", [choosing("l", left, trace), choosing("r", right, trace)])
    )
    async with open_runtime(world.url) as runtime:
        report = await runtime.launch(job)
    assert report.status is BatchStatus.COMPLETED
    chosen = [name for name, answer in (("l", left), ("r", right)) if answer == "RUN"]
    assert trace.calls == chosen


def choosing(name: str, answer: str, trace: Trace) -> list[Node]:
    then: dict[str, str | Terminal] = {"RUN": name, "SKIP": COMPLETE}
    return [Decision(f"{name}?", lambda ctx: answer, then=then), trace.step(name)]


async def test_a_decider_that_raises_names_itself_and_settles_its_siblings(
    world: World, trace: Trace
) -> None:
    """C029: the cause is carried from the branch to the job."""

    def broken(ctx: DeciderContext) -> str:
        raise ValueError("no idea")

    bad: list[Node] = [Decision("l?", broken, then={"RUN": "l"}), trace.step("l")]
    both = Split(
        "both", [bad, choosing("r", "RUN", trace)], on_failure="drain_siblings"
    )
    async with open_runtime(world.url) as runtime:
        report = await runtime.launch(side_by_side(both))
    assert report.status is BatchStatus.FAILED
    assert report.failure is not None
    assert (report.failure.where, report.failure.message) == ("l?", "no idea")
    assert trace.calls == ["r"]
    assert nodes_with("STARTED", world) == []


@pytest.mark.parametrize(
    ("branches", "reason"),
    [
        (
            [Step(f"branch {number}", nothing) for number in range(10)],
            "the number of branches must be 2 to 8, not 10",
        ),
        (
            [Step("c", nothing), nested(5)],
            "holds a split, but splits may stand in each other at most 5 deep",
        ),
    ],
)
def test_what_a_split_cannot_hold_is_a_definition_error(
    branches: Iterable[Node], reason: str
) -> None:
    """C025: too many branches; splits too deep inside of one."""
    with pytest.raises(DefinitionError, match=reason):
        compile_job(side_by_side(Split("all", branches)))


# What branches come to


async def test_a_code_of_its_own_does_not_make_a_branch_a_failure(
    world: World, trace: Trace
) -> None:
    """C028."""

    async def without_data(ctx: StepContext) -> Exit:
        return Exit("NO_DATA")

    def look(ctx: DeciderContext) -> str:
        assert ctx.split is not None
        assert ctx.split.status is BatchStatus.COMPLETED
        return ctx.split.branches[1].exit_code

    job = side_by_side(
        Split("all", [Step("full", nothing), Step("empty", without_data)]),
        Decision("look", look, then={"NO_DATA": "rest", "*": FAIL}),
        trace.step("rest"),
    )
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["rest"]


async def test_an_error_in_a_branch_is_told_with_its_place_and_its_cause(
    world: World, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    """C029, its second half."""

    async def broken(ctx: StepContext) -> None:
        raise KeyError("rate of today")

    async def slow(ctx: StepContext) -> None:
        await trio.sleep(1)

    broken_one = [Step("fetch", nothing), Step("convert", broken)]
    branches = [broken_one, [Step("other", slow)]]
    split = Split("all", branches, max_parallel=2, on_failure="drain_siblings")
    report = await world.launch(side_by_side(split, trace.step("last")))
    assert report.status is BatchStatus.FAILED
    assert report.failure is not None
    assert report.failure.where == "convert"
    assert report.failure.type == "KeyError"
    assert "rate of today" in (report.failure.message or "")
    assert report.step("other").status is BatchStatus.COMPLETED
    assert trace.calls == []


async def test_stopped_branches_settle_the_split_and_run_at_the_next_launch(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """C030: one branch runs and one waits when the operator stops the job."""
    began: list[str] = []

    async def body(ctx: StepContext) -> None:
        began.append(ctx.node)
        if ctx.node == "running" and ctx.attempt == 1:
            await trio.sleep_forever()

    branches = [Step(name, body) for name in ("done", "running", "waiting")]
    job = side_by_side(Split("all", branches))
    async with open_runtime(world.url, world.options) as runtime:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(runtime.launch, job)
                await trio.sleep(1)
                await runtime.request_stop(1, actor="eve")
        detail = await runtime.show(1)
    assert detail.execution.status is BatchStatus.STOPPED
    assert nodes_with("STOPPED", world) == ["running"]
    assert began == ["done", "running"]
    assert (await world.launch(job)).status is BatchStatus.COMPLETED
    assert began == ["done", "running", "running", "waiting"]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_lost_table_under_one_of_eight_ends_all_with_that_cause(
    world: World, kind: str, request: pytest.FixtureRequest
) -> None:
    """C031."""
    url = world.url if kind == "sqlite" else request.getfixturevalue("postgres_url")

    async def wait(ctx: StepContext) -> None:
        if ctx.node != "branch 5" and ctx.attempt == 1:
            await trio.sleep_forever()

    def write(cursor: Cursor, ctx: StepContext) -> None:
        if ctx.node == "branch 5" and ctx.attempt > 1:
            cursor.execute("CREATE TABLE lost (node TEXT)")
        if ctx.node == "branch 5":
            cursor.execute("INSERT INTO lost VALUES ('branch 5')")

    branches = [Step(f"branch {number}", wait, write=write) for number in range(8)]
    job = side_by_side(Split("all", branches, max_parallel=8))
    with trio.fail_after(DEADLINE_SECS):
        async with open_runtime(url) as runtime:
            report = await runtime.launch(job)
            assert report.status is BatchStatus.FAILED
            assert report.failure is not None
            assert report.failure.where == "branch 5"
            assert "lost" in (report.failure.message or "")
            others = [step for step in report.steps if step.node != "branch 5"]
            assert [step.failure for step in others] == [None] * 8
            assert {step.status for step in others[1:]} == {BatchStatus.STOPPED}
            again = await runtime.launch(job)
    assert again.status is BatchStatus.COMPLETED
