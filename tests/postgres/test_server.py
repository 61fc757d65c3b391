"""The servers themselves: apart, durable, and gone when nobody needs them."""

import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.postgres.server import Server

ROOT = Path(__file__).parents[2]


def test_a_server_answers_in_either_way(each_postgres: Server) -> None:
    for unix in False, True:
        with psycopg.connect(each_postgres.url(unix=unix)) as connection:
            version = connection.info.server_version
            assert version // 10_000 == each_postgres.installation.version


def test_two_databases_are_apart(postgres: Server) -> None:
    urls = [postgres.create_database(name) for name in ("apart_a", "apart_b")]
    for url in urls:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE mine (id int)")
    for name in "apart_a", "apart_b":
        postgres.drop_database(name)


def test_a_database_begins_as_its_template(postgres: Server) -> None:
    with psycopg.connect(postgres.create_database("model")) as connection:
        connection.execute("CREATE TABLE there (id int)")
    with psycopg.connect(postgres.create_database("copy", "model")) as connection:
        connection.execute("SELECT id FROM there")
    for name in "model", "copy":
        postgres.drop_database(name)


def test_an_immediate_restart_keeps_what_was_committed(
    postgres: Server, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id int)")
        connection.execute("INSERT INTO kept VALUES (1)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO kept VALUES (2)")
        postgres.restart("immediate")
        with pytest.raises(psycopg.OperationalError):
            connection.execute("COMMIT")
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT id FROM kept").fetchall() == [(1,)]


def test_a_stopped_server_refuses_and_starts_again(
    postgres: Server, postgres_url: str
) -> None:
    postgres.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres_url)
    postgres.start()
    psycopg.connect(postgres_url).close()


def test_a_password_is_asked_for_and_settings_hold() -> None:
    settings = {"max_connections": "20"}
    with Server(fsync=False, password="sec ret/", settings=settings) as server:
        with psycopg.connect(server.url()) as connection:
            found = connection.execute("SHOW max_connections").fetchone()
            assert found == ("20",)
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.url().replace("sec", "open"))
    assert not server.folder.exists()


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_nothing_is_left_when_its_process_dies(end: str) -> None:
    serving = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres.server"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert serving.stdout is not None
    url = serving.stdout.readline().strip()
    with psycopg.connect(url) as connection:
        found = connection.execute("SHOW unix_socket_directories").fetchone()
    assert found is not None
    getattr(serving, end)()
    serving.communicate()
    deadline = time.monotonic() + 10
    while Path(found[0]).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(found[0]).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_programs_out_of_the_servers_reach_run_all_the_same(
    postgres: Server, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    copied = postgres.installation.copied(tmp_path / "programs")
    with Server(copied, fsync=False) as server:
        psycopg.connect(server.url()).close()
