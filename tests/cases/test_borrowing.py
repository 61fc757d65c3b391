"""Cases of the area embedding: what a cancelled launch leaves on the connection it used."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
import trio

from triolet.actors import (
    BatchStatus,
    Cursor,
    Job,
    JobContext,
    JobListener,
    Runtime,
    RuntimeOptions,
    Step,
    StepContext,
    TaskletJob,
    open_runtime,
)

Cancel = Callable[[], object]
IDLE = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() "
    "AND state LIKE 'idle in transaction%'"
)


async def work(ctx: StepContext) -> None:
    """Do nothing: the row is written with the result."""


async def for_ever(ctx: StepContext) -> None:
    await trio.sleep_forever()


def writing(value: int, meanwhile: Cancel = lambda: None) -> Step:
    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute("CREATE TABLE IF NOT EXISTS noted (x INTEGER)")
        meanwhile()
        cursor.execute(f"INSERT INTO noted VALUES ({value})")

    return Step("write", work, write=write)


def in_a_statement(cancel: Cancel) -> Job:
    return Job("cancelled", [writing(1, cancel), Step("more", for_ever)])


def in_a_hook(cancel: Cancel) -> Job:
    async def before(ctx: JobContext) -> None:
        cancel()
        await trio.sleep_forever()

    listener = JobListener("hook", before=before)
    return TaskletJob("cancelled", writing(1), listeners=[listener])


def at_the_beginning(cancel: Cancel) -> Job:
    cancel()
    return Job("cancelled", [writing(1)])


async def cancelled(runtime: Runtime, make: Callable[[Cancel], Job], day: str) -> None:
    """Launch a job that has the scope around its launch cancelled."""
    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:
        # Enlisted writes may run in a thread, from which no scope may be cancelled.
        job = make(lambda: token.run_sync_soon(scope.cancel))
        await runtime.launch(job, day=day)
    assert scope.cancelled_caught


def noted(url: str) -> list[int]:
    """Ask in a session of our own; none may be left in a transaction."""
    question = "SELECT x FROM noted ORDER BY x"
    if url.startswith("sqlite:"):
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=0)) as session:
            session.execute("BEGIN IMMEDIATE")
            return [x for (x,) in session.execute(question)]
    with psycopg.connect(url, autocommit=True) as session:
        deadline = time.monotonic() + 5
        while session.execute(IDLE).fetchall():
            # A command that is being carried out may be seen for a moment.
            assert time.monotonic() < deadline, "a transaction was left open"
        return [x for (x,) in session.execute(question)]


@pytest.mark.parametrize("make", [in_a_statement, in_a_hook, at_the_beginning])
async def test_the_next_launch_on_the_connection_commits_what_it_writes(
    url: str, make: Callable[[Cancel], Job]
) -> None:
    """C165."""
    options = RuntimeOptions(inline=url.startswith("sqlite:"))
    with trio.fail_after(60):
        async with open_runtime(url, options) as runtime:
            for round_ in range(3):
                await cancelled(runtime, make, f"day {round_}")
                job = Job("after", [writing(10 + round_)])
                report = await runtime.launch(job, day=f"day {round_}")
                assert report.status is BatchStatus.COMPLETED
                assert (await trio.to_thread.run_sync(noted, url))[-1] == 10 + round_
            page = await runtime.list(job="cancelled")
            assert not any(line.execution.status.active for line in page.lines)
