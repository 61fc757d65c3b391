"""Launch requests on real servers: the caller's transaction, and many who serve."""

import random
from collections import Counter
from uuid import UUID

import psycopg
import pytest
import trio
from attrs import evolve
from psycopg.rows import dict_row

from tests.postgres.test_operating import at_once
from triolet.actors import (
    BatchStatus,
    InvalidValue,
    Job,
    Parameter,
    RequestStatus,
    RuntimeOptions,
    SchemaMissing,
    ServedRequest,
    Step,
    StepContext,
    enqueue,
    open_runtime,
)
from triolet.storage.backend import run
from triolet.storage.commands import OwnerFacts, RegisterOwner
from triolet.storage.commands.requesting import (
    ClaimLaunches,
    RequestNotWaiting,
    WithdrawLaunch,
)
from triolet.storage.stores import migrate_store, open_store

SERVERS = 3
REQUESTS = 60
SLOWLY = RuntimeOptions(stop_poll=60.0)
"""Whoever is not told sees nothing for a minute."""


async def nothing(ctx: StepContext) -> None:
    """Do no work."""


JOB = Job("settle", [Step("work", nothing)], parameters=[Parameter("day", str)])


def ids(url: str) -> list[int]:
    with psycopg.connect(url) as look:
        found = look.execute("SELECT id FROM triolet.launch_request ORDER BY id")
        return [number for (number,) in found.fetchall()]


def test_a_request_lives_and_dies_with_the_callers_transaction(
    each_postgres_url: str,
) -> None:
    """C177."""
    migrate_store(each_postgres_url)
    with psycopg.connect(each_postgres_url, row_factory=dict_row) as connection:
        connection.execute("CREATE TABLE orders (day TEXT)")
        connection.commit()

        connection.execute("INSERT INTO orders VALUES ('mon')")
        enqueue(connection, JOB, day="mon")
        connection.rollback()
        assert ids(each_postgres_url) == []

        number = enqueue(connection, JOB, {"day": "tue"}, anew=True)
        assert ids(each_postgres_url) == []
        connection.commit()
        assert ids(each_postgres_url) == [number]


def test_an_autocommitting_connection_and_a_pipeline_will_do(postgres_url: str) -> None:
    migrate_store(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        enqueue(connection, JOB, day="mon")
        with connection.pipeline():
            enqueue(connection, JOB, day="tue")
    assert len(ids(postgres_url)) == 2


def test_what_is_no_store_or_no_connection_is_said(postgres_url: str) -> None:
    with (
        psycopg.connect(postgres_url) as connection,
        pytest.raises(SchemaMissing, match="missing or older"),
    ):
        enqueue(connection, JOB, day="mon")
    with pytest.raises(InvalidValue, match=r"psycopg\.Connection, not str"):
        enqueue(postgres_url, JOB, day="mon")  # type: ignore[arg-type]  # on purpose


def test_who_only_asks_needs_few_rights(postgres_url: str) -> None:
    migrate_store(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE t_web")
        admin.execute("GRANT USAGE ON SCHEMA triolet TO t_web")
        admin.execute(
            "GRANT INSERT (job, parameters, anew, instance_key, requested_at), "
            "SELECT (id) ON triolet.launch_request TO t_web"
        )
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET ROLE t_web")
        enqueue(connection, JOB, day="mon")
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("DROP OWNED BY t_web")
        admin.execute("DROP ROLE t_web")
    assert len(ids(postgres_url)) == 1


async def test_a_server_hears_of_a_commit_at_once_and_of_nothing_before(
    postgres_url: str,
) -> None:
    """C177: not claimed before the commit; then the body sees what was committed."""
    seen: list[int] = []

    def count(ctx: StepContext) -> None:
        with psycopg.connect(postgres_url) as look:
            (found,) = look.execute("SELECT count(*) FROM orders").fetchone() or (0,)
            seen.append(found)

    patient = Job("count", [Step("work", count)])
    ended = trio.Event()
    async with (
        open_runtime(postgres_url, SLOWLY) as runtime,
        trio.open_nursery() as nursery,
    ):
        with psycopg.connect(postgres_url) as connection:
            connection.execute("CREATE TABLE orders (day TEXT)")
            connection.commit()
            nursery.start_soon(
                lambda: runtime.serve([patient], ended=lambda _: ended.set())
            )
            await trio.sleep(0.3)
            connection.execute("INSERT INTO orders VALUES ('mon')")
            enqueue(connection, patient)
            await trio.sleep(0.5)
            assert (await runtime.requests()).requests == ()
            assert not ended.is_set()
            connection.commit()
            with trio.fail_after(10):
                await ended.wait()
        nursery.cancel_scope.cancel()
    assert seen == [1]


async def test_many_servers_share_the_requests_and_each_is_served_once(
    each_postgres_url: str,
) -> None:
    ran: Counter[str] = Counter()
    served: Counter[int] = Counter()

    async def work(ctx: StepContext) -> None:
        ran[str(ctx.parameters["day"])] += 1
        await trio.sleep(random.random() / 100)

    patient = Job("settle", [Step("work", work)], parameters=[Parameter("day", str)])
    everything = trio.Event()

    def heard(server: int, one: ServedRequest) -> None:
        served[server] += 1
        if served.total() == REQUESTS:
            everything.set()

    async def serve(server: int) -> None:
        async with open_runtime(each_postgres_url) as runtime:
            await runtime.serve([patient], ended=lambda one: heard(server, one))

    async with open_runtime(each_postgres_url) as runtime:
        async with trio.open_nursery() as nursery:
            for server in range(SERVERS):
                nursery.start_soon(serve, server)
            for number in range(REQUESTS):
                await runtime.enqueue(patient, day=str(number))
            with trio.fail_after(60):
                await everything.wait()
            nursery.cancel_scope.cancel()
        page = await runtime.requests(limit=REQUESTS)
        completed = await runtime.list(status=BatchStatus.COMPLETED, limit=REQUESTS)

    assert {one.status for one in page.requests} == {RequestStatus.DONE}
    assert len(completed.lines) == REQUESTS
    assert set(ran.values()) == {1}
    assert len(served) == SERVERS


def test_a_request_is_withdrawn_or_claimed_and_never_both(
    each_postgres_url: str,
) -> None:
    migrate_store(each_postgres_url)
    with psycopg.connect(each_postgres_url) as connection:
        for number in range(REQUESTS):
            enqueue(connection, JOB, day=f"{number}")
    claimed: list[int] = []
    withdrawn: list[int] = []

    def work(thread: int) -> None:
        backend = open_store(each_postgres_url)
        ids = (UUID(int=(thread << 64) + one) for one in range(1, 1 << 30))
        facts = OwnerFacts(host="mill", pid=1, boot_id="b", process_start="1")
        if thread % 2:
            owner = run(backend, next(ids), RegisterOwner(facts, 30_000_000)).owner_id
            claim = ClaimLaunches(owner_id=owner, jobs=(JOB.name,), limit=1)
            while True:
                held = tuple(claimed)
                found = run(backend, next(ids), evolve(claim, held=held)).requests
                if not found:
                    break
                claimed.extend(one.id for one in found)
        else:
            for number in range(1, REQUESTS + 1):
                try:
                    command = WithdrawLaunch(request_id=number, actor="eve")
                    done = run(backend, next(ids), command)
                except RequestNotWaiting:
                    continue
                if not done.already:
                    withdrawn.append(number)
        backend.close()

    at_once(work)

    assert sorted(claimed + withdrawn) == list(range(1, REQUESTS + 1))
    with psycopg.connect(each_postgres_url) as look:
        query = "SELECT id FROM triolet.launch_request WHERE status = 'WITHDRAWN'"
        assert sorted(one for (one,) in look.execute(query)) == sorted(withdrawn)
