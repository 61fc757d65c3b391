"""Serving launch requests: each is worked on by one, and what came of it is known."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, evolve, field

from tests.job.components import ListReader, ListWriter
from tests.job.harness import Store, Trace, job, running, single, trio_clock
from tests.storage.backends import Clock
from triolet.actors import (
    BatchStatus,
    Chunk,
    CommitOutcomeUnknown,
    Cursor,
    DefinitionError,
    InvalidParameter,
    InvalidValue,
    Job,
    Parameter,
    RequestStatus,
    Runtime,
    ServedRequest,
    Step,
    StepContext,
    StoreUnavailable,
)
from triolet.actors.testing.faults import (
    Crashed,
    Fault,
    FaultyBackend,
    Variant,
    Wire,
)
from triolet.storage.commands.requesting import ClaimLaunches, EndLaunch
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.launch_request import LaunchRequest

DAY = Parameter("day", str, default="")
DONE, REFUSED = RequestStatus.DONE, RequestStatus.REFUSED
REQUESTED, CLAIMED = RequestStatus.REQUESTED, RequestStatus.CLAIMED


@pytest.fixture
def store() -> Store:
    return Store(clock=trio_clock)


def requests(store: Store) -> list[LaunchRequest]:
    return list(store.dump().requests)


def endings(store: Store) -> list[tuple[RequestStatus, int | None]]:
    return [(one.status, one.execution_id) for one in requests(store)]


async def served(store: Store, *jobs: Any, **how: Any) -> list[ServedRequest]:
    """Serve until nothing is left to do."""
    heard: list[ServedRequest] = []
    async with running(store) as runtime:
        await runtime.serve(jobs, until_idle=True, ended=heard.append, **how)
    return heard


@asynccontextmanager
async def serving(store: Store, *jobs: Any, **how: Any) -> AsyncIterator[Runtime]:
    """Serve beside the block."""
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: runtime.serve(jobs, **how))
        yield runtime
        nursery.cancel_scope.cancel()


async def ask(store: Store, patient: Job, *days: str, **how: Any) -> None:
    async with running(store) as runtime:
        for day in days:
            await runtime.enqueue(patient, {"day": day}, **how)


@define
class Gate:
    """Makes tasklets that wait until they are let through, and tells how many run."""

    running: int = 0
    most: int = 0
    open: trio.Event = field(factory=trio.Event)

    async def __call__(self, ctx: StepContext) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.open.wait()
        finally:
            self.running -= 1

    def job(self) -> Job:
        return job(Step("work", self), parameters=[DAY])


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_what_is_requested_is_launched_oldest_first(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        trace.calls.append(str(ctx.parameters["day"]))

    patient = job(Step("work", work), parameters=[DAY])
    await ask(store, patient, "mon", "tue", "wed")

    heard = await served(store, patient, max_running=1)

    assert trace.calls == ["mon", "tue", "wed"]
    assert endings(store) == [(DONE, 1), (DONE, 2), (DONE, 3)]
    assert [one.report.status for one in heard if one.report] == [
        BatchStatus.COMPLETED
    ] * 3


async def test_a_request_is_seen_at_once_by_who_serves_here(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    patient = job(trace.step("work"), parameters=[DAY])
    async with serving(store, patient) as runtime:
        await trio.sleep(10)
        await runtime.enqueue(patient)
        await trio.sleep(0.1)
        assert endings(store) == [(DONE, 1)]


async def test_a_request_of_another_process_is_seen_within_the_period(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    patient = job(trace.step("work"), parameters=[DAY])
    async with serving(store, patient), running(store) as other:
        await trio.sleep(10)
        await other.enqueue(patient)
        await trio.sleep(1.1)
        assert endings(store) == [(DONE, 1)]


async def test_no_more_run_at_once_than_allowed(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock
) -> None:
    await ask(store, gate.job(), *"abcdefg")
    async with serving(store, gate.job(), max_running=3):
        await trio.sleep(5)
        assert gate.most == 3
        assert [one.status for one in requests(store)].count(REQUESTED) == 4
        gate.open.set()
        await trio.sleep(5)
    assert [one.status for one in requests(store)] == [DONE] * 7
    assert gate.most == 3


async def test_a_definition_with_a_reader_runs_once_at_a_time(store: Store) -> None:
    chunk = Chunk(ListReader([1, 2, 3]), ListWriter(), size=2)
    patient = job(Step("load", chunk), parameters=[DAY])
    await ask(store, patient, *"abc")
    heard = await served(store, patient)
    assert [one.status for one in heard] == [DONE] * 3


async def test_jobs_that_a_function_makes_run_side_by_side(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock
) -> None:
    def make() -> Job:
        chunk = Chunk(ListReader([1, 2, 3]), ListWriter(), size=2)
        return job(Step("wait", gate), Step("load", chunk), parameters=[DAY])

    await ask(store, make(), *"abc")
    async with serving(store, make):
        await trio.sleep(5)
        assert gate.most == 3
        gate.open.set()
        await trio.sleep(5)
    assert [one.status for one in requests(store)] == [DONE] * 3


async def test_a_failed_job_is_a_request_that_is_done(
    store: Store, trace: Trace
) -> None:
    patient = job(Step("work", trace.failing("work")), parameters=[DAY])
    await ask(store, patient, "mon")
    (heard,) = await served(store, patient)
    assert heard.report is not None
    assert heard.report.status is BatchStatus.FAILED
    assert endings(store) == [(DONE, 1)]


async def test_what_cannot_be_launched_is_refused_with_the_reason(
    store: Store, trace: Trace
) -> None:
    patient = job(trace.step("work"), parameters=[DAY])
    await ask(store, patient, "mon", "mon")
    stricter = evolve(patient, parameters=[evolve(DAY, type=int, default=1)])

    await served(store, patient, max_running=1)
    await ask(store, patient, "tue")
    await served(store, stricter)

    _, again, wrong = requests(store)
    assert (again.status, wrong.status) == (REFUSED, REFUSED)
    assert again.refusal is not None
    assert again.refusal.code == "instance_complete"
    assert wrong.refusal is not None
    assert wrong.refusal.code == "parameter_invalid"
    assert trace.calls == ["work"]


async def test_a_run_anew_is_made_once_whatever_happens(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock
) -> None:
    await ask(store, gate.job(), "mon", anew=True)
    async with serving(store, gate.job()):
        await trio.sleep(1)
    assert endings(store) == [(REQUESTED, 1)]
    gate.open.set()
    await served(store, gate.job())
    assert endings(store) == [(DONE, 2)]
    (instance,) = store.dump().instances
    assert instance.instance.run == 1


async def test_requests_for_one_instance_are_worked_on_in_turn(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock
) -> None:
    await ask(store, gate.job(), "mon", "mon", "mon")
    async with serving(store, gate.job()):
        await trio.sleep(5)
        assert gate.most == 1
        assert [one.status for one in requests(store)] == [
            CLAIMED,
            REQUESTED,
            REQUESTED,
        ]
        gate.open.set()
        await trio.sleep(5)
    assert endings(store) == [(DONE, 1), (REFUSED, None), (REFUSED, None)]
    codes = {one.refusal.code for one in requests(store) if one.refusal}
    assert codes == {"instance_complete"}


async def test_what_failed_is_tried_again_by_the_next_request(
    store: Store, trace: Trace
) -> None:
    patient = job(Step("work", trace.failing("work", until=2)), parameters=[DAY])
    await ask(store, patient, "mon", "mon", "mon")
    await served(store, patient)
    assert endings(store) == [(DONE, 1), (DONE, 2), (REFUSED, None)]


async def test_a_request_waits_while_its_instance_runs_elsewhere(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock
) -> None:
    async with (
        running(store) as elsewhere,
        trio.open_nursery() as nursery,
        serving(store, gate.job()) as runtime,
    ):
        nursery.start_soon(lambda: elsewhere.launch(gate.job(), day="mon"))
        await trio.sleep(1)
        await runtime.enqueue(gate.job(), day="mon")
        await trio.sleep(20)
        assert not requests(store)[0].status.ended
        gate.open.set()
        await trio.sleep(5)
    assert endings(store) == [(REFUSED, None)]
    assert requests(store)[0].refusal is not None


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_what_runs_when_serving_ends_is_given_back(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock, how: str
) -> None:
    await ask(store, gate.job(), "mon", "tue")
    heard: list[ServedRequest] = []
    async with serving(store, gate.job(), ended=heard.append) as runtime:
        await trio.sleep(1)
        if how == "stop":
            runtime.stop()
            await trio.sleep(1)
    assert [one.status for one in heard] == [REQUESTED] * 2
    assert [one.status for one in store.executions] == [BatchStatus.STOPPED] * 2

    gate.open.set()
    await served(store, gate.job())
    assert [one.status for one in requests(store)] == [DONE] * 2
    assert [one.restart_of for one in store.executions] == [None, None, 1, 2]


async def test_what_an_operator_stopped_is_not_continued(
    store: Store, gate: Gate, autojump_clock: trio.testing.MockClock
) -> None:
    await ask(store, gate.job(), "mon")
    async with serving(store, gate.job()) as runtime:
        await trio.sleep(1)
        await runtime.request_stop(1, actor="eve")
        await trio.sleep(3)
    assert endings(store) == [(DONE, 1)]
    assert store.executions[0].status is BatchStatus.STOPPED


def booked(rows: list[str], *, failing: bool = False) -> Job:
    """A job whose second step writes its day, once per completed launch."""

    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute("CREATE TABLE IF NOT EXISTS booked (day TEXT)")
        cursor.execute("INSERT INTO booked VALUES (?)", (ctx.parameters["day"],))

    async def work(ctx: StepContext) -> None:
        rows.append(str(ctx.parameters["day"]))
        if failing:
            raise ValueError

    return Job(
        "failing" if failing else "booked",
        [Step("first", work), Step("book", work, write=write)],
        parameters=[DAY],
    )


WANTED = (("a", False, False), ("b", True, False), ("c", False, True))
"""What is requested: the day, whether anew, whether the job fails."""


async def all_served(wire: Wire, clock: Clock, store: MemoryBackend) -> None:
    """Serve all that is wanted, by as many processes as it takes."""
    jobs = {failing: booked([], failing=failing) for failing in (False, True)}
    while True:
        backend = FaultyBackend(store, wire)
        with suppress(BaseExceptionGroup, Crashed):
            async with running(backend) as runtime:
                known = len(store.dump().requests)
                for day, anew, failing in WANTED[known:]:
                    await runtime.enqueue(jobs[failing], {"day": day}, anew=anew)
                await runtime.serve(jobs.values(), until_idle=True)
        clock.now += 31_000_000
        if not backend.dead:
            return


def test_whatever_dies_each_request_is_served_once() -> None:
    undisturbed = Wire()
    trio.run(all_served, undisturbed, Clock(), MemoryBackend(Clock()))
    tried = 0
    for commit in range(1, len(undisturbed.commits) + 1):
        for variant in Variant:
            clock = Clock()
            store = MemoryBackend(clock)
            fault = Fault(commit, variant)
            trio.run(all_served, Wire((fault,)), clock, store)
            assert_served(store, fault)
            tried += 1
    assert tried >= 4 * len(undisturbed.commits) > 0


def assert_served(store: MemoryBackend, fault: Fault) -> None:
    dump = store.dump()
    assert [one.status for one in dump.requests] == [DONE] * 3, fault
    runs = {(one.instance.job, one.instance.run) for one in dump.instances}
    assert runs == {("booked", 1), ("booked", None), ("failing", None)}, fault
    latest = {one.instance_id: one.status.value for one in dump.executions}
    assert sorted(latest.values()) == ["COMPLETED", "COMPLETED", "FAILED"], fault
    rows = store.business.execute("SELECT day FROM booked ORDER BY day")
    assert rows.fetchall() == [("a",), ("b",)], fault
    # A job that failed by itself is not launched again.
    failures = [one.failure for one in dump.executions if one.failure is not None]
    own = [one for one in failures if one.code != "owner_died"]
    assert len(own) == 1, (fault, failures)


@pytest.mark.parametrize("ending", [BatchStatus.COMPLETED, BatchStatus.FAILED], ids=str)
async def test_an_end_that_could_not_be_noted_is_found_again(
    store: Store,
    trace: Trace,
    autojump_clock: trio.testing.MockClock,
    ending: BatchStatus,
) -> None:
    fails = ending is BatchStatus.FAILED
    work = trace.failing("work") if fails else trace.work("work")
    patient = job(Step("work", work), parameters=[DAY])
    await ask(store, patient, "mon")
    await served(store, patient)
    store.inner._tables.requests[1] = evolve(
        requests(store)[0], status=CLAIMED, ended_at=None
    )

    await trio.sleep(31)
    (heard,) = await served(store, patient)

    assert (heard.status, heard.report) == (DONE, None)
    assert trace.calls == ["work"]
    assert endings(store) == [(DONE, 1)]


@pytest.mark.parametrize("kind", [ClaimLaunches, EndLaunch])
@pytest.mark.parametrize("error", [StoreUnavailable("down"), CommitOutcomeUnknown()])
async def test_serving_outlives_a_store_that_is_away(
    store: Store,
    trace: Trace,
    autojump_clock: trio.testing.MockClock,
    kind: type,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = [error]
    apply = store.inner.apply

    def failing(batch_id: Any, batch: Any) -> Any:
        if away and any(isinstance(command, kind) for command in batch):
            raise away.pop()
        return apply(batch_id, batch)

    monkeypatch.setattr(store.inner, "apply", failing)
    patient = job(trace.step("work"), parameters=[DAY])
    await ask(store, patient, "mon")
    async with serving(store, patient):
        await trio.sleep(5)
    assert not away
    assert endings(store) == [(DONE, 1)]
    assert trace.calls == ["work"]


async def test_a_function_that_raises_refuses_only_its_request(
    store: Store, trace: Trace
) -> None:
    made: list[Callable[[], Job]] = []
    patient = job(trace.step("work"), parameters=[DAY])

    def make() -> Job:
        made.append(make)
        if len(made) == 2:
            raise ValueError("hush")
        return Job("other", patient.steps) if len(made) == 3 else patient

    await ask(store, patient, "mon", "tue", "wed")
    await served(store, make, max_running=1)

    raised, other, _ = requests(store)
    assert raised.refusal is not None
    assert "raised ValueError (test_serving.py, line" in raised.refusal.message
    assert "hush" not in raised.refusal.message
    assert other.refusal is not None
    assert other.refusal.message.endswith("made job 'other' instead")
    assert [one.status for one in requests(store)] == [REFUSED, REFUSED, DONE]


async def test_a_secret_is_not_enqueued_and_its_default_is_taken(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        trace.calls.append(str(ctx.parameters["token"]))

    patient = single(work)
    patient = evolve(
        patient, parameters=[Parameter("token", str, default="d", secret=True)]
    )
    async with running(store) as runtime:
        with pytest.raises(InvalidParameter, match="'token' is secret"):
            await runtime.enqueue(patient, token="hush")
        await runtime.enqueue(patient)
    await served(store, patient)
    assert trace.calls == ["d"]


async def test_bad_input_is_refused_before_anything_is_claimed(
    store: Store, trace: Trace
) -> None:
    patient = job(trace.step("work"))
    async with running(store) as runtime:
        for wrong, message in (
            ([], "at least one job"),
            ([patient, patient], "two jobs with the name 'demo'"),
            ([7], "jobs or functions that return one, not int"),
            ([lambda: 7], "jobs or functions that return one, not int"),
        ):
            with pytest.raises(InvalidValue, match=message):
                await runtime.serve(wrong)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(InvalidValue, match="max_running must be a whole number"):
            await runtime.serve([patient], max_running=0)
        with pytest.raises(DefinitionError):
            await runtime.serve([Job("empty", [])])
        page = await runtime.requests()
    assert page.requests == ()
