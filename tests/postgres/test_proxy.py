"""Each fault of the proxy does what it says, whichever way COMMIT is sent."""

import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.postgres.proxy import Proxy
from tests.postgres.requests import Requests, query

Connection = psycopg.Connection[tuple[object, ...]]
Commit = Callable[[Connection], None]

COMMITS = [
    "COMMIT",
    "commit ;",
    "END",
    "INSERT INTO t VALUES (1); COMMIT;",
    "COMMIT WORK",
]
OTHERS = [
    "COMMIT PREPARED 'x'",
    "SELECT 'COMMIT' AS x",
    "INSERT INTO commit VALUES (1)",
]


def simple(connection: Connection) -> None:
    connection.execute("COMMIT")


def prepared(connection: Connection) -> None:
    connection.execute("COMMIT", prepare=True)


def pipelined(connection: Connection) -> None:
    with connection.pipeline():
        connection.execute("INSERT INTO fact VALUES (10)")
        connection.execute("COMMIT")
        connection.execute("SELECT 1")


def failing(connection: Connection) -> None:
    with connection.pipeline():
        connection.execute("SELECT 1 / 0")
        connection.execute("COMMIT")


@pytest.fixture(params=[simple, prepared, pipelined])
def commit(request: pytest.FixtureRequest) -> Commit:
    chosen: Commit = request.param
    return chosen


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with psycopg.connect(postgres_url) as direct:
        direct.execute("CREATE TABLE fact (id int)")
    with Proxy(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def connection(proxy: Proxy) -> Iterator[Connection]:
    connection = psycopg.connect(proxy.url, autocommit=True)
    yield connection
    connection.close()


def begin(connection: Connection, number: int = 1) -> None:
    connection.execute("BEGIN")
    connection.execute("INSERT INTO fact VALUES (%s)", [number])


def facts(url: str) -> list[object]:
    with psycopg.connect(url) as direct:
        rows = direct.execute("SELECT id FROM fact WHERE id < 10 ORDER BY id")
        return [number for (number,) in rows]


def test_an_unarmed_proxy_is_not_noticed(
    proxy: Proxy, connection: Connection, commit: Commit, postgres_url: str
) -> None:
    begin(connection)
    commit(connection)
    with connection.cursor().copy("COPY fact FROM STDIN") as copy:
        copy.write("2\n" * 20_000)
    assert len(facts(postgres_url)) == 20_001
    assert not proxy.fired.is_set()


def test_cut_before_commit_nothing_is_written(
    proxy: Proxy, connection: Connection, commit: Commit, postgres_url: str
) -> None:
    begin(connection)
    proxy.arm("before_commit")
    with pytest.raises(psycopg.OperationalError):
        commit(connection)
    assert proxy.fired.wait(5)
    assert facts(postgres_url) == []


def test_cut_after_commit_everything_is_written(
    proxy: Proxy, connection: Connection, commit: Commit, postgres_url: str
) -> None:
    begin(connection)
    proxy.arm("after_commit_before_answer")
    with pytest.raises(psycopg.OperationalError):
        commit(connection)
    assert proxy.fired.wait(5)
    assert facts(postgres_url) == [1]


def test_a_commit_that_fails_is_cut_too(
    proxy: Proxy, connection: Connection, postgres_url: str
) -> None:
    begin(connection)
    proxy.arm("after_commit_before_answer")
    with pytest.raises(psycopg.Error):  # the division may be told of before the cut
        failing(connection)
    assert proxy.fired.wait(5)
    assert facts(postgres_url) == []


def test_the_nth_commit_is_chosen(
    proxy: Proxy, connection: Connection, commit: Commit, postgres_url: str
) -> None:
    proxy.arm("before_commit", nth=3)
    for number in 1, 2:
        begin(connection, number)
        commit(connection)
    begin(connection, 3)
    with pytest.raises(psycopg.OperationalError):
        commit(connection)
    assert proxy.fired.wait(5)
    assert (proxy.count, facts(postgres_url)) == (1, [1, 2])


def test_a_hold_keeps_the_connection_open_until_healed(
    proxy: Proxy, connection: Connection, commit: Commit, postgres_url: str
) -> None:
    begin(connection)
    proxy.arm("hold")
    committing = threading.Thread(target=commit, args=[connection])
    committing.start()
    assert proxy.fired.wait(5)
    with pytest.raises(psycopg.OperationalError, match="timeout"):
        psycopg.connect(proxy.url, connect_timeout=2)
    assert committing.is_alive()
    assert facts(postgres_url) == []
    proxy.heal()
    committing.join(5)
    assert facts(postgres_url) == [1]


def test_a_hold_can_begin_at_once(proxy: Proxy, connection: Connection) -> None:
    proxy.arm("hold", nth=0)
    asking = threading.Thread(target=connection.execute, args=["SELECT 1"])
    asking.start()
    asking.join(0.1)
    assert asking.is_alive()
    proxy.heal()
    asking.join(5)
    assert not asking.is_alive()


def test_a_held_connection_can_be_cut(proxy: Proxy, connection: Connection) -> None:
    proxy.arm("hold", nth=0)
    proxy.arm("cut_now")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")


def test_cut_now_ends_what_is_connected(proxy: Proxy, connection: Connection) -> None:
    proxy.arm("cut_now")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    psycopg.connect(proxy.url).close()


def test_new_connections_are_refused_until_healed(
    proxy: Proxy, connection: Connection
) -> None:
    proxy.arm("refuse")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(proxy.url)
    connection.execute("SELECT 1")
    proxy.heal()
    psycopg.connect(proxy.url).close()


def test_a_cut_may_leave_the_server_out_of_reach(
    proxy: Proxy, connection: Connection, postgres_url: str
) -> None:
    begin(connection)
    proxy.arm("after_commit_before_answer", then_refuse=True)
    with pytest.raises(psycopg.OperationalError):
        connection.execute("COMMIT")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(proxy.url)
    proxy.heal()
    assert facts(proxy.url) == [1]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_are_found_however_they_are_cut(size: int) -> None:
    startup = b"\0\0\0\x08\0\x03\0\0"
    stream = startup + query("SELECT 1") + query("COMMIT") + query("BEGIN")
    requests = Requests()
    found = [
        message
        for start in range(0, len(stream), size)
        for message in requests.feed(stream[start : start + size])
    ]
    assert b"".join(message.data for message in found) == stream
    assert [message.commits for message in found] == [False, False, True, False]


@pytest.mark.parametrize("text", [*COMMITS, *OTHERS])
def test_a_commit_is_recognised_by_its_text(text: str) -> None:
    requests = Requests()
    (_, found) = requests.feed(b"\0\0\0\x08\0\x03\0\0" + query(text))
    assert found.commits is (text in COMMITS)
