"""Cases of the area stop and shutdown: work that is not there, or does not listen."""

import signal
import threading
from collections.abc import Callable

import trio

from tests.cases.world import World
from tests.cli.programs import ended, put, spawn, until
from triolet.actors import (
    BatchStatus,
    Event,
    EventKind,
    Job,
    LaunchReport,
    Parameter,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)

Command = Callable[..., int]
SLOTS = 4
BOUND_SECS = 5


def test_a_stop_of_work_whose_process_was_killed_keeps_no_place_from_others(
    world: World, command: Command
) -> None:
    """C076: with one place, which the dead process had."""
    target = put(world.folder, "waits")
    store = ["--store", world.url]
    for day in ("mon", "tue"):
        assert command("enqueue", target, f"day={day}") == 0
    child = spawn("serve", target, "--max", "1", *store, cwd=world.folder)
    until((world.folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)
    assert command("stop", "1") == 0
    (world.folder / "go").touch()

    assert command("serve", target, "--max", "1", "--once") == 0

    # What was stopped is not continued; the next one had its place at once.
    statuses = world.query("SELECT status FROM triolet_execution ORDER BY id")
    assert statuses == [("STOPPED",), ("COMPLETED",)]
    assert (world.folder / "began").read_text() == "xx"
    requests = "SELECT status FROM triolet_launch_request ORDER BY id"
    assert world.query(requests) == [("DONE",), ("DONE",)]


async def test_bodies_that_outlive_their_limit_are_told_of_and_their_results_refused(
    world: World,
) -> None:
    """C079, as far as there is no policy that takes a thread from a body."""
    go_on = threading.Event()
    told: dict[EventKind, set[int | None]] = {}
    every = trio.Event()

    def heard(event: Event) -> None:
        told.setdefault(event.kind, set()).add(event.execution_id)
        if len(told.get(EventKind.STOP_WAITING, ())) == SLOTS:
            every.set()

    def blocked(ctx: StepContext) -> None:
        assert go_on.wait(60)

    async def next_one(ctx: StepContext) -> None:
        await trio.lowlevel.checkpoint()

    number = Parameter("number", int)
    stuck = Job("stuck", [Step("work", blocked, timeout=1)], parameters=[number])
    options = RuntimeOptions(events=heard, threads_max=SLOTS)
    reports: list[LaunchReport] = []
    try:
        async with (
            open_runtime(world.url, options) as runtime,
            trio.open_nursery() as nursery,
        ):

            async def launch(which: int) -> None:
                reports.append(await runtime.launch(stuck, number=which))

            for which in range(SLOTS):
                nursery.start_soon(launch, which)
            with trio.fail_after(BOUND_SECS):
                await every.wait()
            # Work that needs no thread goes on meanwhile.
            other = await runtime.launch(Job("other", [Step("next", next_one)]))
            assert other.status is BatchStatus.COMPLETED
            assert reports == []
            go_on.set()
    finally:
        go_on.set()
    assert told[EventKind.STEP_TIMED_OUT] == told[EventKind.STOP_WAITING]
    assert len(told[EventKind.STEP_TIMED_OUT]) == SLOTS
    assert {one.failure and one.failure.code for one in reports} == {"step_timed_out"}
    assert {status for _, status in world.statuses()} == {"FAILED", "COMPLETED"}
