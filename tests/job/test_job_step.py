"""Steps that run other jobs: identity, parameters, exits, and what refuses them."""

from collections.abc import Mapping
from uuid import UUID

import pytest
import trio
import trio.testing
from attrs import evolve

from tests.job.components import ListReader, RowWriter
from tests.job.harness import (
    Crash,
    Store,
    Trace,
    job,
    launch,
    message_of,
    running,
    trio_clock,
)
from triolet.actors import (
    COMPLETE,
    STOP,
    ActorState,
    BatchStatus,
    ChildExecution,
    Chunk,
    ComponentsInUse,
    DeciderContext,
    Decision,
    Directive,
    Event,
    EventKind,
    Exit,
    FailureCategory,
    FromParent,
    Job,
    JobContext,
    JobListener,
    JobOutcome,
    JobStep,
    OutcomeUnknown,
    Parameter,
    Split,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
)
from triolet.actors.job.nested import CHILD_STATE
from triolet.actors.kernel.liveness import this_process
from triolet.storage.backend import run
from triolet.storage.commands import OwnerFacts, RegisterOwner
from triolet.storage.model.lineage import Lineage, lineage_of


def child(*steps: Step, name: str = "child", **settings: object) -> Job:
    return Job(name, steps, **settings)  # type: ignore[arg-type]


def lineages(store: Store) -> list[Lineage | None]:
    return [lineage_of(one.parameters) for one in store.executions]


def instances(store: Store) -> list[int]:
    return [one.instance_id for one in store.executions]


async def test_a_child_is_an_execution_of_its_own_and_says_whose(
    store: Store, trace: Trace
) -> None:
    inner = child(trace.step("a"), trace.step("b"))
    outer = job(trace.step("first"), JobStep("run", inner), trace.step("last"))
    report = await launch(store, outer)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["first", "a", "b", "last"]
    assert [one.instance_id for one in store.executions] == [1, 2]
    assert lineages(store) == [None, Lineage(1, "run", 1)]
    assert [one.node for one in report.steps] == ["first", "run", "last"]
    assert report.step("run").exit_code == "COMPLETED"


async def test_later_steps_read_which_execution_it_was(store: Store) -> None:
    seen: list[object] = []
    outer = job(
        JobStep("run", child(Step("a", lambda ctx: None))),
        Step("look", lambda ctx: seen.append(ctx.state_of("run"))),
    )
    await launch(store, outer)
    assert seen == [{CHILD_STATE: {"job": "child", "execution_id": 2}}]


async def test_the_child_sees_its_own_parameters_only(store: Store) -> None:
    seen: list[Mapping[str, object]] = []
    inner = child(
        Step("a", lambda ctx: seen.append(dict(ctx.parameters))),
        parameters=[
            Parameter("day", str),
            Parameter("count", int),
            Parameter("dry", bool, default=False, identifying=False),
        ],
    )
    outer = job(
        JobStep("run", inner, parameters={"day": FromParent("date"), "count": 7})
    )
    await launch(store, outer, {"date": "2026-12-03", "other": 1})
    assert seen == [{"day": "2026-12-03", "count": 7, "dry": False}]


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_function_makes_the_parameters_of_the_child_once(
    store: Store, trace: Trace, kind: str
) -> None:
    made: list[int] = []
    seen: list[object] = []

    def plain(ctx: StepContext) -> dict[str, object]:
        made.append(ctx.attempt)
        return {"number": len(made), "day": FromParent("day")}

    async def slow(ctx: StepContext) -> dict[str, object]:
        await trio.lowlevel.checkpoint()
        return plain(ctx)

    async def work(ctx: StepContext) -> None:
        seen.append((ctx.attempt, dict(ctx.parameters)))
        if ctx.attempt == 1:
            raise ValueError("not yet")

    inner = child(Step("a", work))
    outer = job(
        JobStep("run", inner, parameters=plain if kind == "plain" else slow),
    )
    first = await launch(store, outer, {"day": "monday"})
    assert first.status is BatchStatus.FAILED
    second = await launch(store, outer, {"day": "monday"})
    assert second.status is BatchStatus.COMPLETED
    assert made == [1]
    given = {"number": 1, "day": "monday"}
    assert seen == [(1, given), (2, given)]
    assert instances(store) == [1, 2, 1, 2]
    assert lineages(store)[1::2] == [Lineage(1, "run", 1), Lineage(1, "run", 3)]


async def test_secret_values_are_made_again_and_the_others_are_kept(
    store: Store,
) -> None:
    made: list[int] = []
    seen: list[Mapping[str, object]] = []

    def given(ctx: StepContext) -> dict[str, object]:
        made.append(ctx.attempt)
        return {"token": f"secret {len(made)}", "number": len(made)}

    def work(ctx: StepContext) -> None:
        seen.append(dict(ctx.parameters))
        if ctx.attempt == 1:
            raise ValueError("secret 1 was refused")

    declared = [Parameter("token", str, secret=True), Parameter("number", int)]
    inner = child(Step("a", work), parameters=declared)
    outer = job(JobStep("run", inner, parameters=given))
    assert "*** was refused" in message_of(await launch(store, outer))
    await launch(store, outer)
    assert seen == [
        {"token": "secret 1", "number": 1},
        {"token": "secret 2", "number": 1},
    ]


async def test_children_of_two_parents_and_of_two_steps_are_not_the_same(
    store: Store, trace: Trace
) -> None:
    inner = child(trace.step("a"))
    outer = job(JobStep("one", inner), JobStep("two", inner))
    await launch(store, outer, {"day": "monday"})
    await launch(store, outer, {"day": "tuesday"})
    assert trace.calls == ["a"] * 4
    assert instances(store) == [1, 2, 3, 4, 5, 6]


async def test_a_restart_continues_the_child_where_it_was(
    store: Store, trace: Trace
) -> None:
    inner = child(trace.step("a"), Step("b", trace.failing("b", 2)), trace.step("c"))
    outer = job(JobStep("run", inner), trace.step("last"))
    first = await launch(store, outer)
    assert first.status is BatchStatus.FAILED
    failure = first.failure
    assert failure is not None
    assert failure.code == "child_not_completed"
    assert failure.where == "run"
    assert failure.category is FailureCategory.USER_COMPONENT
    assert failure.message == (
        "execution 2 of job 'child' FAILED: b: ValueError: b is broken"
    )
    assert failure.place is not None
    second = await launch(store, outer)
    assert second.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b", "b", "c", "last"]


async def test_a_child_that_completed_is_not_run_again(
    store: Store, trace: Trace
) -> None:
    inner = child(trace.step("a"))
    outer = job(JobStep("run", inner, exits={"COMPLETED": "DONE"}), trace.step("last"))
    # The parent's open and start, the child's open, start and end; then the crash.
    store.faults[4] = Crash()
    with pytest.raises(BaseExceptionGroup):
        await launch(store, outer)
    owners = store.inner._tables.owners
    owners[1] = evolve(owners[1], lease_until=0)
    assert [one.status.value for one in store.executions] == ["STARTED", "COMPLETED"]
    report = await launch(store, outer)
    assert report.status is BatchStatus.COMPLETED
    assert report.step("run").exit_code == "DONE"
    assert trace.calls == ["a", "last"]
    assert instances(store) == [1, 2, 1]


async def test_codes_are_renamed_and_lead_on(store: Store, trace: Trace) -> None:
    inner = child(Step("a", trace.failing("a")))
    outer = job(
        JobStep(
            "run",
            inner,
            exits={"FAILED": "LATE"},
            then={"LATE": "tidy", "COMPLETED": COMPLETE},
        ),
        trace.step("tidy"),
    )
    report = await launch(store, outer)
    assert report.status is BatchStatus.COMPLETED
    assert report.step("run").status is BatchStatus.FAILED
    assert report.step("run").exit_code == "LATE"
    assert trace.calls == ["a", "tidy"]


async def test_a_child_that_stops_itself_stops_its_parent(
    store: Store, trace: Trace
) -> None:
    def answer(ctx: DeciderContext) -> str:
        return "WAIT" if ctx.attempt == 1 else "GO"

    inner = Job(
        "child",
        [
            trace.step("a"),
            Decision("d", answer, then={"WAIT": STOP, "GO": "b"}),
            trace.step("b"),
        ],
    )
    outer = job(JobStep("run", inner), trace.step("last"))
    assert (await launch(store, outer)).status is BatchStatus.STOPPED
    assert (await launch(store, outer)).status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "b", "last"]


async def test_an_unknown_outcome_goes_up_and_blocks_until_it_is_resolved(
    store: Store,
) -> None:
    def work(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            raise OutcomeUnknown("the bank did not answer")

    outer = job(JobStep("run", child(Step("a", work))))
    async with running(store) as runtime:
        first = await runtime.launch(outer)
        assert first.status is BatchStatus.UNKNOWN
        assert first.failure is not None
        assert "execution 2 of job 'child' UNKNOWN" in (first.failure.message or "")
        await runtime.recover(1, Directive.MARK_FAILED, actor="eve")
        refused = await runtime.launch(outer)
        assert "the outcome of execution 2 is UNKNOWN" in message_of(refused)
        await runtime.recover(2, Directive.MARK_FAILED, actor="eve")
        assert (await runtime.launch(outer)).status is BatchStatus.COMPLETED


async def test_a_child_that_somebody_else_runs_fails_the_step(
    store: Store, trace: Trace
) -> None:
    outer = job(JobStep("run", child(Step("a", trace.failing("a", 2)))))
    await launch(store, outer)
    facts = OwnerFacts(host="mill", pid=42)
    run(store.inner, UUID(int=9), RegisterOwner(facts, 10**9))
    tables = store.inner._tables
    row = tables.executions[2]
    row.record = evolve(
        row.record, status=BatchStatus.STARTED, owner_id=2, ended_at=None
    )
    message = message_of(await launch(store, outer))
    assert message == (
        "job 'child' could not be run: this job instance is already running: execution "
        "2 is owned by process 42 on host mill"
    )


async def test_an_abandoned_child_fails_the_step(store: Store, trace: Trace) -> None:
    outer = job(JobStep("run", child(Step("a", trace.failing("a", 2)))))
    async with running(store) as runtime:
        await runtime.launch(outer)
        await runtime.abandon(2, actor="eve", reason="it is over")
        message = message_of(await runtime.launch(outer))
    assert "job 'child' could not be run" in message
    assert "was abandoned" in message


async def test_a_child_is_restarted_by_its_parent_only(
    store: Store, trace: Trace
) -> None:
    inner = child(Step("a", trace.failing("a", 2)))
    async with running(store) as runtime:
        await runtime.launch(job(JobStep("run", inner)))
        with pytest.raises(ChildExecution) as caught:
            await runtime.restart(2, inner)
    assert str(caught.value) == (
        "execution 2 is run by step 'run' of execution 1: restart that one"
    )


async def test_the_same_job_launched_by_itself_is_another_instance(
    store: Store, trace: Trace
) -> None:
    inner = child(trace.step("a"))
    await launch(store, job(JobStep("run", inner)))
    await launch(store, inner)
    assert instances(store) == [1, 2, 3]


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (None, "the parameters of job 'child' must be a dict, not a NoneType"),
        ({"dy": "x"}, "parameter 'dy' is unknown to the job: did you mean 'day'?"),
        ({"day": 5}, "parameter 'day' must be str, not int"),
        ({}, "parameter 'day' is required, but missing"),
        ({"day": FromParent("date")}, "'date' is not among those of the parent"),
        ({"day": "x", "triolet.run": 1}, "is reserved"),
    ],
)
async def test_what_the_function_returns_is_checked(
    store: Store, trace: Trace, returned: object, sentence: str
) -> None:
    inner = child(trace.step("a"), parameters=[Parameter("day", str)])
    outer = job(JobStep("run", inner, parameters=lambda ctx: returned))
    report = await launch(store, outer)
    assert sentence in message_of(report)
    assert report.failure is not None
    assert report.failure.code == "parameters_failed"
    assert len(store.executions) == 1


async def test_a_function_that_raises_fails_the_step_and_is_asked_again(
    store: Store, trace: Trace
) -> None:
    def given(ctx: StepContext) -> dict[str, object]:
        if ctx.attempt == 1:
            raise ValueError("no calendar")
        return {}

    outer = job(JobStep("run", child(trace.step("a")), parameters=given))
    assert message_of(await launch(store, outer)) == "no calendar"
    assert (await launch(store, outer)).status is BatchStatus.COMPLETED


async def test_a_job_that_may_be_attempted_once_is_not_continued(
    store: Store, trace: Trace
) -> None:
    inner = child(Step("a", trace.failing("a", 2)), restartable=False)
    outer = job(JobStep("run", inner))
    await launch(store, outer)
    assert "job 'child' is not restartable" in message_of(await launch(store, outer))
    assert trace.calls == ["a"]


async def test_answers_of_the_childs_deciders_are_kept_by_a_restart(
    store: Store, trace: Trace
) -> None:
    asked: list[int] = []

    def answer(ctx: DeciderContext) -> str:
        asked.append(ctx.attempt)
        return "GO"

    inner = Job(
        "child",
        [
            trace.step("a"),
            Decision("d", answer, then={"GO": "b"}),
            Step("b", trace.failing("b", 2)),
        ],
    )
    outer = job(JobStep("run", inner))
    await launch(store, outer)
    assert (await launch(store, outer)).status is BatchStatus.COMPLETED
    assert asked == [1]


async def test_children_run_in_branches_and_in_children(
    store: Store, trace: Trace
) -> None:
    innermost = child(trace.step("deep"), name="innermost")
    inner = child(JobStep("down", innermost))
    outer = job(
        trace.step("first"),
        Split(
            "both", [JobStep("left", inner), JobStep("right", inner)], max_parallel=2
        ),
    )
    report = await launch(store, outer)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["first", "deep", "deep"]
    nodes = sorted(one.node for one in lineages(store) if one is not None)
    assert nodes == ["down", "down", "left", "right"]


async def test_a_child_is_shown_inside_of_its_step(store: Store) -> None:
    seen: list[ActorState] = []

    async with running(store) as runtime:

        def look(ctx: StepContext) -> None:
            seen.append(runtime.inspect())

        await runtime.launch(job(JobStep("run", child(Step("look", look)))))
    text = str(seen[0])
    assert text.count("job ") == 2
    assert text.endswith(
        "  job demo (execution 1): running\n"
        "    step run: running\n"
        "      job child (execution 2): running\n"
        "        step look: running"
    )


async def test_a_childs_events_are_its_own(store: Store, trace: Trace) -> None:
    events: list[Event] = []
    outer = job(JobStep("run", child(trace.step("a"))))
    await launch(store, outer, events=events.append)
    started = [one for one in events if one.kind is EventKind.JOB_STARTED]
    assert [(one.job, one.execution_id) for one in started] == [
        ("demo", 1),
        ("child", 2),
    ]
    steps = [one for one in events if one.kind is EventKind.STEP_STARTED]
    assert [(one.job, one.node) for one in steps] == [("demo", "run"), ("child", "a")]


def sleeping(trace: Trace, node: str = "a") -> Step:
    async def work(ctx: StepContext) -> None:
        trace.calls.append(node)
        if ctx.attempt == 1:
            await trio.sleep(3600)

    return Step(node, work)


@pytest.mark.parametrize("stopped", [1, 2])
async def test_a_stop_of_either_stops_both(
    trace: Trace, autojump_clock: trio.testing.MockClock, stopped: int
) -> None:
    store = Store(clock=trio_clock)
    outer = job(JobStep("run", child(sleeping(trace), trace.step("b"))))
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(5)
            await runtime.request_stop(stopped, actor="eve")

        nursery.start_soon(stop)
        report = await runtime.launch(outer)
        assert report.status is BatchStatus.STOPPED
        assert [one.status.value for one in store.executions] == ["STOPPED", "STOPPED"]
        assert (await runtime.launch(outer)).status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "a", "b"]


async def test_a_shutdown_stops_the_child(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    outer = job(JobStep("run", child(sleeping(trace))))
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def shut() -> None:
            await trio.sleep(5)
            report = await runtime.shutdown()
            assert report.drained

        nursery.start_soon(shut)
        assert (await runtime.launch(outer)).status is BatchStatus.STOPPED
    assert store.settled()


async def test_a_cancelled_launch_leaves_both_stopped(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    outer = job(JobStep("run", child(sleeping(trace))))
    async with running(store) as runtime:
        with trio.move_on_after(5):
            await runtime.launch(outer)
    assert [one.status.value for one in store.executions] == ["STOPPED", "STOPPED"]


async def test_a_stop_cancels_the_function_of_the_parameters(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)

    async def given(ctx: StepContext) -> dict[str, object]:
        await trio.sleep(3600)
        return {}

    outer = job(JobStep("run", child(trace.step("a")), parameters=given))
    async with running(store) as runtime, trio.open_nursery() as nursery:

        async def stop() -> None:
            await trio.sleep(5)
            runtime.stop()

        nursery.start_soon(stop)
        assert (await runtime.launch(outer)).status is BatchStatus.STOPPED
    assert trio.current_time() < 100
    assert len(store.executions) == 1


async def test_the_failure_of_a_sibling_stops_the_child(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)

    async def fail(ctx: StepContext) -> None:
        await trio.sleep(5)
        raise ValueError("broken")

    outer = job(
        trace.step("first"),
        Split(
            "both",
            [JobStep("run", child(sleeping(trace))), Step("b", fail)],
            max_parallel=2,
        ),
    )
    report = await launch(store, outer)
    assert report.status is BatchStatus.FAILED
    assert report.step("run").status is BatchStatus.STOPPED
    assert store.executions[1].status is BatchStatus.STOPPED


async def test_a_takeover_of_the_parent_takes_over_the_child(
    store: Store, trace: Trace
) -> None:
    if this_process().process_start is None:
        pytest.skip("this platform cannot prove that a process is dead")
    outer = job(JobStep("run", child(trace.step("a"), trace.step("b"))))
    store.faults[3] = Crash()
    with pytest.raises(BaseExceptionGroup):
        await launch(store, outer)
    owners = store.inner._tables.owners
    dead = evolve(this_process(), pid=(1 << 22) + 1)
    owners[1] = evolve(owners[1], facts=dead)
    report = await launch(store, outer)
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a", "a", "b"]
    assert [one.status.value for one in store.executions] == [
        *["FAILED"] * 2,
        *["COMPLETED"] * 2,
    ]


async def test_two_launches_do_not_share_a_childs_reader(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)
    inner = child(
        sleeping(trace), Step("copy", Chunk(ListReader((1,)), RowWriter(), size=1))
    )
    outer = job(JobStep("run", inner))
    async with running(store) as runtime, trio.open_nursery() as nursery:
        nursery.start_soon(runtime.launch, outer)
        await trio.sleep(5)
        with pytest.raises(ComponentsInUse):
            await runtime.launch(inner)
        runtime.stop()


async def test_a_childs_job_listeners_are_called(store: Store, trace: Trace) -> None:
    def after(ctx: JobContext, outcome: JobOutcome) -> None:
        trace.calls.append(f"{ctx.job} {outcome.status}")

    listener = JobListener("both", after=after)
    inner = child(trace.step("a"), listeners=[listener])
    await launch(store, job(JobStep("run", inner), listeners=[listener]))
    assert trace.calls == ["a", "child COMPLETED", "demo COMPLETED"]


async def test_a_step_that_runs_a_job_has_listeners(store: Store, trace: Trace) -> None:
    def after(ctx: StepContext, outcome: StepOutcome) -> Exit:
        trace.calls.append(f"after {outcome.exit_code}")
        return Exit("SEEN")

    listener = StepListener(
        "l", before=lambda ctx: trace.calls.append("before"), after=after
    )
    step = JobStep("run", child(trace.step("a")), listeners=[listener])
    report = await launch(store, job(step))
    assert trace.calls == ["before", "a", "after COMPLETED"]
    assert report.step("run").exit_code == "SEEN"


async def test_a_child_that_was_taken_over_alone_fails_its_step(store: Store) -> None:
    def lose(ctx: StepContext) -> None:
        if ctx.attempt == 1:
            tables = store.inner._tables
            row = tables.executions[ctx.execution_id]
            row.record = evolve(row.record, status=BatchStatus.FAILED)

    outer = job(JobStep("run", child(Step("a", lose))))
    report = await launch(store, outer)
    assert message_of(report) == (
        "job 'child' could not be run: execution 2 is FAILED and not owned by this "
        "process any more"
    )
    assert (await launch(store, outer)).status is BatchStatus.COMPLETED


async def test_a_step_whose_time_is_over_fails_and_stops_its_child(
    trace: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    store = Store(clock=trio_clock)

    async def wait(ctx: StepContext) -> None:
        await trio.sleep(3600)

    inner = child(trace.step("a"), Step("wait", wait))
    report = await launch(store, job(JobStep("run", inner, timeout=60)))
    assert report.failure is not None
    assert report.failure.code == "step_timed_out"
    assert trio.current_time() < 120
    statuses = [one.status for one in store.executions]
    assert statuses == [BatchStatus.FAILED, BatchStatus.STOPPED]
    assert trace.calls == ["a"]


async def test_each_visit_of_a_step_has_a_child_of_its_own(
    store: Store, trace: Trace
) -> None:
    def again(ctx: DeciderContext) -> str:
        return "YES" if ctx.visit < 3 else "NO"

    inner = child(trace.step("a"))
    way = Decision("again", again, then={"YES": "run", "NO": COMPLETE})
    report = await launch(store, job(JobStep("run", inner, visit_limit=5), way))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == ["a"] * 3
    found = [one for one in lineages(store) if one is not None]
    assert [one.visit for one in found] == [1, 2, 3]
    assert len(set(instances(store))) == 4
