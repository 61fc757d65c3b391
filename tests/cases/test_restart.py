"""Cases of the areas restart and repository: what comes back, and what is refused."""

from collections.abc import Callable

import pytest

from tests.cases.world import World
from tests.job.components import ListReader, RowWriter, copying, fail_once
from tests.job.harness import Trace, message_of
from triolet.actors import (
    BatchStatus,
    Chunk,
    Event,
    EventKind,
    InstanceComplete,
    InvalidParameter,
    Job,
    JsonObject,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)


async def test_a_reader_is_opened_with_its_own_last_committed_state(
    world: World,
) -> None:
    """C020: the types intact, and two steps with one kind of reader never mixed."""
    one, first, _ = copying(range(10), size=5)
    two, second, writer = copying(range(100, 130), size=10)
    writer.on_write = fail_once(125)
    job = Job("two", [Step("one", one), Step("two", two)])
    report = await world.launch(job)
    assert report.status is BatchStatus.FAILED
    report = await world.launch(job)
    assert report.status is BatchStatus.COMPLETED
    assert first.states == [None]
    assert second.states == [None, {"position": 20, "tag": "x"}]
    assert world.rows() == [*range(10), *range(100, 130)]


async def test_the_state_of_a_tasklet_comes_back_with_its_types(world: World) -> None:
    """C020."""
    seen: list[JsonObject] = []
    value: JsonObject = {
        "n": 1,
        "big": 1 << 70,
        "half": 0.5,
        "no": None,
        "yes": True,
        "é": ["x"],
    }

    def first(ctx: StepContext) -> None:
        ctx.state.update(value)

    def second(ctx: StepContext) -> None:
        seen.append(ctx.state_of("first"))
        if ctx.attempt == 1:
            raise ValueError("broken")

    job = Job("typed", [Step("first", first), Step("second", second)])
    for _ in range(2):
        await world.launch(job)
    assert seen == [value, value]
    assert [repr(sorted(one.items())) for one in seen] == 2 * [
        repr(sorted(value.items()))
    ]


async def test_a_completed_instance_says_when_it_completed_and_how_to_run_it_anew(
    world: World, trace: Trace
) -> None:
    """C021."""
    job = Job("done", [trace.step("a")])
    report = await world.launch(job)
    before = world.count()
    with pytest.raises(InstanceComplete) as caught:
        await world.launch(job)
    text = str(caught.value)
    assert f"(execution {report.execution_id})" in text
    assert " UTC " in text
    assert "--new' (anew=True)" in text
    assert world.count() == before
    assert trace.calls == ["a"]


async def test_a_restart_names_every_step_that_it_does_not_run_again(
    world: World, trace: Trace
) -> None:
    """C021."""
    job = Job("part", [trace.step("a"), Step("b", trace.failing("b", until=2))])
    await world.launch(job)
    events: list[Event] = []
    options = RuntimeOptions(inline=True, events=events.append)
    async with open_runtime(world.url, options) as runtime:
        report = await runtime.launch(job)
    reused = [one.node for one in events if one.kind is EventKind.COMPLETED_STEP_REUSED]
    assert reused == ["a"]
    assert [one.node for one in report.steps if one.reused] == ["a"]
    detail = await world.show(report.execution_id)
    assert [(one.node, one.execution_id) for one in detail.reused] == [("a", 1)]


JOBS = """
from triolet.actors import Job, Step

async def work(ctx): pass

job = Job("plain", [Step("work", work)])
"""


def test_the_command_line_refuses_a_completed_instance_with_a_code_of_its_own(
    world: World, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """C021."""
    (world.folder / "jobs.py").write_text(JOBS)
    assert command("run", "jobs.py:job") == 0
    assert command("run", "jobs.py:job") == 3
    assert "(execution 1)" in capsys.readouterr().err


# U+0000


async def test_a_zero_character_in_a_state_is_refused_with_the_name_of_the_key(
    world: World,
) -> None:
    """C085."""

    def work(ctx: StepContext) -> None:
        ctx.state["note"] = "a\0b"

    report = await world.launch(Job("zero", [Step("work", work)]))
    assert message_of(report) == (
        "the state of 'work'['note'] holds the character U+0000"
    )
    assert world.statuses() == [("work", "FAILED")]


async def test_a_zero_character_in_a_parameter_is_refused_with_its_name(
    world: World, trace: Trace
) -> None:
    """C085."""
    with pytest.raises(InvalidParameter, match=r"'note' holds the character U\+0000"):
        await world.launch(Job("zero", [trace.step("a")]), {"note": "a\0b"})
    assert world.count()["execution"] == 0


async def test_a_zero_character_in_an_error_is_replaced(world: World) -> None:
    """C085."""

    def work(ctx: StepContext) -> None:
        raise ValueError("a\0b")

    report = await world.launch(Job("zero", [Step("work", work)]))
    assert message_of(report) == "a b"
    detail = await world.show(report.execution_id)
    assert detail.execution.failure == report.failure
    assert detail.execution.status is BatchStatus.FAILED


async def test_a_zero_character_in_a_checkpoint_fails_the_chunk(world: World) -> None:
    """C085."""

    class Reader(ListReader):
        def state(self) -> JsonObject:
            return {"position": self.position, "tag": "a\0b"}

    chunk = Chunk(Reader(range(3)), RowWriter())
    report = await world.launch(Job("zero", [Step("work", chunk)]))
    assert message_of(report) == (
        "the checkpoint of 'work'['tag'] holds the character U+0000"
    )
    assert world.rows() == []
