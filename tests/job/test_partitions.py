"""Partitioned steps: planned once, each partition done once, one result of all."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field

from tests.job.components import ListReader
from tests.job.harness import JOB, Store, Trace, job, launch, running
from triolet.actors import (
    BatchStatus,
    Chunk,
    Counts,
    Cursor,
    Event,
    EventKind,
    Exit,
    LaunchReport,
    OutcomeUnknown,
    Partition,
    PartitionedStep,
    PlannerContext,
    Step,
    StepContext,
    TableWriter,
)
from triolet.storage.model.partition import PartitionExecution, is_worker


@define
class Work:
    """A planner and a worker that tell what they do."""

    keys: tuple[str, ...] = ("eu", "us", "asia", "africa")
    plans: int = 0
    did: list[str] = field(factory=list)
    now: int = 0
    most: int = 0
    failing: dict[str, int] = field(factory=dict)
    """How often a partition fails before it does not."""
    codes: dict[str, str] = field(factory=dict)
    seconds: float = 1.0

    def plan(self, ctx: PlannerContext) -> list[tuple[str, dict[str, Any]]]:
        self.plans += 1
        assert ctx.partitions == len(self.keys)
        return [(key, {"region": key}) for key in self.keys]

    async def work(self, ctx: StepContext) -> Exit | None:
        assert ctx.partition is not None
        key = ctx.partition.key
        assert ctx.partition.context == {"region": key}
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await trio.sleep(self.seconds)
        finally:
            self.now -= 1
        self.did.append(key)
        if self.failing.get(key, 0) > 0:
            self.failing[key] -= 1
            raise ValueError(f"{key} is broken")
        return Exit(self.codes[key]) if key in self.codes else None

    def step(self, **settings: Any) -> PartitionedStep:
        worker = settings.pop("worker", self.work)
        settings = {"partitions": len(self.keys), **settings}
        return PartitionedStep("parts", worker, self.plan, **settings)


@pytest.fixture
def work() -> Work:
    return Work()


def partitions(store: Store) -> list[PartitionExecution]:
    """Give those of the last attempt."""
    every = store.dump().partitions
    last = max(one.manager_id for one in every)
    return [one for one in every if one.manager_id == last]


def statuses(store: Store) -> dict[str, str]:
    return {one.key: one.status.value for one in partitions(store)}


async def test_every_partition_is_done_by_a_worker_of_its_own(
    store: Store, trace: Trace, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    report = await launch(store, job(trace.step("first"), work.step(max_workers=2)))
    assert report.status is BatchStatus.COMPLETED
    assert trio.current_time() - began == pytest.approx(2.0)
    assert work.most == 2
    assert sorted(work.did) == sorted(work.keys)
    assert work.plans == 1
    assert [step.node for step in report.steps] == ["first", "parts"]
    assert [one.key for one in report.partitions] == sorted(work.keys)
    assert set(statuses(store).values()) == {"COMPLETED"}
    workers = [step for step in store.steps if is_worker(step.node)]
    assert {one.worker_id for one in partitions(store)} == {one.id for one in workers}


async def test_a_partitioned_step_may_come_first_and_last(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    report = await launch(store, job(work.step()))
    assert report.status is BatchStatus.COMPLETED


async def test_a_restart_does_what_is_left_and_plans_no_more(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    work.failing = {"asia": 1}
    patient = job(work.step(on_failure="drain_siblings"))
    failed = await launch(store, patient)
    assert failed.status is BatchStatus.FAILED
    assert failed.failure is not None
    assert failed.failure.message == "asia is broken"
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert Counter(work.did) == {"eu": 1, "us": 1, "africa": 1, "asia": 2}
    assert work.plans == 1
    reused = {one.key for one in report.partitions if one.reused}
    assert reused == {"eu", "us", "africa"}


async def test_a_failing_partition_stops_its_siblings(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    work.failing = {"eu": 1}
    patient = job(work.step(max_workers=1))
    report = await launch(store, patient)
    assert report.status is BatchStatus.FAILED
    assert statuses(store) == {
        "eu": "FAILED",
        "us": "STARTING",
        "asia": "STARTING",
        "africa": "STARTING",
    }
    assert (await launch(store, patient)).status is BatchStatus.COMPLETED


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_stop_writes_no_rows_for_partitions_that_never_began(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock, how: str
) -> None:
    patient = job(work.step(max_workers=2))
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, patient)
        await trio.sleep(0.5)
        if how == "stop":
            runtime.stop()
        else:
            nursery.cancel_scope.cancel()
    assert store.settled()
    assert statuses(store) == {
        "eu": "STOPPED",
        "us": "STOPPED",
        "asia": "STARTING",
        "africa": "STARTING",
    }
    assert len(store.steps) == 3
    manager = store.steps[0]
    assert manager.status is BatchStatus.STOPPED
    assert (await launch(store, patient)).status is BatchStatus.COMPLETED
    assert sorted(work.did) == sorted(work.keys)


async def test_the_exit_is_that_of_the_first_key_among_the_worst(
    store: Store,
    trace: Trace,
    work: Work,
    autojump_clock: trio.testing.MockClock,
) -> None:
    work.codes = {"us": "PART", "africa": "SOME"}
    step = work.step(then={"SOME": "some", "*": "other"})
    report = await launch(store, job(step, trace.step("other"), trace.step("some")))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["some"]
    assert report.step("parts").exit_code == "SOME"


async def test_an_unknown_partition_makes_the_job_unknown(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    async def unsure(ctx: StepContext) -> None:
        assert ctx.partition is not None
        await trio.sleep(1)
        if ctx.partition.key == "us":
            raise OutcomeUnknown("nobody answers")

    report = await launch(store, job(work.step(worker=unsure)))
    assert report.status is BatchStatus.UNKNOWN
    assert statuses(store)["us"] == "UNKNOWN"


Plan = Callable[[PlannerContext], object]
WRONG: dict[str, tuple[Plan, str]] = {
    "raises": (lambda ctx: 1 / 0, "division by zero"),
    "no list": (lambda ctx: 7, "must be a list of"),
    "count": (lambda ctx: [("a", {})], "must have 4 partitions, not 1"),
    "twice": (lambda ctx: [("a", {})] * 4, "has the key of partition 1"),
    "long": (lambda ctx: [("a" * 200, {})] * 4, "at most 128 are allowed"),
    "large": (
        lambda ctx: [(str(at), {"x": "y" * 5000}) for at in range(4)],
        "at most 4096 are allowed",
    ),
    "unsure": (lambda ctx: unsure_plan(), "who knows"),
}


def unsure_plan() -> object:
    raise OutcomeUnknown("who knows")


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_planner_that_breaks_a_rule_fails_its_step(
    store: Store, trace: Trace, work: Work, wrong: str
) -> None:
    planner, message = WRONG[wrong]
    step = PartitionedStep(
        "parts", work.work, planner, 4, then={"FAILED": "tidy", "*": "tidy"}
    )
    report = await launch(store, job(step, trace.step("tidy")))
    assert report.status is BatchStatus.COMPLETED
    assert report.step("parts").status is BatchStatus.FAILED
    assert trace.calls == ["tidy"]
    failure = store.steps[0].failure
    assert failure is not None
    assert message in (failure.message or "")
    assert store.dump().partitions == ()


async def test_chunks_are_loaded_by_a_factory(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    failing = ["us"]

    def refuse(key: str, item: tuple[str, int]) -> tuple[str, int]:
        if item[1] == 5 and key in failing:
            failing.remove(key)
            raise ValueError("broken")
        return item

    def make(partition: Partition) -> Chunk:
        items = [(partition.key, number) for number in range(7)]
        writer = TableWriter("parts", {"region": str, "number": int})
        return Chunk(
            ListReader(items), writer, lambda item: refuse(partition.key, item), size=2
        )

    declared = make(Partition(key="", ordinal=1, context={}))
    step = work.step(worker=declared, factory=make, on_failure="drain_siblings")
    patient = job(step)
    assert (await launch(store, patient)).status is BatchStatus.FAILED
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert report.counts.written == 28
    rows = store.inner.business.execute("SELECT region, number FROM parts").fetchall()
    assert sorted(rows) == sorted((key, at) for key in work.keys for at in range(7))


async def test_events_name_the_manager_and_the_partition(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    failing = ["us"]

    def make(partition: Partition) -> Chunk:
        if partition.key in failing:
            failing.remove(partition.key)
            raise ValueError("not yet")
        items = [(partition.key, number) for number in range(4)]
        writer = TableWriter("parts", {"region": str, "number": int})
        return Chunk(ListReader(items), writer, size=2)

    declared = make(Partition(key="", ordinal=1, context={}))
    step = work.step(worker=declared, factory=make, on_failure="drain_siblings")
    first: list[Event] = []
    await launch(store, job(step), events=first.append)
    told = {(one.kind, one.node, one.partition) for one in first if one.step_id}
    assert {
        (EventKind.CHUNK_COMMITTED, "parts", "eu"),
        (EventKind.STEP_STARTED, "parts", "eu"),
        (EventKind.STEP_RESULT_COMMITTED, "parts", "us"),
        (EventKind.STEP_RESULT_COMMITTED, "parts", None),
    } <= told
    assert {node for _, node, _ in told} == {"parts"}
    second: list[Event] = []
    await launch(store, job(step), events=second.append)
    (before,) = planned(first)
    assert (before.total, before.completed, before.counts) == (4, 0, Counts())
    (after,) = planned(second)
    assert (after.total, after.completed) == (4, 3)
    assert after.counts == Counts(12, 12, 12, 0, 6, 0)
    assert after.step_id == partitions(store)[0].manager_id


def planned(events: list[Event]) -> list[Event]:
    return [one for one in events if one.kind is EventKind.PARTITIONS_PLANNED]


async def test_a_write_that_fails_names_the_declared_worker(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    def write(cursor: Cursor, ctx: StepContext) -> None:
        raise ValueError("the disk is full")

    worker = Step("worker", work.work, write=write)
    report = await launch(store, job(work.step(worker=worker)))
    assert report.failure is not None
    assert (report.failure.code, report.failure.where) == ("write_failed", "worker")


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda partition: 1 / 0, "division by zero"),
        (lambda partition: 7, "must be a function"),
        (
            lambda partition: Step("other", lambda ctx: None),
            "another step than the declared worker",
        ),
    ],
)
async def test_a_factory_that_fails_fails_its_partition(
    store: Store, work: Work, factory: Callable[[Partition], object], message: str
) -> None:
    report = await launch(store, job(work.step(factory=factory)))
    assert report.failure is not None
    assert message in (report.failure.message or ""), report.failure
    assert work.did == []


async def test_limits_of_manager_and_worker_are_failures(
    store: Store, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    work.failing = {"eu": 9}
    worker = Step("worker", work.work, start_limit=1)
    patient = job(work.step(worker=worker, on_failure="drain_siblings", start_limit=3))
    reports: list[LaunchReport] = [await launch(store, patient) for _ in range(4)]
    codes = [one.failure and one.failure.code for one in reports]
    limit = "start_limit_reached"
    assert codes == ["tasklet_failed", limit, limit, limit]
    assert work.did.count("eu") == 1
    assert statuses(store)["eu"] == "STARTING"
    messages = [one.failure and one.failure.message for one in reports]
    assert "the 1st partition of step 'parts'" in str(messages[1])
    assert "'parts'" in str(messages[3])


async def test_a_step_that_may_run_again_is_planned_again(
    store: Store, trace: Trace, work: Work, autojump_clock: trio.testing.MockClock
) -> None:
    last = Step("last", trace.failing("last", until=2))
    patient = job(work.step(allow_start_if_complete=True), last)
    await launch(store, patient)
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert work.plans == 2
    assert len(work.did) == 8


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_the_planner_may_say_how_many(
    store: Store,
    trace: Trace,
    autojump_clock: trio.testing.MockClock,
    count: int,
) -> None:
    work = Work(tuple(f"{at:04}" for at in range(count)))

    def plan(ctx: PlannerContext) -> object:
        work.plans += 1
        assert ctx.partitions is None
        return [(key, {"region": key}) for key in work.keys]

    step = PartitionedStep("parts", work.work, plan)
    last = Step("last", trace.failing("last", until=2))
    patient = job(step, last)
    await launch(store, patient)
    report = await launch(store, patient)
    assert report.status is BatchStatus.COMPLETED
    assert report.step("parts").reused
    assert work.plans == 1
    assert len(work.did) == count


async def test_more_than_1024_partitions_are_refused(store: Store, work: Work) -> None:
    step = PartitionedStep(
        "parts", work.work, lambda ctx: [(str(at), {}) for at in range(1025)]
    )
    report = await launch(store, job(step))
    assert report.failure is not None
    assert "at most 1024 partitions" in (report.failure.message or "")


async def test_a_thousand_partitions_pass(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    work = Work(tuple(f"{at:04}" for at in range(1000)))
    report = await launch(store, job(work.step(max_workers=64)))
    assert report.status is BatchStatus.COMPLETED
    assert work.most == 64
    assert len(report.partitions) == 1000
    assert store.dump().instances[0].instance.job == JOB
