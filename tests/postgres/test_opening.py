"""Opening a PostgreSQL store: what is refused, in which words, and with which rights."""

import threading
from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from tests.postgres.proxy import Proxy
from tests.postgres.server import Server
from tests.storage.client import FACTS, definition
from tests.testing.jobs import partitioning
from triolet.actors import BatchStatus, open_runtime
from triolet.actors.cli import main
from triolet.storage.backend import run
from triolet.storage.commands import ListExecutions, OpenExecution, RegisterOwner
from triolet.storage.model.errors import (
    InvalidValue,
    SchemaMissing,
    SchemaTooNew,
    StoreUnavailable,
    StoreUnusable,
)
from triolet.storage.model.parameters import parameters_of
from triolet.storage.postgres import connecting, schema
from triolet.storage.stores import StoreOptions, migrate_store, open_store

BATCH = UUID(int=1)
REGISTER = RegisterOwner(FACTS, 1_000_000)
SECRET = "s3cret-w0rd"


def with_role(url: str, role: str, extra: str = "") -> str:
    """Name another role, and a password that must not be seen, in a URL."""
    scheme, _, rest = url.partition("://")
    place = rest.rpartition("@")[2]
    joint = "&" if "?" in place else "?"
    return f"{scheme}://{role}:{SECRET}@{place}{joint + extra if extra else ''}"


@pytest.fixture
def roles(postgres: Server, postgres_url: str) -> Iterator[str]:
    """Make the three roles as the documentation has them; give the URL."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        for role in ("migrator", "worker", "reader"):
            admin.execute(
                sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(f"t_{role}"))
            )
        database = admin.info.dbname
        admin.execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO t_migrator").format(
                sql.Identifier(database)
            )
        )
    migrate_store(with_role(postgres_url, "t_migrator"))
    with psycopg.connect(with_role(postgres_url, "t_migrator"), autocommit=True) as it:
        it.execute("GRANT USAGE ON SCHEMA triolet TO t_worker, t_reader")
        it.execute(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA triolet "
            "TO t_worker"
        )
        it.execute(
            "REVOKE INSERT, UPDATE, DELETE ON triolet.schema_version FROM t_worker"
        )
        it.execute("GRANT SELECT ON ALL TABLES IN SCHEMA triolet TO t_reader")
    yield postgres_url
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        for role in ("t_migrator", "t_worker", "t_reader"):
            admin.execute(sql.SQL("DROP OWNED BY {0}").format(sql.Identifier(role)))
            admin.execute(sql.SQL("DROP ROLE {0}").format(sql.Identifier(role)))


def test_a_worker_needs_no_right_to_change_the_schema(roles: str) -> None:
    store = open_store(with_role(roles, "t_worker"))
    assert run(store, BATCH, REGISTER).owner_id == 1
    store.close()
    with (
        psycopg.connect(with_role(roles, "t_worker")) as worker,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        worker.execute("DROP TABLE triolet.step")


async def test_a_worker_may_do_all_that_a_runtime_does(roles: str) -> None:
    """With the grants of the documentation, and rights on its own business tables."""
    with psycopg.connect(roles, autocommit=True) as admin:
        admin.execute("GRANT CREATE ON SCHEMA public TO t_worker")
    day = {"day": "2026-12-02"}
    async with open_runtime(with_role(roles, "t_worker")) as runtime:
        failed = await runtime.launch(partitioning(), day)
        assert failed.status is BatchStatus.FAILED
        report = await runtime.restart(failed.execution_id, partitioning())
        assert report.status is BatchStatus.COMPLETED
        await runtime.enqueue(partitioning(), day, anew=True)
        await runtime.serve([partitioning], until_idle=True)
        (line,) = (await runtime.list(limit=1)).lines
        assert line.execution.status is BatchStatus.FAILED
        last = line.execution.id
        await runtime.request_stop(last, actor="eve")
        await runtime.abandon(last, actor="eve", reason="old")
        assert len((await runtime.operations(last)).operations) == 2
        assert (await runtime.diagnose()).unresolved == ()


def test_a_reader_sees_what_the_command_line_shows(
    roles: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = open_store(with_role(roles, "t_worker"))
    run(worker, BATCH, REGISTER)
    opening = OpenExecution(
        job="settlement",
        parameters=parameters_of({"day": "monday"}),
        definition=definition(),
        owner_id=1,
        failure_id=7,
    )
    run(worker, UUID(int=2), opening)
    worker.close()
    url = with_role(roles, "t_reader")
    for words in (["list"], ["show", "1"], ["doctor"], ["requests"]):
        assert main([*words, "--store", url]) == 0, capsys.readouterr()
    assert SECRET not in "".join(capsys.readouterr())
    assert main(["stop", "1", "--store", url]) == 7
    said = capsys.readouterr()
    assert "the PostgreSQL role 't_reader' lacks" in said.err
    assert SECRET not in said.out + said.err


def test_a_reader_may_look_and_nothing_else(roles: str) -> None:
    url = with_role(roles, "t_reader")
    store = open_store(url, StoreOptions(read_only=True))
    assert run(store, BATCH, ListExecutions()).lines == ()
    store.close()

    with pytest.raises(StoreUnusable) as caught:
        open_store(url)

    assert str(caught.value) == (
        "the PostgreSQL role 't_reader' lacks DELETE on triolet.commit_marker, INSERT "
        "on triolet.commit_marker, INSERT on triolet.decision and 24 more: an owner of "
        "the schema can grant it, as docs/postgres.md tells"
    )


def test_a_missing_privilege_is_named(roles: str) -> None:
    with psycopg.connect(roles, autocommit=True) as admin:
        admin.execute("REVOKE UPDATE ON triolet.step FROM t_worker")
    with pytest.raises(StoreUnusable, match=r"lacks UPDATE on triolet\.step: an owner"):
        open_store(with_role(roles, "t_worker"))
    with psycopg.connect(roles, autocommit=True) as admin:
        admin.execute("REVOKE USAGE ON SCHEMA triolet FROM t_worker")
    with pytest.raises(StoreUnusable, match="lacks USAGE on schema triolet"):
        open_store(with_role(roles, "t_worker"))


def test_who_may_not_make_the_schema_is_told_so(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE ROLE t_nobody LOGIN")
        try:
            with pytest.raises(StoreUnusable, match="lacks CREATE on database"):
                open_store(with_role(postgres_url, "t_nobody"))
        finally:
            admin.execute("DROP ROLE t_nobody")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h:x/y",
        f"postgresql://user:{SECRET}%zz@host/db",
        f"postgresql://user:{SECRET}@host/db?nope=1",
        "postgresql://[::1/db",
    ],
)
def test_a_wrong_url_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        open_store(url)

    assert "the store URL must be postgresql://USER@HOST:PORT/DATABASE" in str(
        caught.value
    )
    assert SECRET not in str(caught.value)
    assert ("'nope'" in str(caught.value)) == ("nope" in url)


@pytest.mark.parametrize("where", ["h:99999", "h:0", "h:5432,h:70000"])
def test_a_port_that_is_none_is_refused_and_not_tried(where: str) -> None:
    with pytest.raises(InvalidValue, match=r"the port .* must be 1 to 65535"):
        open_store(f"postgresql://{where}/y")


def test_a_password_that_is_not_encoded_is_not_taken_for_the_host() -> None:
    with pytest.raises(InvalidValue, match="more than one '@'") as caught:
        open_store(f"postgresql://user:p@{SECRET}@host/db")
    assert SECRET not in str(caught.value)


def test_a_wrong_password_is_said_at_once_and_not_repeated() -> None:
    with Server(password="right") as server:
        url = server.url().replace("right", SECRET)
        with pytest.raises(StoreUnusable, match="password authentication failed") as it:
            open_store(url)
        assert SECRET not in str(it.value)
        open_store(server.url()).close()


def test_a_database_that_is_not_there_is_said_at_once(postgres: Server) -> None:
    with pytest.raises(StoreUnusable, match='database "nowhere" does not exist'):
        open_store(postgres.url("nowhere"))


def test_a_server_that_is_down_is_tried_for_a_while() -> None:
    url = "postgresql://me@127.0.0.1:9/db?connect_timeout=1"
    with pytest.raises(StoreUnavailable, match=r"refused.*\(tried for 1 seconds\)"):
        open_store(url)


def test_a_server_that_comes_up_meanwhile_is_waited_for(postgres_url: str) -> None:
    with Proxy(postgres_url) as proxy:
        proxy.arm("refuse")
        later = threading.Timer(0.6, proxy.heal)
        later.start()
        open_store(proxy.url).close()
        later.join()


def test_a_server_that_never_answers_is_not_waited_for_long(postgres_url: str) -> None:
    with Proxy(postgres_url) as proxy:
        proxy.arm("hold", 0)
        with pytest.raises(
            StoreUnavailable, match=r"did not answer .* within 2 seconds"
        ):
            open_store(f"{proxy.url}?connect_timeout=1")


def test_a_server_that_is_too_old_is_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "OLDEST_SERVER", 990_000)
    with pytest.raises(
        StoreUnusable, match=r"PostgreSQL \d+ is too old .* 15 or newer"
    ):
        open_store(postgres_url)


def test_a_newer_schema_is_left_alone(postgres_url: str) -> None:
    migrate_store(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("INSERT INTO triolet.schema_version VALUES (99, now())")
    for attempt in (open_store, migrate_store):
        with pytest.raises(SchemaTooNew):
            attempt(postgres_url)


def test_an_absent_schema_is_made_only_where_it_may_be(postgres_url: str) -> None:
    with pytest.raises(SchemaMissing):
        open_store(postgres_url, StoreOptions(create=False))
    open_store(postgres_url).close()
    open_store(postgres_url, StoreOptions(create=False)).close()


def test_many_migrators_make_one_schema(postgres_url: str) -> None:
    found: list[tuple[int, int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(migrate_store(postgres_url)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    newest = schema.NEWEST
    assert sorted(found) == [(0, newest), *[(newest, newest)] * 3]


def test_options_of_the_url_win_over_ours(postgres_url: str) -> None:
    joint = "&" if "?" in postgres_url else "?"
    asked = f"{postgres_url}{joint}options=-c%20statement_timeout%3D7s"
    address = connecting.address_of(asked)
    with psycopg.connect(address.conninfo) as connection:
        shown = connection.execute("SHOW statement_timeout").fetchone()
        planned = connection.execute("SHOW plan_cache_mode").fetchone()
    assert (shown, planned) == (("7s",), ("force_generic_plan",))
    assert "password" not in repr(address)
