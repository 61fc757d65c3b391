"""Cases of the area flow: routes, deciders, listeners, exits."""

import itertools
from collections.abc import Callable

import pytest

from tests.cases.world import World
from tests.job.harness import Trace, message_of
from triolet.actors import (
    COMPLETE,
    FAIL,
    STOP,
    BatchStatus,
    DeciderContext,
    Decision,
    DefinitionError,
    Exit,
    IncompatibleDefinition,
    Job,
    JobFailed,
    JobListener,
    Node,
    Step,
    StepContext,
    StepListener,
    StepOutcome,
    compile_job,
)


def flow(*nodes: Node) -> Job:
    return Job("flow", nodes)


# Exits that no rule covers


async def test_an_exit_without_a_rule_names_the_step_the_code_and_the_rules(
    world: World,
) -> None:
    """C003."""

    def work(ctx: StepContext) -> Exit:
        return Exit("THIRD")

    step = Step("load", work, then={"FIRST": COMPLETE, "SECOND": COMPLETE})
    report = await world.launch(flow(step))
    assert message_of(report) == (
        "'load' ended with exit code 'THIRD'; "
        "it has rules for 'FAILED', 'SECOND' and 'FIRST'"
    )
    assert world.statuses() == [("load", "COMPLETED")]
    assert report.step("load").exit_code == "THIRD"


async def test_a_rule_that_is_added_afterwards_is_a_changed_definition(
    world: World, trace: Trace
) -> None:
    """C003, its second half: the issue has changed definitions refused on restart."""

    def work(ctx: StepContext) -> Exit:
        return Exit("THIRD")

    await world.launch(flow(Step("load", work, then={"FIRST": COMPLETE})))
    more = Step("load", work, then={"FIRST": COMPLETE, "THIRD": "more"})
    with pytest.raises(IncompatibleDefinition, match="'THIRD' goes to 'more'"):
        await world.launch(flow(more, trace.step("more")))
    assert world.count()["execution"] == 1


def test_a_step_whose_success_leads_nowhere_is_a_definition_error() -> None:
    """C003: what can be seen when the job is defined is reported then."""
    lost = Step("load", lambda ctx: None, then={"FAILED": COMPLETE})
    with pytest.raises(DefinitionError, match="'load': success leads nowhere"):
        compile_job(flow(lost))


# Deciders after steps


def setting(code: str) -> StepListener:
    def after(ctx: StepContext, outcome: StepOutcome) -> Exit:
        return Exit(code)

    return StepListener("setting", after=after)


def returning(code: str) -> Callable[[StepContext], Exit]:
    return lambda ctx: Exit(code)


@pytest.mark.parametrize("source", ["listener", "tasklet"])
async def test_a_decider_sees_a_custom_exit_code_of_the_step_before_it(
    world: World, trace: Trace, source: str
) -> None:
    """C004."""
    seen: list[str | None] = []

    def decide(ctx: DeciderContext) -> str:
        assert ctx.preceding is not None
        seen.append(ctx.preceding.exit_code)
        return ctx.preceding.exit_code

    if source == "listener":
        load = trace.step("load", listeners=[setting("PART")])
    else:
        load = Step("load", returning("PART"))
    choice = Decision("way", decide, then={"PART": "part", "*": "rest"})
    nodes = load, choice, trace.step("part", then={"*": COMPLETE}), trace.step("rest")
    report = await world.launch(flow(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert seen == ["PART"]
    assert trace.calls[-1] == "part"
    assert "rest" not in trace.calls


async def test_a_restart_stays_on_the_way_that_was_chosen(
    world: World, trace: Trace
) -> None:
    """C005: later steps changed what the decider had looked at."""
    counter = [0]
    asked: list[int] = []

    def decide(ctx: DeciderContext) -> str:
        asked.append(counter[0])
        return "A" if counter[0] == 0 else "B"

    def count(ctx: StepContext) -> None:
        counter[0] += 1

    nodes = (
        trace.step("before"),
        Decision("way", decide, then={"A": "count", "B": "b"}),
        Step("count", count),
        Step("a", trace.failing("a", until=2), then={"*": COMPLETE}),
        trace.step("b"),
    )
    first = await world.launch(flow(*nodes))
    assert first.status is BatchStatus.FAILED
    second = await world.launch(flow(*nodes))
    assert second.status is BatchStatus.COMPLETED
    assert asked == [0]
    assert trace.calls == ["before", "a", "a"]
    assert counter == [1]


# Exit codes


async def test_the_job_ends_with_the_code_of_its_status_whatever_its_steps_returned(
    world: World,
) -> None:
    """C009: the documented aggregate; store and report agree."""
    nodes = Step("one", returning("WARNING")), Step("two", lambda ctx: None)
    report = await world.launch(flow(*nodes))
    detail = await world.show(report.execution_id)
    assert (report.status, report.exit_code) == (BatchStatus.COMPLETED, "COMPLETED")
    assert detail.execution.exit_code == report.exit_code
    assert [step.exit_code for step in detail.steps] == ["WARNING", "COMPLETED"]
    assert [step.exit_code for step in report.steps] == ["WARNING", "COMPLETED"]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (COMPLETE, BatchStatus.COMPLETED),
        (FAIL, BatchStatus.FAILED),
        (STOP, BatchStatus.STOPPED),
    ],
)
async def test_store_and_report_agree_on_every_end(
    world: World, target: str, status: BatchStatus
) -> None:
    """C009."""
    report = await world.launch(flow(Step("one", returning("X"), then={"*": target})))
    detail = await world.show(report.execution_id)
    assert report.status is detail.execution.status is status
    assert report.exit_code == detail.execution.exit_code == status.value
    assert detail.execution.ended_at is not None
    if status is not BatchStatus.COMPLETED:
        with pytest.raises(JobFailed):
            report.raise_for_status()


ENDS = """
from triolet.actors import COMPLETE, FAIL, STOP, Exit, Job, Step

def warn(ctx):
    return Exit("WARNING")

complete, fail, stop = (
    Job("flow", [Step("one", warn, then={"*": target})])
    for target in (COMPLETE, FAIL, STOP)
)
"""


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("complete", "COMPLETED", 0), ("fail", "FAILED", 11), ("stop", "STOPPED", 12)],
)
def test_the_command_line_agrees_with_the_store_on_every_end(
    world: World, command: Callable[..., int], name: str, status: str, code: int
) -> None:
    """C009: whatever its last step has returned."""
    (world.folder / "ends.py").write_text(ENDS)
    assert command("run", f"ends.py:{name}") == code
    stored = world.query("SELECT status, exit_code FROM triolet_execution")
    assert stored == [(status, status)]


# Listeners that raise


def raising_once(when: str, calls: list[str]) -> StepListener:
    def callback(*arguments: object) -> None:
        calls.append(when)
        if len(calls) == 1:
            raise ValueError("the listener is broken")

    if when == "before":
        return StepListener("audit", before=callback)
    return StepListener("audit", after=callback)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_raising_listener_fails_step_and_job_and_is_named(
    world: World, trace: Trace, when: str
) -> None:
    """C010, for the callbacks of steps."""
    calls: list[str] = []
    listener = raising_once(when, calls)
    nodes = trace.step("load", listeners=[listener]), trace.step("next")
    report = await world.launch(flow(*nodes))
    detail = await world.show(report.execution_id)
    assert report.status is BatchStatus.FAILED
    (step,) = detail.steps
    assert step.status is BatchStatus.FAILED
    assert step.ended_at is not None
    assert detail.execution.ended_at is not None
    assert detail.execution.failure is not None
    assert detail.execution.failure.where == "audit"
    assert detail.execution.failure.message == "the listener is broken"
    assert "next" not in trace.calls
    report = await world.launch(flow(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert calls == [when, when]
    assert trace.calls[-1] == "next"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_raising_listener_of_the_job_fails_it_and_is_named(
    world: World, trace: Trace, when: str
) -> None:
    """C010, for the callbacks of jobs."""
    calls: list[str] = []

    def callback(*arguments: object) -> None:
        calls.append(when)
        if len(calls) == 1:
            raise ValueError("the listener is broken")

    if when == "before":
        listener = JobListener("audit", before=callback)
    else:
        listener = JobListener("audit", after=callback)
    job = Job("flow", [trace.step("load")], listeners=[listener])
    report = await world.launch(job)
    detail = await world.show(report.execution_id)
    assert report.status is detail.execution.status is BatchStatus.FAILED
    assert detail.execution.ended_at is not None
    assert detail.execution.failure is not None
    assert detail.execution.failure.where == "audit"
    assert detail.execution.failure.message == "the listener is broken"
    assert trace.calls == ([] if when == "before" else ["load"])
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert calls == [when, when]
    assert trace.calls == ["load"]


# Elements that are passed by


async def test_a_step_that_no_rule_leads_to_is_a_definition_error(
    world: World, trace: Trace
) -> None:
    """C012."""
    nodes = Decision("way", lambda ctx: "END", then={"END": COMPLETE}), trace.step("X")
    with pytest.raises(DefinitionError, match="'X'"):
        await world.launch(flow(*nodes))
    assert world.query("SELECT count(*) FROM triolet_execution") == [(0,)]


@pytest.mark.parametrize("answer", ["YES", "NO"])
async def test_what_follows_an_optional_step_runs_with_it_and_without_it(
    world: World, trace: Trace, answer: str
) -> None:
    """C013."""
    nodes = (
        trace.step("P"),
        Decision("want", lambda ctx: answer, then={"YES": "O", "NO": "J"}),
        trace.step("O"),
        trace.step("J"),
    )
    report = await world.launch(flow(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == (["P", "O", "J"] if answer == "YES" else ["P", "J"])
    assert world.count()["step"] == len(trace.calls)


async def test_a_job_whose_every_step_is_passed_by_completes(
    world: World, trace: Trace
) -> None:
    """C013, its variant."""
    nodes = (
        Decision("want", lambda ctx: "NO", then={"YES": "O", "NO": COMPLETE}),
        trace.step("O"),
    )
    report = await world.launch(flow(*nodes))
    assert report.status is BatchStatus.COMPLETED
    assert (trace.calls, report.steps) == ([], ())
    assert world.count()["step"] == 0


# Specificity, as a running job shows it

WAYS = {"pre": "exact", "pre?x": "longer", "pre*": "prefix", "*": "any"}


@pytest.mark.parametrize("order", list(itertools.permutations(WAYS))[::5])
@pytest.mark.parametrize(
    ("code", "way"),
    [("pre", "exact"), ("preYx", "longer"), ("preYy", "prefix"), ("q", "any")],
)
async def test_the_more_specific_rule_wins_in_any_order(
    world: World, trace: Trace, order: tuple[str, ...], code: str, way: str
) -> None:
    """C002, end to end; the table of all pairs is a test of the plan."""
    then = {pattern: WAYS[pattern] for pattern in order}
    ends = [trace.step(name, then={"*": COMPLETE}) for name in WAYS.values()]
    report = await world.launch(flow(Step("one", returning(code), then=then), *ends))
    assert report.status is BatchStatus.COMPLETED
    assert trace.calls == [way]
