"""Splits: branches side by side, one result whatever order they end in."""

import pytest
import trio
import trio.testing
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.job.harness import Store, Trace, job, launch, running
from tests.storage.backends import Clock
from triolet.actors import (
    BatchStatus,
    DeciderContext,
    Decision,
    Exit,
    LaunchReport,
    OutcomeUnknown,
    Split,
    Step,
    StepContext,
    StoreUnusable,
)
from triolet.actors.testing.scheduling import seeded_scheduling
from triolet.storage.model.execution import TransitionKind


@define
class Side:
    """Makes steps that take some time, and tells how many run at once."""

    now: int = 0
    most: int = 0
    began: list[str] = field(factory=list)

    def step(self, name: str, seconds: float = 1.0, **ends: object) -> Step:
        async def work(ctx: StepContext) -> Exit | None:
            self.began.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                await trio.sleep(seconds)
            finally:
                self.now -= 1
            ctx.state["done"] = name
            if error := ends.get("fails"):
                raise error  # type: ignore[misc]  # what the test gave
            return Exit(str(ends["code"])) if "code" in ends else None

        return Step(name, work)


@pytest.fixture
def side() -> Side:
    return Side()


def split(*branches: object, **settings: object) -> Split:
    return Split("both", branches, **settings)  # type: ignore[arg-type]


def first(trace: Trace) -> Step:
    return trace.step("first")


def by_node(report: LaunchReport) -> dict[str, str]:
    return {step.node: step.status.value for step in report.steps}


async def test_branches_run_side_by_side_and_meet(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    report = await launch(
        store,
        job(
            first(trace),
            split([side.step("a1"), side.step("a2")], side.step("b"), max_parallel=2),
            trace.step("last"),
        ),
    )
    assert report.status is BatchStatus.COMPLETED
    assert trio.current_time() - began == pytest.approx(2.0)
    assert side.most == 2
    assert trace.calls == ["first", "last"]
    assert [step.node for step in report.steps] == ["first", "a1", "a2", "b", "last"]
    made = [(one.source, one.kind) for one in store.dump().decisions]
    assert made == [("both.join", TransitionKind.SPLIT_AGGREGATE)]


async def test_no_more_branches_run_at_once_than_allowed(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    branches = [side.step(name) for name in "abcdef"]
    both = split(*branches, max_parallel=2)
    report = await launch(store, job(first(trace), both))
    assert report.status is BatchStatus.COMPLETED
    assert side.most == 2
    assert sorted(side.began[:2]) == ["a", "b"]
    assert sorted(side.began) == list("abcdef")


@pytest.mark.parametrize("policy", ["cancel_siblings", "drain_siblings"])
async def test_a_failing_branch_stops_the_others_or_lets_them_run(
    store: Store,
    trace: Trace,
    side: Side,
    autojump_clock: trio.testing.MockClock,
    policy: str,
) -> None:
    both = split(
        side.step("a", 5),
        side.step("b", 1, fails=ValueError("no")),
        [side.step("c", 5), side.step("d")],
        side.step("e"),
        max_parallel=3,
        on_failure=policy,
    )
    patient = job(first(trace), both, trace.step("last"))
    report = await launch(store, patient)
    assert report.status is BatchStatus.FAILED
    assert report.failure is not None
    assert report.failure.where == "b"
    stopped = policy == "cancel_siblings"
    expected = {"first": "COMPLETED", "a": "STOPPED", "b": "FAILED", "c": "STOPPED"}
    if not stopped:
        expected |= {"a": "COMPLETED", "c": "COMPLETED", "d": "COMPLETED"}
        expected |= {"e": "COMPLETED"}
    assert by_node(report) == expected
    assert store.settled()
    assert "last" not in trace.calls


async def test_a_restart_runs_only_what_is_left(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    failing = Step("b", trace.failing("b", until=2))
    both = split(
        [side.step("a1"), side.step("a2")], failing, on_failure="drain_siblings"
    )
    patient = job(first(trace), both, trace.step("last"))
    assert (await launch(store, patient)).status is BatchStatus.FAILED
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert side.began == ["a1", "a2"]
    assert trace.calls == ["first", "b", "b", "last"]
    reused = {step.node for step in report.steps if step.reused}
    assert reused == {"first", "a1", "a2"}


async def test_the_join_routes_by_the_first_of_the_worst(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    both = split(
        side.step("a", 3, code="SLOW"),
        side.step("b", 1, code="QUICK"),
        max_parallel=2,
        then={"SLOW": "slow", "*": "other"},
    )
    report = await launch(
        store, job(first(trace), both, trace.step("other"), trace.step("slow"))
    )
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["first", "slow"]


async def test_a_decider_behind_a_split_sees_all_branches(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    seen: list[DeciderContext] = []

    def choose(ctx: DeciderContext) -> str:
        seen.append(ctx)
        return "GO"

    both = split([side.step("a"), side.step("c")], side.step("b", code="ODD"))
    last = Step("last", trace.failing("last", until=2))
    patient = job(
        first(trace), both, Decision("choose", choose, then={"GO": "last"}), last
    )
    await launch(store, patient)
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    (ctx,) = seen  # the answer to the same branches is kept
    assert ctx.preceding is None
    assert ctx.split is not None
    assert ctx.split.status is BatchStatus.COMPLETED
    assert [one.exit_code for one in ctx.split.branches] == ["COMPLETED", "ODD"]
    steps = [[step.node for step in one.steps] for one in ctx.split.branches]
    assert steps == [["a", "c"], ["b"]]
    assert ctx.split.branches[1].steps[0].state == {"done": "b"}
    assert ctx.state_of("c") == {"done": "c"}


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_stop_reaches_all_branches(
    store: Store,
    trace: Trace,
    side: Side,
    autojump_clock: trio.testing.MockClock,
    how: str,
) -> None:
    both = split(
        [side.step("a", 10), side.step("a2")],
        side.step("b", 10),
        side.step("c"),
        max_parallel=2,
    )
    patient = job(first(trace), both, trace.step("last"))
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, patient)
        await trio.sleep(3)
        if how == "stop":
            runtime.stop()
        else:
            nursery.cancel_scope.cancel()
    assert sorted(store.statuses) == [
        ("a", "STOPPED"),
        ("b", "STOPPED"),
        ("first", "COMPLETED"),
    ]
    assert store.executions[0].status is BatchStatus.STOPPED
    assert store.settled()
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED


async def test_an_unknown_branch_makes_the_job_unknown(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    both = split(
        side.step("a", 1, fails=OutcomeUnknown("the bank is silent")),
        side.step("b", 5),
        max_parallel=2,
    )
    report = await launch(store, job(first(trace), both))
    assert report.status is BatchStatus.UNKNOWN
    assert by_node(report) == {"first": "COMPLETED", "a": "UNKNOWN", "b": "STOPPED"}


async def test_a_start_limit_in_a_branch_is_a_failure(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    limited = Step("b", trace.failing("b"), start_limit=1)
    patient = job(first(trace), split(side.step("a"), limited))
    await launch(store, patient)
    report = await launch(store, patient)
    assert report.failure is not None
    assert report.failure.code == "start_limit_reached"
    assert trace.calls.count("b") == 1


async def test_a_store_that_fails_under_a_branch_ends_the_job_and_all_branches(
    store: Store, trace: Trace, side: Side, autojump_clock: trio.testing.MockClock
) -> None:
    both = split(side.step("a", 2), side.step("b", 9), max_parallel=2)
    patient = job(first(trace), both)
    store.faults[5] = StoreUnusable("gone")
    with pytest.raises(StoreUnusable):
        await launch(store, patient)
    assert store.settled()
    assert store.executions[0].status is BatchStatus.FAILED
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED


@given(
    st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=4, max_size=4),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 1 << 30),
)
@settings(max_examples=40, deadline=None)
def test_every_order_and_every_budget_comes_to_the_same(
    seconds: list[float], budget: int, failing: int, seed: int
) -> None:
    """The equivalence obligation: budget 1 in declared order is the measure."""

    def outcome(times: list[float], parallel: int) -> object:
        store, trace, side = Store(Clock()), Trace(), Side()
        branches = [
            side.step(
                name, time, **({"fails": ValueError("no")} if at == failing else {})
            )
            for at, (name, time) in enumerate(zip("abcd", times, strict=True))
        ]
        both = split(*branches, max_parallel=parallel, on_failure="drain_siblings")

        async def main() -> LaunchReport:
            return await launch(store, job(first(trace), both))

        with seeded_scheduling(seed):
            report = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
        dump = store.dump()
        return (
            report.status,
            report.exit_code,
            report.failure and (report.failure.where, report.failure.message),
            sorted((one.node, one.status, one.exit_code) for one in dump.steps),
            [(one.source, one.outcome, one.target) for one in dump.decisions],
        )

    assert outcome(seconds, budget) == outcome([1.0] * 4, 1)
