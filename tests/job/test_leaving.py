"""Nothing of a runtime is left in the caller's program once its block is left."""

import os
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import trio

from triolet.actors import (
    BatchStatus,
    Job,
    Runtime,
    RuntimeOptions,
    Split,
    Step,
    StepContext,
    open_runtime,
)
from triolet.actors.testing import leftovers

ROUNDS = 3
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'triolet%'"
)


class Interrupted(Exception):
    """What the users' own block raises."""


async def works(ctx: StepContext) -> None:
    await trio.sleep(0.001)


def works_in_a_thread(ctx: StepContext) -> None:
    time.sleep(0.001)


async def fails(ctx: StepContext) -> None:
    raise ValueError("broken")


async def waits(ctx: StepContext) -> None:
    await trio.sleep_forever()


def job(last: Callable[[StepContext], object]) -> Job:
    split = Split("both", [Step("a", works), Step("b", works_in_a_thread)])
    return Job("leaving", [Step("first", works), split, Step("last", last)])


async def _launched(runtime: Runtime, last: Callable[[StepContext], object]) -> str:
    return (await runtime.launch(job(last), anew=True)).status.value


async def completes(runtime: Runtime) -> None:
    assert await _launched(runtime, works) == BatchStatus.COMPLETED


async def has_failed(runtime: Runtime) -> None:
    assert await _launched(runtime, fails) == BatchStatus.FAILED


async def stops(runtime: Runtime) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_launched, runtime, waits)
        await trio.sleep(0.05)
        assert (await runtime.shutdown()).drained


async def is_cancelled(runtime: Runtime) -> None:
    with trio.move_on_after(0.05):
        await _launched(runtime, waits)


async def serves(runtime: Runtime) -> None:
    await runtime.enqueue(job(works), anew=True)
    await runtime.serve([job(works)], until_idle=True)


async def raises(runtime: Runtime) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_launched, runtime, waits)
        await trio.sleep(0.05)
        raise Interrupted


ENDS = completes, has_failed, stops, is_cancelled, serves, raises


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres_url"))


async def entered_and_left(
    url: str, use: Callable[[Runtime], Awaitable[None]], after: float | None
) -> None:
    """Use a runtime; *after* some seconds the scope around it is cancelled."""
    with trio.CancelScope() as scope:
        if after is not None:
            scope.deadline = trio.current_time() + after
        try:
            async with open_runtime(url, RuntimeOptions(lease=1)) as runtime:
                await use(runtime)
        except* Interrupted:
            assert use is raises


def descriptors() -> Iterator[str]:
    """List what this process has open, but for what the listing itself opens."""
    folder = Path("/proc/self/fd")
    for one in os.listdir(folder) if folder.exists() else ():
        try:
            yield os.readlink(folder / one)
        except FileNotFoundError:
            continue


def sessions(url: str) -> int:
    """Count the connections of ours that the server still has."""
    with psycopg.connect(url, autocommit=True) as look:
        found = look.execute(SESSIONS).fetchone()
        assert found is not None
        return int(found[0])


@pytest.mark.parametrize("after", [None, 0.0, 0.02], ids=["left", "never", "cancelled"])
@pytest.mark.parametrize("use", ENDS)
async def test_no_task_thread_connection_or_file_is_left(
    url: str,
    tmp_path: Path,
    use: Callable[[Runtime], Awaitable[None]],
    after: float | None,
) -> None:
    with trio.fail_after(60):
        await entered_and_left(url, use, None)
        tasks, threads = leftovers.tasks(), leftovers.threads()
        before = sorted(descriptors())
        for _ in range(ROUNDS):
            await entered_and_left(url, use, after)
            leftovers.refuse_tasks(tasks)
        leftovers.refuse_threads(threads)
        assert sorted(descriptors()) == before
        assert os.listdir(tmp_path) == (
            ["store.db"] if url.startswith("sqlite") else []
        )
        if url.startswith("postgres"):
            while sessions(url):  # noqa: ASYNC110  # the server sees it in its own time
                await trio.sleep(0.01)
