"""Cases of the area parameters and identity: what makes an instance, and what not."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

from tests.cases.world import World
from tests.job.harness import Trace
from triolet.actors import (
    BatchStatus,
    InstanceComplete,
    InvalidParameter,
    Job,
    JobStep,
    Parameter,
    Step,
    StepContext,
    open_runtime,
)
from triolet.actors.plan.arguments import parse_arguments


def plain(trace: Trace) -> Job:
    return Job("plain", [trace.step("work")])


# Running anew


async def test_a_new_run_inherits_nothing_from_the_run_before(
    world: World, trace: Trace
) -> None:
    """C098."""
    for given in ({"a": 1}, {}, {"b": 2}):
        await world.launch(plain(trace), given, anew=True)
    assert world.stored_parameters() == [
        {"a": 1, "triolet.run": 1},
        {"triolet.run": 2},
        {"b": 2, "triolet.run": 3},
    ]


async def test_a_new_run_after_a_failed_one_inherits_nothing_either(
    world: World, trace: Trace
) -> None:
    """C098."""
    failing = Job("plain", [Step("work", trace.failing("work"))])
    await world.launch(failing, {"a": 1}, anew=True)
    report = await world.launch(failing, {"b": 2}, anew=True)
    assert report.restart_of is None
    assert world.stored_parameters() == [
        {"a": 1, "triolet.run": 1},
        {"b": 2, "triolet.run": 2},
    ]


async def test_twenty_new_runs_at_once_are_twenty_instances(
    world: World, trace: Trace
) -> None:
    """C100."""
    runs: list[int | None] = []
    async with open_runtime(world.url, world.options) as runtime:

        async def run() -> None:
            runs.append((await runtime.launch(plain(trace), anew=True)).run)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(run)
    assert sorted(run or 0 for run in runs) == list(range(1, 21))
    assert world.count()["instance"] == 20
    assert len(trace.calls) == 20


async def test_new_runs_of_two_runtimes_at_once_get_different_numbers(
    world: World, trace: Trace
) -> None:
    """C100."""
    runs: list[int | None] = []

    async def run() -> None:
        runs.append((await world.launch(plain(trace), anew=True)).run)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(run)
    assert sorted(run or 0 for run in runs) == list(range(1, 11))


async def test_a_number_that_was_used_already_is_skipped(
    world: World, trace: Trace
) -> None:
    """C100: after a restore the numbers given are older than those in use."""
    for _ in range(3):
        await world.launch(plain(trace), anew=True)
    with closing(sqlite3.connect(world.path)) as connection:
        connection.execute("UPDATE triolet_instance SET run = NULL WHERE run > 1")
        connection.commit()
    runs = [(await world.launch(plain(trace), anew=True)).run for _ in range(3)]
    assert runs == [4, 5, 6]
    assert world.count()["instance"] == 6


# Launching a completed instance again


@pytest.mark.parametrize("given", [None, {}, {"note": "a"}], ids=repr)
async def test_no_identifying_parameters_are_an_identity_like_any_other(
    world: World, trace: Trace, given: dict[str, object] | None
) -> None:
    """C099."""
    job = Job(
        "plain",
        [trace.step("work")],
        parameters=[Parameter("note", str, default="", identifying=False)],
    )
    await world.launch(job, given)
    before = world.count()
    for again in (None, {}, {"note": "b"}):
        with pytest.raises(InstanceComplete, match=r"\(execution 1\)"):
            await world.launch(job, again)
    assert world.count() == before
    assert trace.calls == ["work"]


JOBS = """
from triolet.actors import Job, Step

async def work(ctx):
    with open("runs", "a") as file:
        file.write("x")

job = Job("plain", [Step("work", work)])
"""


def test_the_command_line_gives_the_same_answer_as_the_library(
    world: World, command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """C099, C103: none and again none; six parameters in another order."""
    Path("jobs.py").write_text(JOBS)
    run = "run", "jobs.py:job"
    assert command(*run) == 0
    assert command(*run) == 3
    assert (
        "to run it anew use 'triolet run ... --new' (anew=True)"
        in capsys.readouterr().err
    )
    words = [f"p{number}:int={number}" for number in range(6)]
    assert command(*run, *words) == 0
    assert command(*run, *reversed(words)) == 3
    assert Path("runs").read_text() == "xx"


# Names


@pytest.mark.parametrize("name", ["run.id", "run", "random", "id", "name", "version"])
async def test_names_that_an_engine_might_use_itself_are_kept_intact(
    world: World, trace: Trace, name: str
) -> None:
    """C101."""
    report = await world.launch(plain(trace), {name: "mine"}, anew=True)
    assert report.status is BatchStatus.COMPLETED
    assert world.stored_parameters() == [{name: "mine", "triolet.run": 1}]


@pytest.mark.parametrize("name", ["triolet.run", "triolet.", "triolet.x"])
async def test_names_that_are_reserved_are_refused_with_the_reason(
    world: World, trace: Trace, name: str
) -> None:
    """C101."""
    with pytest.raises(InvalidParameter, match=r"names may not start with 'triolet\.'"):
        await world.launch(plain(trace), {name: 1}, anew=True)
    assert world.count()["instance"] == 0


# Order


async def test_the_order_in_which_parameters_are_given_makes_no_instance(
    world: World, trace: Trace
) -> None:
    """C103: from the library, and as the command line reads them."""
    failing = Job("plain", [Step("work", trace.failing("work"))])
    values: list[tuple[str, object]] = [
        ("day", "2026-11-30"),
        ("limit", 7),
        ("full", True),
        ("Ä", "x"),
        ("a", -1),
        ("z", 1 << 63),
    ]
    words = [
        f"{name}={value}"
        if isinstance(value, str)
        else f"{name}:{type(value).__name__}={value}"
        for name, value in values
    ]
    draw = random.Random(3)
    instances: set[int] = set()
    for _ in range(10):
        draw.shuffle(values)
        draw.shuffle(words)
        for given in (dict(values), parse_arguments((), words)):
            instances.add((await world.launch(failing, given)).instance_id)
    assert instances == {1}
    assert world.count()["execution"] == 20


async def test_the_type_of_a_value_is_part_of_the_identity(
    world: World, trace: Trace
) -> None:
    """C103: what only looks equal is another instance."""
    same: tuple[object, ...] = ("1", 1, True)
    reports = [await world.launch(plain(trace), {"x": value}) for value in same]
    assert len({report.instance_id for report in reports}) == 3


# Children


async def test_a_child_is_continued_with_the_parameters_that_it_was_given(
    world: World, trace: Trace
) -> None:
    """C104."""
    declared = [
        Parameter("day", str),
        Parameter("rate", str),
        Parameter("count", int),
        Parameter("note", str, identifying=False),
    ]
    given = {"day": "2026-12-03", "rate": "1.10", "count": 2**63, "note": "first"}
    seen: list[dict[str, object]] = []

    def made(times: list[int]) -> Job:
        def parameters(ctx: StepContext) -> dict[str, object]:
            times.append(ctx.attempt)
            return {**given, "note": "first" if ctx.attempt == 1 else "later"}

        def work(ctx: StepContext) -> None:
            seen.append(dict(ctx.parameters))
            if ctx.attempt == 1:
                raise ValueError("not yet")

        child = Job(
            "child", [trace.step("before"), Step("a", work)], parameters=declared
        )
        return Job("parent", [JobStep("run", child, parameters=parameters)])

    times: list[int] = []
    assert (await world.launch(made(times))).status is BatchStatus.FAILED
    # Another process: all objects are made anew.
    assert (await world.launch(made(times))).status is BatchStatus.COMPLETED
    assert seen == [given, given]
    assert times == [1]
    assert trace.calls == ["before"]
    assert world.count() == {"instance": 2, "execution": 4, "step": 5, "decision": 1}
    assert (await world.show(4)).execution.restart_of == 2
