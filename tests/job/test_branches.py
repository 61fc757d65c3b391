"""Branches with rules, side by side: deciders, stops and restarts within them."""

import pytest
import trio
import trio.testing
from attrs import define, field

from tests.job.harness import Store, Trace, job, launch, message_of, running
from triolet.actors import (
    COMPLETE,
    FAIL,
    STOP,
    BatchStatus,
    DeciderContext,
    Decision,
    LaunchReport,
    Node,
    PartitionedStep,
    PlannerContext,
    Split,
    Step,
    StepContext,
    StoreUnusable,
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


# Splits in branches


def inner(*branches: object, **settings: object) -> Split:
    return Split("i", branches, **{"max_parallel": len(branches), **settings})  # type: ignore[arg-type]  # as the caller says


async def test_an_inner_failure_stops_the_inner_siblings_only(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    broken = Step("i1", trace.failing("i1"))
    mending = inner(broken, sleeping("i2"), then={"FAILED": "b", "*": COMPLETE})
    branches: list[list[Node]] = [[mending, trace.step("b")], [sleeping("c", 3)]]
    report = await launch(
        store, job(trace.step("a"), Split("s", branches, max_parallel=2))
    )
    assert report.status is BatchStatus.COMPLETED
    assert by_node(report) == {
        "a": "COMPLETED",
        "i1": "FAILED",
        "i2": "STOPPED",
        "b": "COMPLETED",
        "c": "COMPLETED",
    }


@pytest.mark.parametrize("policy", ["cancel_siblings", "drain_siblings"])
async def test_an_inner_failure_that_fails_its_branch_meets_the_outer_policy(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock, policy: str
) -> None:
    broken = Step("i1", trace.failing("i1"))
    failing = inner(broken, sleeping("i2"), on_failure="drain_siblings")
    branches: list[list[Node]] = [
        [failing, trace.step("b")],
        [sleeping("c1", 6), trace.step("c2")],
    ]
    split = Split("s", branches, max_parallel=2, on_failure=policy)
    report = await launch(store, job(trace.step("a"), split))
    assert message_of(report) == "i1 is broken"
    others = {"a": "COMPLETED", "i1": "FAILED", "i2": "COMPLETED"}
    if policy == "cancel_siblings":
        assert by_node(report) == {**others, "c1": "STOPPED"}
    else:
        assert by_node(report) == {**others, "c1": "COMPLETED", "c2": "COMPLETED"}
    assert store.settled()


async def test_an_outer_failure_stops_the_inner_split(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    branches: list[list[Node]] = [
        [inner(sleeping("i1"), [sleeping("i2", 1), sleeping("i3")]), trace.step("b")],
        [sleeping("c1", 2), Step("c2", trace.failing("c2", until=2))],
    ]
    patient = job(trace.step("a"), Split("s", branches, max_parallel=2))
    report = await launch(store, patient)
    assert message_of(report) == "c2 is broken"
    assert by_node(report) == {
        "a": "COMPLETED",
        "i1": "STOPPED",
        "i2": "COMPLETED",
        "i3": "STOPPED",
        "c1": "COMPLETED",
        "c2": "FAILED",
    }
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert [step.node for step in report.steps if step.reused] == ["a", "i2", "c1"]


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_stop_reaches_the_innermost_branches(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock, how: str
) -> None:
    deep = Split("j", [sleeping("j1"), sleeping("j2")], max_parallel=2)
    branches: list[list[Node]] = [
        [inner(sleeping("i1"), [deep, trace.step("i2")])],
        [sleeping("c")],
    ]
    patient = job(trace.step("a"), Split("s", branches, max_parallel=2))
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, patient)
        await trio.sleep(3)
        (actor,) = [one for one in runtime.inspect().children if one.kind == "job"]
        assert [str(line) for line in actor.lines()] == [
            "job demo (execution 1): running",
            "  split s: running",
            "    branch i: running",
            "      split i: running",
            "        branch i1: running",
            "          step i1: running",
            "        branch j: running",
            "          split j: running",
            "            branch j1: running",
            "              step j1: running",
            "            branch j2: running",
            "              step j2: running",
            "    branch c: running",
            "      step c: running",
        ]
        if how == "stop":
            runtime.stop()
        else:
            nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(3)
    assert store.executions[0].status is BatchStatus.STOPPED
    stopped = sorted(node for node, status in store.statuses if status == "STOPPED")
    assert stopped == ["c", "i1", "j1", "j2"]
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "i2"]


async def test_a_store_that_fails_under_an_inner_branch_ends_everything(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    branches: list[list[Node]] = [
        [inner(sleeping("i1", 2), sleeping("i2", 9))],
        [sleeping("c", 9)],
    ]
    patient = job(trace.step("a"), Split("s", branches, max_parallel=2))
    store.faults[6] = StoreUnusable("gone")
    with pytest.raises(StoreUnusable):
        await launch(store, patient)
    assert store.settled()
    assert store.executions[0].status is BatchStatus.FAILED
    assert (await launch(store, patient)).status is BatchStatus.COMPLETED


# Partitioned steps in branches


@define
class Shares:
    """A planner and a worker; one partition fails in the first attempt."""

    plans: list[str] = field(factory=list)
    did: list[str] = field(factory=list)

    def plan(self, ctx: PlannerContext) -> list[tuple[str, dict[str, str]]]:
        self.plans.append(ctx.node)
        return [(f"{ctx.node}-{number}", {}) for number in range(3)]

    async def work(self, ctx: StepContext) -> None:
        assert ctx.partition is not None
        await trio.sleep(1)
        self.did.append(ctx.partition.key)
        if ctx.partition.key == "p-1" and ctx.attempt == 1:
            raise ValueError("broken the first time")

    def step(self, node: str, **settings: object) -> PartitionedStep:
        return PartitionedStep(node, self.work, self.plan, **settings)  # type: ignore[arg-type]  # as the caller says


@pytest.fixture
def shares() -> Shares:
    return Shares()


async def test_partitions_in_branches_are_each_done_once(
    store: Store,
    trace: Trace,
    shares: Shares,
    autojump_clock: trio.testing.MockClock,
) -> None:
    branches: list[list[Node]] = [
        [trace.step("b1"), shares.step("p"), trace.step("b2")],
        [shares.step("q"), trace.step("c")],
    ]
    patient = job(
        trace.step("a"),
        Split("s", branches, max_parallel=2, on_failure="drain_siblings"),
        trace.step("z"),
    )
    report = await launch(store, patient)
    assert message_of(report) == "broken the first time"
    keys = [f"{node}-{number}" for node in "pq" for number in range(3)]
    assert [one.key for one in report.partitions] == keys
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert sorted(shares.plans) == ["p", "q"]
    assert sorted(shares.did) == sorted([*keys, "p-1"])
    assert trace.calls == ["a", "b1", "c", "b2", "z"]
    assert [one.key for one in report.partitions if not one.reused] == ["p-1"]


@pytest.mark.parametrize("how", ["stop", "cancel", "sibling"])
async def test_what_ends_a_branch_stops_its_partitions(
    store: Store,
    trace: Trace,
    shares: Shares,
    autojump_clock: trio.testing.MockClock,
    how: str,
) -> None:
    failing: list[Node] = [sleeping("c1", 1.5), Step("c2", trace.failing("c2", 2))]
    branches: list[list[Node]] = [
        [shares.step("q", max_workers=1), trace.step("b")],
        failing if how == "sibling" else [sleeping("c1", 9)],
    ]
    patient = job(trace.step("a"), Split("s", branches, max_parallel=2))
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, patient)
        await trio.sleep(1.5)
        (actor,) = [one for one in runtime.inspect().children if one.kind == "job"]
        assert [str(line) for line in actor.lines()][2:5] == [
            "    branch q: running",
            "      partition manager q: running",
            "        partition worker partition 2: running",
        ]
        if how == "stop":
            runtime.stop()
        if how == "cancel":
            nursery.cancel_scope.cancel()
    assert store.settled()
    assert ("q", "STOPPED") in store.statuses
    assert shares.did == ["q-0"]
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert shares.plans == ["q"]
    assert shares.did == ["q-0", "q-1", "q-2"]


async def test_a_planner_that_fails_fails_its_branch(
    store: Store, trace: Trace
) -> None:
    def broken(ctx: PlannerContext) -> object:
        raise ValueError("no plan")

    parts = PartitionedStep(
        "p", lambda ctx: None, broken, then={"FAILED": "b", "*": STOP}
    )
    split = Split("s", [[parts, trace.step("b")], trace.step("c")])
    report = await launch(store, job(trace.step("a"), split))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b", "c"]
    assert by_node(report)["p"] == "FAILED"
