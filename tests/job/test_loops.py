"""Loops as user code sees them: visits, states, keys, chunks, partitions."""

from typing import Any

import pytest

from tests.job.components import copying
from tests.job.harness import Store, job, launch, message_of, running
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    ChunkKey,
    DeciderContext,
    Decision,
    Exit,
    Node,
    PartitionedStep,
    PlannerContext,
    Split,
    Step,
    StepContext,
    compile_job,
)

TURN = {"AGAIN": "a", "OUT": COMPLETE}


def laps(count: int) -> Decision:
    """Lead back to ``a`` until it has been done so many times."""

    def decide(ctx: DeciderContext) -> str:
        return "AGAIN" if ctx.visit < count else "OUT"

    return Decision("turn", decide, then=TURN, visit_limit=10)


async def test_a_tasklet_knows_which_visit_it_is_and_what_the_one_before_left() -> None:
    store, seen = Store(), []

    def work(ctx: StepContext) -> None:
        assert ctx.state == {}
        seen.append((ctx.visit, ctx.step_attempt, ctx.state_of("a")))
        before = ctx.state_of(ctx.node).get("sum", 0)
        assert isinstance(before, int)
        ctx.state["sum"] = ctx.visit + before

    report = await launch(store, job(Step("a", work), laps(3)))

    assert report.status is BatchStatus.COMPLETED
    assert seen == [(1, 1, {}), (2, 1, {"sum": 1}), (3, 1, {"sum": 3})]
    assert [(one.node, one.visit) for one in report.steps] == [
        ("a", 1),
        ("a", 2),
        ("a", 3),
    ]
    assert report.step("a", 3).status is BatchStatus.COMPLETED


@pytest.mark.parametrize("visit", [1, 2])
async def test_a_visit_that_was_stopped_counts_from_the_visit_before_it(
    visit: int,
) -> None:
    """What it has left itself is in its own state; it is no visit before."""
    store = Store()
    seen: list[tuple[int, object, object]] = []

    async def work(ctx: StepContext) -> None:
        before = ctx.state_of(ctx.node).get("sum", 0)
        seen.append((ctx.visit, before, ctx.state.get("sum")))
        assert isinstance(before, int)
        ctx.state["sum"] = 1 + before
        if (ctx.visit, ctx.attempt) == (visit, 1):
            runtime.stop(ctx.execution_id)

    patient = job(Step("a", work, on_stop="cooperate"), laps(3))
    async with running(store) as runtime:
        stopped = await runtime.launch(patient)
        report = await runtime.launch(patient)

    assert (stopped.status, report.status) == (
        BatchStatus.STOPPED,
        BatchStatus.COMPLETED,
    )
    first = [(number, number - 1, None) for number in range(1, visit + 1)]
    again = (visit, visit - 1, visit)
    rest = [(number, number - 1, None) for number in range(visit + 1, 4)]
    assert seen == [*first, again, *rest]


async def test_a_visit_that_is_repeated_sees_what_it_saw_before() -> None:
    store = Store()
    seen: list[Any] = []

    def work(ctx: StepContext) -> None:
        seen.append((ctx.visit, ctx.step_attempt, ctx.state_of("a"), dict(ctx.state)))
        ctx.state["lap"] = ctx.visit
        if ctx.visit == 2 and ctx.attempt == 1:
            raise ValueError("broken")

    looping = job(Step("a", work), laps(2))
    report = await launch(store, looping)
    assert message_of(report) == "broken"
    await launch(store, looping)

    assert seen == [
        (1, 1, {}, {}),
        (2, 1, {"lap": 1}, {}),
        (2, 2, {"lap": 1}, {}),
    ]


async def test_every_visit_has_an_idempotency_key_of_its_own() -> None:
    store = Store()
    keys: list[str] = []

    def work(ctx: StepContext) -> None:
        keys.append(ctx.idempotency_key)
        if ctx.attempt == 1 and ctx.visit == 2:
            raise ValueError("broken")

    looping = job(Step("a", work), laps(2))
    await launch(store, looping)
    await launch(store, looping)

    assert len(keys) == 3
    assert keys[0] != keys[1] == keys[2]


async def test_a_chunk_begins_afresh_in_every_visit() -> None:
    store = Store()
    chunk, reader, writer = copying(range(3), size=2)

    report = await launch(store, job(Step("a", chunk), laps(2)))

    assert report.counts.read == 6
    assert reader.states == [None, None]
    assert store.rows() == [0, 1, 2, 0, 1, 2]
    assert writer.keys == [
        ChunkKey(instance_id=1, node="a", visit=visit, ordinal=ordinal)
        for visit in (1, 2)
        for ordinal in (0, 2)
    ]


async def test_a_split_and_a_partitioned_step_may_stand_in_a_loop() -> None:
    store = Store()
    calls: list[str] = []

    def work(ctx: StepContext) -> None:
        where = ctx.node if ctx.partition is None else ctx.partition.key
        calls.append(f"{where}{ctx.visit}")
        if (where, ctx.visit, ctx.attempt) in (("y", 2, 1), ("r", 2, 2)):
            raise ValueError("broken")

    def plan(ctx: PlannerContext) -> Any:
        calls.append(f"plan{ctx.visit}")
        return [("x", {}), ("y", {})]

    nodes: list[Node] = [
        Step("a", work),
        PartitionedStep("p", work, plan, max_workers=1),
        Split("s", [Step("l", work), Step("r", work)]),
        laps(2),
    ]
    statuses = [(await launch(store, job(*nodes))).status for _ in range(3)]

    assert statuses == [BatchStatus.FAILED, BatchStatus.FAILED, BatchStatus.COMPLETED]
    assert calls == [
        *("a1", "plan1", "x1", "y1", "l1", "r1"),
        *("a2", "plan2", "x2", "y2"),
        *("y2", "l2", "r2"),
        "r2",
    ]
    assert store.settled()


async def test_a_decision_upon_a_split_in_a_loop_is_asked_once() -> None:
    store, asked = Store(), []

    def keep(ctx: StepContext) -> None:
        ctx.state["lap"] = ctx.visit

    def decide(ctx: DeciderContext) -> str:
        asked.append(ctx.visit)
        return "AGAIN" if ctx.visit < 3 else "OUT"

    def last(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise ValueError("broken")

    flow = [Step("l", keep, then={"*": "m"}), Step("m", keep, then={"*": COMPLETE})]
    nodes: list[Node] = [
        Step("a", keep),
        Split("s", [flow, [Step("r", keep)]]),
        Decision("turn", decide, then={"AGAIN": "a", "OUT": "z"}, visit_limit=5),
        Step("z", last),
    ]
    statuses = [(await launch(store, job(*nodes))).status for _ in range(2)]

    assert statuses == [BatchStatus.FAILED, BatchStatus.COMPLETED]
    assert asked == [1, 2, 3]


async def test_a_step_may_lead_back_by_its_exit_code() -> None:
    store = Store()

    def poll(ctx: StepContext) -> Exit:
        return Exit("THERE" if ctx.visit == 3 else "WAIT")

    then = {"WAIT": "a", "*": COMPLETE}
    report = await launch(store, job(Step("a", poll, then=then, visit_limit=3)))

    assert report.status is BatchStatus.COMPLETED
    assert [one.exit_code for one in report.steps] == ["WAIT", "WAIT", "THERE"]


async def test_a_loop_that_does_not_end_fails_with_its_limit() -> None:
    store = Store()
    again = Step("a", lambda ctx: None, then={"*": "a"}, visit_limit=4)

    report = await launch(store, job(again))

    assert message_of(report).startswith("the flow has come to 'a' 4 times")
    assert report.failure is not None
    assert report.failure.code == "visit_limit_reached"
    assert compile_job(job(again)).plan.format == 4


async def test_a_later_step_reads_the_state_of_the_last_visit() -> None:
    store, seen = Store(), []

    def count(ctx: StepContext) -> None:
        ctx.state["lap"] = ctx.visit

    def last(ctx: StepContext) -> None:
        seen.append(ctx.state_of("a"))
        if ctx.attempt == 1:
            raise ValueError("broken")

    turn = Decision(
        "turn",
        lambda ctx: "AGAIN" if ctx.state_of("a")["lap"] < 3 else "OUT",
        then={"AGAIN": "a", "OUT": "z"},
        visit_limit=5,
    )
    looping = job(Step("a", count), turn, Step("z", last))
    await launch(store, looping)
    report = await launch(store, looping)

    assert report.status is BatchStatus.COMPLETED
    assert seen == [{"lap": 3}, {"lap": 3}]
