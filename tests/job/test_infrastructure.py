"""A store that fails under a running job: nothing is lost, and nothing is a lie."""

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from tests.job.components import ListReader, ListWriter, copying
from tests.job.harness import (
    Crash,
    Lose,
    Store,
    Trace,
    job,
    launch,
    running,
    single,
)
from triolet.actors import (
    BatchStatus,
    Chunk,
    CommitOutcomeUnknown,
    Cursor,
    Decision,
    FailureCategory,
    InternalError,
    OutcomeUnresolved,
    Step,
    StepContext,
    StepListener,
    StoreError,
    StoreGone,
    StoreLocked,
    StoreUnavailable,
    StoreUnusable,
)
from triolet.storage.commands import Command

DOWN = StoreUnusable("the disk is read-only")


def listening(trace: Trace) -> Step:
    listener = StepListener("l", before=trace.work("listener"))
    return trace.step("b", listeners=[listener])


def flow(trace: Trace) -> list[Step | Decision]:
    """A flow whose launch takes six commands after the first one."""
    chunk, _, _ = copying(range(4), size=2)
    return [trace.step("a"), listening(trace), Step("copy", chunk)]


@pytest.mark.parametrize("n", range(2, 9))
@pytest.mark.parametrize(
    ("fault", "category"),
    [
        (DOWN, FailureCategory.PERMANENT_INFRASTRUCTURE),
        (StoreLocked("busy"), FailureCategory.TRANSIENT_INFRASTRUCTURE),
    ],
    ids=["unusable", "locked"],
)
async def test_a_store_that_fails_once_fails_the_job_and_says_what_failed(
    store: Store, trace: Trace, n: int, fault: StoreError, category: FailureCategory
) -> None:
    store.faults[n] = fault
    with pytest.raises(type(fault)):
        await launch(store, job(*flow(trace)))
    (execution,) = store.executions
    assert execution.status is BatchStatus.FAILED
    assert execution.failure is not None
    assert execution.failure.category is category
    assert execution.failure.code == fault.code
    assert execution.failure.message == str(fault)
    assert execution.ended_at is not None
    assert store.settled()
    report = await launch(store, job(*flow(trace)))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == [0, 1, 2, 3]


async def test_the_flow_above_takes_eight_commands(store: Store, trace: Trace) -> None:
    await launch(store, job(*flow(trace)))
    assert len(store.commands) == 8


async def test_a_result_whose_commit_failed_is_kept_by_the_last_word(
    store: Store, trace: Trace
) -> None:
    store.faults[2] = DOWN
    with pytest.raises(StoreUnusable):
        await launch(store, job(trace.step("a"), trace.step("b")))
    assert store.statuses == [("a", "COMPLETED")]
    report = await launch(store, job(trace.step("a"), trace.step("b")))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b"]


async def test_a_step_whose_rows_could_not_be_written_is_not_called_complete(
    store: Store, trace: Trace
) -> None:
    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute("CREATE TABLE IF NOT EXISTS rows (x)")
        cursor.execute("INSERT INTO rows VALUES (1)")

    nodes = trace.step("a", write=write), trace.step("b")
    store.faults[2] = DOWN
    with pytest.raises(StoreUnusable):
        await launch(store, job(*nodes))
    assert store.statuses == [("a", "FAILED")]
    assert store.settled()
    report = await launch(store, job(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == [1]
    assert trace.calls == ["a", "a", "b"]


async def test_a_transient_fault_is_not_noticed(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    for n in (2, 4, 5):
        store.faults[n] = StoreUnavailable("failing over")
    report = await launch(store, job(*flow(trace)))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == [0, 1, 2, 3]


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("committed", [True, False], ids=["after", "before"])
async def test_a_lost_answer_is_not_noticed(
    store: Store, trace: Trace, n: int, committed: bool
) -> None:
    store.faults[n] = Lose(committed)
    report = await launch(store, job(*flow(trace)))
    assert report.status is BatchStatus.COMPLETED
    assert store.rows() == [0, 1, 2, 3]
    assert trace.calls == ["a", "listener", "b"]
    assert len(store.executions) == 1


async def test_a_store_that_stays_away_leaves_the_job_to_its_lease(
    store: Store,
    trace: Trace,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def work(ctx: StepContext) -> None:
        store.down = StoreUnavailable("no route to host")

    with pytest.raises(StoreUnavailable, match="no route"):
        await launch(store, single(work))
    assert store.executions[0].status is BatchStatus.STARTED
    assert "execution 1 could not be closed: no route to host" in caplog.text
    store.down = None
    report = await launch(store, single(trace.work("a")))
    assert report.status is BatchStatus.COMPLETED
    assert report.took_over == 1


async def test_a_launch_that_the_store_cannot_open_leaves_nothing(
    store: Store, trace: Trace
) -> None:
    store.faults[1] = DOWN
    with pytest.raises(StoreUnusable):
        await launch(store, job(trace.step("a")))
    assert store.executions == ()
    assert trace.calls == []


def lose_for_good(store: Store, committed: bool) -> None:
    """Let the answer to the next commit be lost and not be settled by its deadline."""
    store.down = Lose(committed)
    store.unsettled = StoreUnavailable("no route to host")

    def repair(command: Command[object]) -> None:
        store.down = store.unsettled = None

    def lost(command: Command[object]) -> None:
        store.watch = repair

    store.watch = lost


@pytest.mark.parametrize("committed", [True, False], ids=["after", "before"])
async def test_a_commit_of_unknown_outcome_ends_the_job_unknown(
    store: Store,
    trace: Trace,
    committed: bool,
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def work(ctx: StepContext) -> None:
        lose_for_good(store, committed)

    nodes = Step("a", work), trace.step("b")
    with pytest.raises(CommitOutcomeUnknown):
        await launch(store, job(*nodes), lease=600)
    (execution,) = store.executions
    assert execution.status is BatchStatus.UNKNOWN
    assert execution.failure is not None
    assert execution.failure.category is FailureCategory.UNKNOWN_COMMIT
    with pytest.raises(OutcomeUnresolved):
        await launch(store, job(*nodes))
    assert trace.calls == []


async def test_a_job_whose_end_took_effect_after_all_has_ended(
    store: Store, autojump_clock: trio.testing.MockClock
) -> None:
    async def work(ctx: StepContext) -> None:
        lose_for_good(store, committed=True)

    with pytest.raises(CommitOutcomeUnknown):
        await launch(store, single(work), lease=600)
    assert store.executions[0].status is BatchStatus.COMPLETED


@pytest.mark.parametrize("committed", [True, False], ids=["after", "before"])
async def test_a_chunk_of_unknown_outcome_ends_the_job_unknown(
    store: Store, committed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    def lose(rows: Sequence[int]) -> None:
        if 2 in rows:
            lose_for_good(store, committed)

    writer = ListWriter(on_write=lose)
    chunk = Chunk(ListReader(range(6)), writer, size=2)
    report = await launch(store, single(chunk), lease=600)
    assert report.status is BatchStatus.UNKNOWN
    assert report.step("work").status is BatchStatus.UNKNOWN
    (execution,) = store.executions
    assert execution.status is BatchStatus.UNKNOWN
    assert execution.failure is not None
    assert execution.failure.category is FailureCategory.UNKNOWN_COMMIT
    assert writer.log == ["open writer", "close writer"]
    with pytest.raises(OutcomeUnresolved):
        await launch(store, single(chunk))


async def test_the_beginning_of_a_step_of_unknown_outcome_ends_the_job_unknown(
    store: Store, trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    def before(ctx: StepContext) -> None:
        lose_for_good(store, committed=True)

    listening = trace.step("a", listeners=[StepListener("l", before=before)])
    with pytest.raises(CommitOutcomeUnknown):
        await launch(store, job(listening), lease=600)
    assert store.executions[0].status is BatchStatus.UNKNOWN
    assert trace.calls == []


async def test_a_store_that_dies_ends_the_launch_and_the_runtime(
    store: Store, trace: Trace
) -> None:
    async def work(ctx: StepContext) -> None:
        store.down = Crash()

    raised: list[BaseException] = []

    async def run() -> None:
        async with running(store) as runtime:
            try:
                await runtime.launch(single(work))
            except StoreGone as exc:
                raised.append(exc)
                raise

    with pytest.raises(BaseExceptionGroup) as caught:
        await run()
    assert caught.value.subgroup(Crash) is not None
    assert len(raised) == 1


async def test_a_bug_of_a_backend_is_not_hidden(store: Store, trace: Trace) -> None:
    store.faults[2] = InternalError("a batch is settled twice")
    with pytest.raises(ExceptionGroup) as caught:
        await launch(store, job(trace.step("a")))
    assert caught.value.subgroup(InternalError) is not None


async def test_state_in_the_store_that_is_damaged_fails_the_job_that_reads_it(
    store: Store, trace: Trace
) -> None:
    def work(ctx: StepContext) -> None:
        ctx.state["x"] = 1
        if ctx.attempt < 3:
            raise ValueError("broken")

    await launch(store, single(work))
    store.inner._tables.steps[1].context = "{broken"
    with pytest.raises(StoreError, match="the state of 'work' in the store is corrupt"):
        await launch(store, single(work))
    assert store.executions[-1].status is BatchStatus.FAILED
    assert store.settled()


async def test_a_checkpoint_that_is_damaged_fails_the_step_and_opens_nothing(
    store: Store,
) -> None:
    chunk, reader, writer = copying(range(6), size=2)
    writer.on_write = lambda rows: [][0] if 2 in rows else None
    await launch(store, single(chunk))
    store.inner._tables.steps[1].checkpoint = "{broken"
    report = await launch(store, single(chunk))
    assert report.failure is not None
    assert report.failure.category is FailureCategory.SERIALIZATION
    assert "the checkpoint of 'work' in the store is corrupt" in (
        report.failure.message or ""
    )
    assert reader.log == ["open reader", "close reader"]
