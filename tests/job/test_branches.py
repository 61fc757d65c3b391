"""Branches with rules, side by side: deciders, stops and restarts within them."""

import pytest
import trio
import trio.testing

from tests.job.harness import Store, Trace, job, launch, message_of, running
from triolet.actors import (
    COMPLETE,
    FAIL,
    BatchStatus,
    DeciderContext,
    Decision,
    LaunchReport,
    Node,
    Split,
    Step,
    StepContext,
)


def slow(seconds: float) -> object:
    async def work(ctx: StepContext) -> None:
        await trio.sleep(seconds)
        ctx.state["slept"] = seconds

    return work


def sleeping(name: str, seconds: float = 5.0, **settings: object) -> Step:
    return Step(name, slow(seconds), **settings)  # type: ignore[arg-type]  # as the caller says


def by_node(report: LaunchReport) -> dict[str, str]:
    return {step.node: step.status.value for step in report.steps}


async def test_a_branch_decides_for_itself(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[DeciderContext] = []

    async def choose(ctx: DeciderContext) -> str:
        seen.append(ctx)
        await trio.sleep(1)
        slept = ctx.state_of(f"{ctx.node[0]}1")["slept"]
        return "MORE" if slept == 3 else "ENOUGH"

    then = {"MORE": "b3", "ENOUGH": COMPLETE}
    branches: list[list[Node]] = [
        [sleeping("b1", 3), Decision("b2", choose, then=then), trace.step("b3")],
        [
            sleeping("c1", 1),
            Decision("c2", choose, then={"ENOUGH": COMPLETE, "*": FAIL}),
        ],
    ]
    report = await launch(
        store,
        job(trace.step("a"), Split("s", branches, max_parallel=2), trace.step("z")),
    )
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b3", "z"]
    assert [step.node for step in report.steps] == ["a", "b1", "b3", "c1", "z"]
    assert [ctx.preceding and ctx.preceding.node for ctx in seen] == ["c1", "b1"]
    made = [one.source for one in store.dump().decisions]
    assert sorted(made) == ["b2", "c2", "s.join"]


async def test_a_routed_failure_stops_no_sibling(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    mended = Step("b1", trace.failing("b1"), then={"FAILED": "b2", "*": COMPLETE})
    branches: list[list[Node]] = [
        [mended, trace.step("b2")],
        [sleeping("c1"), trace.step("c2")],
    ]
    report = await launch(
        store, job(trace.step("a"), Split("s", branches, max_parallel=2))
    )
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b1", "b2", "c2"]
    assert by_node(report)["b1"] == "FAILED"
    assert store.settled()


async def test_a_branch_that_leads_to_fail_stops_its_siblings(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    bad = Decision("b2", lambda ctx: "BAD", then={"BAD": FAIL})
    branches: list[list[Node]] = [
        [trace.step("b1"), bad],
        [sleeping("c1"), trace.step("c2")],
    ]
    report = await launch(
        store, job(trace.step("a"), Split("s", branches, max_parallel=2))
    )
    assert message_of(report) == "'b2' led to FAIL"
    assert by_node(report) == {"a": "COMPLETED", "b1": "COMPLETED", "c1": "STOPPED"}


async def test_a_decider_that_raises_fails_its_branch(
    store: Store, trace: Trace
) -> None:
    def broken(ctx: DeciderContext) -> str:
        raise ValueError("no idea")

    branches: list[Node] = [
        Decision("b", broken, then={"*": COMPLETE}),
        trace.step("c"),
    ]
    split = Split("s", branches, then={"*": COMPLETE, "FAILED": "tidy"})
    report = await launch(store, job(trace.step("a"), split, trace.step("tidy")))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "tidy"]  # c was not begun


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_stop_reaches_the_decider_of_a_branch(
    store: Store,
    trace: Trace,
    autojump_clock: trio.testing.MockClock,
    how: str,
) -> None:
    waits = True

    async def ponder(ctx: DeciderContext) -> str:
        if waits:
            await trio.sleep(10)
        return "GO"

    branches: list[list[Node]] = [
        [trace.step("b1"), Decision("b2", ponder, then={"GO": "b3"}), trace.step("b3")],
        [sleeping("c1", 10 if waits else 0), trace.step("c2")],
    ]
    patient = job(
        trace.step("a"), Split("s", branches, max_parallel=2), trace.step("z")
    )
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, patient)
        await trio.sleep(3)
        if how == "stop":
            runtime.stop()
        else:
            nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(3)
    assert store.executions[0].status is BatchStatus.STOPPED
    assert sorted(store.statuses) == [
        ("a", "COMPLETED"),
        ("b1", "COMPLETED"),
        ("c1", "STOPPED"),
    ]
    waits = False
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b1", "b3", "c2", "z"]


async def test_an_answer_in_a_branch_is_kept_over_a_restart(
    store: Store, trace: Trace
) -> None:
    asked: list[int] = []

    def choose(ctx: DeciderContext) -> str:
        asked.append(ctx.attempt)
        return "GO"

    patient = job(
        trace.step("a"),
        Split(
            "s",
            [
                [
                    trace.step("b1"),
                    Decision("b2", choose, then={"GO": "b3"}),
                    Step("b3", trace.failing("b3", until=2)),
                ],
                trace.step("c"),
            ],
        ),
    )
    assert (await launch(store, patient)).status is BatchStatus.FAILED
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert asked == [1]
    assert trace.calls == ["a", "b1", "b3", "b3", "c"]
