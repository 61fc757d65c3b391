"""Cases of the areas CLI, operator and stop, as far as operators are concerned."""

import logging
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
import trio

from tests.cases.world import World
from tests.cli.programs import ended, put, spawn, until
from tests.job.components import copying
from triolet.actors import (
    BatchStatus,
    Job,
    LaunchReport,
    Parameter,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)
from triolet.storage.backend import run
from triolet.storage.commands import ExecutionNotFound, RequestStop
from triolet.storage.stores import open_store

Command = Callable[..., int]


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Give the last line on standard error."""
    lines = capsys.readouterr().err.splitlines()
    return lines[-1] if lines else ""


def test_every_outcome_has_a_code_and_one_line_that_names_it(
    world: World, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """C154."""
    ends, plain, typed = (
        put(world.folder, name) for name in ("ends", "plain", "typed")
    )
    outcomes = [
        (["run", plain], 0, "work: COMPLETED"),
        (["run", plain], 3, "has completed"),
        (["run", f"{ends}:raising"], 11, "FAILED"),
        (["run", f"{ends}:unknowing"], 6, "UNKNOWN"),
        (["run", f"{ends}:unknowing"], 6, "UNKNOWN"),
        (["run", f"{ends}:nothing"], 2, "'nothing'"),
        (["run", typed, "day=x", "count=many"], 3, "'count'"),
        (["run"], 1, "--help"),
        (["show", "99"], 4, "99"),
        (["stop", "99"], 4, "99"),
        (["abandon", "1", "--reason", "x", "--yes"], 3, "COMPLETED"),
        (["abandon", "2", "--reason", "x"], 8, "--yes"),
    ]
    for words, code, text in outcomes:
        assert (words, command(*words)) == (words, code)
        assert text in said(capsys)
    world.path.write_bytes(b"no database at all, but long enough to be looked at" * 99)
    assert command("run", plain) == 7
    assert "not a" in said(capsys)


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 12), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_the_end_of_a_process_that_is_signalled_is_seen_by_who_called_it(
    tmp_path: Path, signum: signal.Signals, code: int
) -> None:
    """C154."""
    child = spawn("run", put(tmp_path, "waits"), cwd=tmp_path)
    until((tmp_path / "began").exists)
    child.send_signal(signum)
    assert ended(child)[0] == code


async def test_a_run_that_may_do_nothing_says_why(
    world: World, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """C161: a start limit is reached; the instance is owned by somebody else."""

    def work(ctx: StepContext) -> None:
        raise ValueError("no")

    job = Job("limited", [Step("work", work, start_limit=1)])
    await world.launch(job)
    report = await world.launch(job)
    assert report.failure is not None
    assert report.failure.code == "start_limit_reached"
    assert "start_limit" in (report.failure.message or "")

    target = put(world.folder, "waits")
    child = spawn("run", target, "--store", world.url, cwd=world.folder)
    await trio.to_thread.run_sync(until, (world.folder / "began").exists)
    code = await trio.to_thread.run_sync(
        lambda: ended(spawn("run", target, "--store", world.url, cwd=world.folder))
    )
    assert code[0] == 5
    assert f"process {child.pid}" in code[2]
    child.send_signal(signal.SIGTERM)
    await trio.to_thread.run_sync(ended, child)


async def test_the_instance_that_is_named_is_restarted_not_the_latest(
    world: World,
) -> None:
    """C157."""
    days: list[object] = []

    def work(ctx: StepContext) -> None:
        days.append(ctx.parameters["day"])
        raise ValueError("no")

    job = Job("daily", [Step("work", work)], parameters=[Parameter("day", str)])
    for day in ("monday", "tuesday"):
        await world.launch(job, {"day": day})
    async with open_runtime(world.url, world.options) as runtime:
        by_number = await runtime.restart(1, job)
        by_parameters = await runtime.launch(job, day="monday")
    assert (by_number.restart_of, by_parameters.restart_of) == (1, 3)
    assert days == ["monday", "tuesday", "monday", "monday"]


def request_stops(url: str, seed: int, over: threading.Event) -> None:
    """Ask for the stop of execution 1, again and again, at random moments."""
    dice = random.Random(seed)
    backend = open_store(url)
    count = 0
    while not over.is_set():
        time.sleep(dice.uniform(0, 0.05))
        count += 1
        request = RequestStop(
            execution_id=1, actor="eve", operation_id=f"{seed}-{count}"
        )
        try:
            run(backend, UUID(int=dice.getrandbits(128)), request)
        except ExecutionNotFound:
            continue
    backend.close()


@pytest.mark.parametrize("seed", range(5))
def test_a_stop_never_competes_with_the_work_that_it_stops(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """C069: stops from four threads, from before the launch to its end."""
    world = World(tmp_path)
    chunk, _, _ = copying(range(1000), size=5)
    job = Job("copying", [Step("copy", chunk)])
    options = RuntimeOptions(inline=True, stop_poll=0.1)

    async def launch() -> LaunchReport:
        async with open_runtime(world.url, options) as runtime:
            return await runtime.launch(job)

    open_store(world.url).close()
    over = threading.Event()
    threads = [
        threading.Thread(target=request_stops, args=(world.url, 10 * seed + one, over))
        for one in range(4)
    ]
    for thread in threads:
        thread.start()
    try:
        with caplog.at_level(logging.WARNING):
            report = trio.run(launch)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert report.status in (BatchStatus.STOPPED, BatchStatus.COMPLETED)
    assert not [one for one in caplog.messages if "version" in one]
    if report.status is BatchStatus.STOPPED:
        assert trio.run(launch).status is BatchStatus.COMPLETED
    assert world.rows() == list(range(1000))


def test_an_operators_stop_and_a_lost_process_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C078: settling resumes nothing; it says STOPPED of what was asked to stop."""
    from triolet.actors.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRIOLET_STORE", raising=False)
    world = World(tmp_path)
    target = put(tmp_path, "waits")
    store = ["--store", world.url]

    def killed(*words: str) -> None:
        (tmp_path / "began").unlink(missing_ok=True)
        child = spawn("run", target, *words, *store, cwd=tmp_path)
        until((tmp_path / "began").exists)
        child.send_signal(signal.SIGKILL)
        ended(child)

    killed("day=1")
    killed("day=2")
    assert main(["stop", "2", *store]) == 0
    assert main(["doctor", "--settle", "--yes", *store]) == 0
    statuses = world.query("SELECT status FROM triolet_execution ORDER BY id")
    assert statuses == [("FAILED",), ("STOPPED",)]
    assert world.statuses() == [("work", "FAILED"), ("work", "FAILED")]
