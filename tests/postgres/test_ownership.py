"""The lease of a runtime on a real server, while its connections are busy."""

import psycopg
import pytest
import trio

from triolet.actors import (
    BatchStatus,
    Cursor,
    Job,
    PartitionedStep,
    PlannerContext,
    RuntimeOptions,
    Step,
    StepContext,
    open_runtime,
)

LEASE_SECS = 1.0
WRITE_SECS = 2.5
AHEAD = (
    "SELECT count(*), min(lease_until - triolet.now()) FROM triolet.owner "
    "WHERE lease_until > 0"
)


async def nothing(ctx: StepContext) -> None:
    await trio.lowlevel.checkpoint()


async def test_a_long_write_does_not_keep_the_lease_from_being_renewed(
    postgres_url: str,
) -> None:
    """The heartbeat has a connection of its own, and one row for all executions."""

    def write(cursor: Cursor, ctx: StepContext) -> None:
        cursor.execute(f"SELECT pg_sleep({WRITE_SECS})")

    job = Job("slow", [Step("write", nothing, write=write)])
    options = RuntimeOptions(lease=LEASE_SECS, connections=1)
    left: list[int] = []

    async def look() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as session:
            while True:
                ((owners, micros),) = session.execute(AHEAD).fetchall()
                assert owners == 1
                left.append(micros)
                await trio.sleep(0.1)

    async with open_runtime(postgres_url, options) as runtime:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            one = await runtime.launch(job, number=1)
            nursery.cancel_scope.cancel()
        other = await runtime.launch(Job("quick", [Step("write", nothing)]))
    assert one.status is other.status is BatchStatus.COMPLETED
    assert len(left) > 10
    assert min(left) > 0


@pytest.mark.parametrize("connections", [1, 3])
async def test_partitions_wait_for_nobody_who_holds_the_row_of_the_instance(
    postgres_url: str, connections: int
) -> None:
    """Two commands for each of them, and none locks it."""
    keys = [str(number) for number in range(20)]
    began = trio.Event()
    free = trio.Event()
    did: list[str] = []

    async def plan(ctx: PlannerContext) -> list[tuple[str, dict[str, int]]]:
        began.set()
        await free.wait()
        return [(key, {}) for key in keys]

    async def work(ctx: StepContext) -> None:
        assert ctx.partition is not None
        did.append(ctx.partition.key)

    job = Job("parts", [PartitionedStep("parts", work, plan, len(keys))])
    options = RuntimeOptions(connections=connections, ask_deadline=3)
    reports = []
    with trio.fail_after(30), psycopg.connect(postgres_url) as other:
        async with (
            open_runtime(postgres_url, options) as runtime,
            trio.open_nursery() as nursery,
        ):

            async def launch() -> None:
                reports.append(await runtime.launch(job))

            nursery.start_soon(launch)
            await began.wait()
            other.execute("SELECT 1 FROM triolet.instance FOR UPDATE")
            free.set()
    assert [report.status for report in reports] == [BatchStatus.COMPLETED]
    assert sorted(did) == sorted(keys)
