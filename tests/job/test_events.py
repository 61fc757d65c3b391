"""Events: which come, in which order, after which commit, and how little they matter."""

import logging
import threading

import pytest
import trio

from tests.job.components import ListReader, ListWriter, copying
from tests.job.harness import Store, Trace, job, launch, running, single
from triolet.actors import (
    COMPLETE,
    BatchStatus,
    Chunk,
    Correlated,
    Counts,
    Decision,
    Event,
    EventKind,
    Step,
    StepContext,
)
from triolet.storage.model.execution import NodeTarget, Terminal

K = EventKind


def kinds(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.kind.value, event.node) for event in events]


async def test_a_flow_is_told_from_its_start_to_its_end(
    store: Store, trace: Trace
) -> None:
    events: list[Event] = []
    choice = Decision("way", lambda ctx: "GO", then={"GO": "b"})
    nodes = trace.step("a"), choice, trace.step("b")
    report = await launch(store, job(*nodes), events=events.append)
    assert kinds(events) == [
        ("job.started", None),
        ("step.started", "a"),
        ("flow.step_result_committed", "a"),
        ("flow.decision_committed", "a"),
        ("flow.decision_committed", "way"),
        ("step.started", "b"),
        ("flow.step_result_committed", "b"),
        ("flow.decision_committed", "b"),
        ("job.ended", None),
    ]
    targets = [event.target for event in events if event.kind is K.DECISION_COMMITTED]
    assert targets == [NodeTarget("way"), NodeTarget("b"), Terminal.COMPLETE]
    assert {
        (event.job, event.instance_id, event.execution_id, event.attempt)
        for event in events
    } == {(report.job, report.instance_id, report.execution_id, 1)}
    assert {event.schema for event in events} == {1}


async def test_an_event_comes_after_the_commit_that_it_names(
    store: Store, trace: Trace
) -> None:
    seen: list[tuple[str, object]] = []

    def sink(event: Event) -> None:
        match event.kind:
            case K.STEP_RESULT_COMMITTED:
                seen.append((event.kind, store.steps[-1].status))
            case K.DECISION_COMMITTED:
                seen.append((event.kind, store.steps[-1].decision is not None))
            case K.JOB_ENDED:
                seen.append((event.kind, store.executions[0].status))
            case K.CHUNK_COMMITTED:
                seen.append((event.kind, store.steps[-1].counts == event.counts))

    chunk, _, _ = copying(range(20))
    await launch(store, job(Step("copy", chunk)), events=sink)
    assert seen == [
        ("chunk.committed", True),
        ("chunk.committed", True),
        ("flow.step_result_committed", BatchStatus.COMPLETED),
        ("flow.decision_committed", True),
        ("job.ended", BatchStatus.COMPLETED),
    ]


async def test_a_restart_tells_which_steps_it_reuses(
    store: Store, trace: Trace
) -> None:
    events: list[Event] = []
    nodes = trace.step("a"), trace.step("b"), Step("c", trace.failing("c", until=2))
    await launch(store, job(*nodes))
    await launch(store, job(*nodes), events=events.append)
    assert kinds(events) == [
        ("job.started", None),
        ("flow.decision_committed", "a"),
        ("flow.completed_step_reused", "a"),
        ("flow.decision_committed", "b"),
        ("flow.completed_step_reused", "b"),
        ("step.started", "c"),
        ("flow.step_result_committed", "c"),
        ("flow.decision_committed", "c"),
        ("job.ended", None),
    ]
    assert events[2].target == NodeTarget("b")
    assert {event.attempt for event in events} == {2}


async def test_a_failing_step_is_told_with_its_message(store: Store) -> None:
    events: list[Event] = []
    failing = Step("a", Trace().failing("a"))
    await launch(store, job(failing), events=events.append)
    (told,) = (event for event in events if event.kind is K.STEP_RESULT_COMMITTED)
    assert (told.status, told.exit_code) == (BatchStatus.FAILED, "FAILED")
    assert told.message == "a is broken"
    assert events[-1].status is BatchStatus.FAILED


async def test_a_start_limit_that_is_reached_is_told(
    store: Store, trace: Trace
) -> None:
    events: list[Event] = []
    limited = Step("b", trace.failing("b"), start_limit=2)
    for _ in range(2):
        await launch(store, job(trace.step("a"), limited))
    report = await launch(store, job(trace.step("a"), limited), events=events.append)
    assert report.status is BatchStatus.FAILED
    assert trace.calls == ["a", "b", "b"]
    assert [event.node for event in events if event.kind is K.START_LIMIT_EXCEEDED] == [
        "b"
    ]
    assert events[-1].kind is K.JOB_ENDED


async def test_a_stop_is_told_once(store: Store) -> None:
    events: list[Event] = []

    async def work(ctx: StepContext) -> None:
        for _ in range(5):
            runtime.stop()
        await trio.sleep_forever()

    async with running(store, events=events.append) as runtime:
        await runtime.launch(single(work))
    assert kinds(events) == [
        ("job.started", None),
        ("step.started", "work"),
        ("job.stop_requested", None),
        ("flow.step_result_committed", "work"),
        ("job.ended", None),
    ]


async def test_a_step_that_a_cancelled_launch_leaves_stopped_is_told(
    store: Store,
) -> None:
    events: list[Event] = []
    scope = trio.CancelScope()

    async def work(ctx: StepContext) -> None:
        scope.cancel()
        await trio.sleep_forever()

    async with running(store, events=events.append) as runtime:
        with scope:
            await runtime.launch(single(work))
    assert store.statuses == [("work", "STOPPED")]
    told = [event for event in events if event.kind is K.STEP_RESULT_COMMITTED]
    assert [(event.node, event.status) for event in told] == [
        ("work", BatchStatus.STOPPED)
    ]
    assert events[-1].kind is K.JOB_ENDED


async def test_progress_is_told_with_its_fraction_and_not_stored(store: Store) -> None:
    events: list[Event] = []

    async def work(ctx: StepContext) -> None:
        ctx.progress(3, 12)
        ctx.progress(4)
        ctx.progress(20, 12)
        ctx.progress(0, 0)

    await launch(store, single(work), events=events.append)
    told = [
        (event.counts.read, event.fraction)
        for event in events
        if event.kind is K.STEP_PROGRESSED and event.counts is not None
    ]
    assert told == [(3, 0.25), (4, None), (20, 1.0), (0, None)]
    assert store.steps[0].counts == Counts()


async def test_progress_of_a_plain_tasklet_is_told_on_the_event_loop(
    store: Store,
) -> None:
    events: list[tuple[EventKind, int]] = []

    def work(ctx: StepContext) -> None:
        assert threading.get_ident() != loop
        ctx.progress(1, 2)
        ctx.progress(2, 2)

    def sink(event: Event) -> None:
        events.append((event.kind, threading.get_ident()))

    loop = threading.get_ident()
    await launch(store, single(work), events=sink, inline=False)
    assert [kind.value for kind, _ in events][1:5] == [
        "step.started",
        "step.progressed",
        "step.progressed",
        "flow.step_result_committed",
    ]
    assert {thread for _, thread in events} == {loop}


async def test_chunks_tell_how_much_of_a_sized_input_is_done(store: Store) -> None:
    class Sized(ListReader):
        def fraction(self) -> float | None:
            return self.position / len(self.items)

    events: list[Event] = []
    chunk = Chunk(Sized(range(4)), ListWriter(), size=2)
    await launch(store, single(chunk), events=events.append)
    told = [event.fraction for event in events if event.kind is K.CHUNK_COMMITTED]
    assert told == [0.5, 1.0]


async def test_without_a_sink_everything_is_the_same(
    store: Store, trace: Trace
) -> None:
    other = Store()
    chunk, _, _ = copying(range(20))
    copied, _, _ = copying(range(20))
    await launch(store, job(trace.step("a"), Step("copy", chunk)))
    events: list[Event] = []
    await launch(
        other, job(trace.step("a"), Step("copy", copied)), events=events.append
    )
    assert store.dump() == other.dump()


@pytest.mark.parametrize("exc", [ValueError("sink"), SystemExit(3)])
async def test_a_sink_that_raises_harms_nobody(
    store: Store, trace: Trace, exc: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def sink(event: Event) -> None:
        raise exc

    def work(ctx: StepContext) -> None:
        ctx.progress(1)

    chunk, _, _ = copying(range(20))
    nodes = Step("work", work), Step("copy", chunk)
    report = await launch(store, job(*nodes), events=sink)
    assert report.status is BatchStatus.COMPLETED
    assert "the event sink raised on job.ended" in caplog.text


async def test_logs_of_user_code_carry_the_ids_of_execution_and_step(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(ctx: StepContext) -> None:
        ctx.log.info("from the context")
        logging.getLogger("somebody.else").info("from a library")

    def plain(ctx: StepContext) -> None:
        logging.getLogger("somebody.else").info("from a thread")

    caplog.handler.addFilter(Correlated())
    with caplog.at_level(logging.INFO):
        await launch(
            store,
            job(Step("work", work), Step("plain", plain, then={"*": COMPLETE})),
            inline=False,
        )
    logging.getLogger("somebody.else").warning("outside")
    ids = [
        (record.message, getattr(record, "execution_id"), getattr(record, "step_id"))  # noqa: B009  # a filter has put them there
        for record in caplog.records
    ]
    assert ids == [
        ("from the context", 1, 1),
        ("from a library", 1, 1),
        ("from a thread", 1, 2),
        ("outside", None, None),
    ]
    assert getattr(caplog.records[0], "node") == "work"  # noqa: B009  # the adapter has put it there
