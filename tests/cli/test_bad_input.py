"""Bad input: an exit code, one clear sentence, and nothing written."""

import re
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from triolet.storage.sqlite import backend as backend_module
from triolet.storage.sqlite import connection as connection_module
from triolet.storage.sqlite import schema

from .conftest import Cli, Said, is_one_sentence
from .programs import STORE, ended, put, put_people, rows, spawn, statuses, until

WRITE_VERSION_OFFSET = 18
"""Of the file header; a version that SQLite does not know makes it read-only."""


def check(said: Said, code: int, *texts: str) -> None:
    """Check the exit code and the sentence on standard error."""
    assert said.code == code, said
    assert is_one_sentence(said), said.err
    assert not [text for text in texts if text not in said.err], said.err


def snapshot(folder: Path) -> dict[str, bytes]:
    """Give the content of all stores in a folder."""
    return {path.name: path.read_bytes() for path in folder.glob(f"{STORE}*")}


@pytest.mark.parametrize(
    ("words", "code", "texts"),
    [
        (["run", "missing.py:job"], 2, ["missing.py"]),
        (["run", "plain_jobs.py:jib"], 2, ["'jib'", "'job'"]),
        (["run", "nowhere.at.all:job"], 2, ["nowhere.at.all"]),
        (["run", "typed_jobs.py"], 3, ["'day'", "is required"]),
        (["run", "typed_jobs.py", "day=x", "count=many"], 3, ["'count'", "int"]),
        (["run", "typed_jobs.py", "day:int=5"], 3, ["'day'"]),
        (["run", "typed_jobs.py", "day=x", "dya=y"], 3, ["'dya'", "unknown", "'day'"]),
        (["run", "typed_jobs.py", "day=x", "day=y"], 3, ["'day'", "twice"]),
        (["run", "typed_jobs.py", "day"], 3, ["'day'"]),
        (["run", "plain_jobs.py", "triolet.run:int=1"], 3, ["'triolet.run'"]),
        (["run", "plain_jobs.py", "n:float=1"], 3, ["'n'", "str, int or bool"]),
        (["run", "plain_jobs.py", "--store", "mysql://x"], 2, ["store URL", "sqlite"]),
        (["run", "plain_jobs.py", "--store", "postgresql://x/y?nope=1"], 2, ["nope"]),
        (["run", "plain_jobs.py", "--store", "sqlite:///no/dir/x.db"], 7, ["no/dir"]),
        (["run", "plain_jobs.py", "--store", "sqlite:///."], 7, ["folder"]),
        (["list"], 7, ["there is no store", STORE]),
        (["list", "--limit", "0"], 2, ["--limit", "1 to 500"]),
        (["list", "--status", "HAPPY"], 2, ["--status", "COMPLETED"]),
        (["show", "1"], 7, ["there is no store"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_done_is_refused_and_makes_no_store(
    folder: Path, cli: Cli, words: list[str], code: int, texts: list[str]
) -> None:
    put(folder, "plain")
    put(folder, "typed")
    check(cli(*words), code, *texts)
    assert not list(folder.rglob("*.db*"))
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    "words", [["run"], ["lst"], ["show", "one"], ["list", "--nonsense"]]
)
def test_wrong_usage_is_exit_code_one(folder: Path, cli: Cli, words: list[str]) -> None:
    said = cli(*words)
    check(said, 1)
    assert "triolet --help" in said.err


@pytest.mark.parametrize("more", [[], ["--dry-run"], ["--json"]])
def test_a_run_is_anew_or_continued_and_not_both(
    folder: Path, cli: Cli, more: list[str]
) -> None:
    said = cli("run", put(folder, "plain"), "--run", "1", "--new", *more)
    assert said.code == 1
    assert "choose one of --new and --run" in said.err + said.out
    assert not (folder / STORE).exists()


def test_all_mistakes_of_a_definition_are_listed(folder: Path, cli: Cli) -> None:
    said = cli("run", put(folder, "faulty"))
    assert said.code == 2
    assert "Traceback" not in said.err
    assert re.match(r"triolet: job 'faulty' has \d mistakes:\n", said.err)
    listed = [line for line in said.err.splitlines() if "  - " in line]
    assert len(listed) >= 4
    for text in ("'a'", "'b'", "'d'", "nowhere", "start limit"):
        assert [line for line in listed if text in line], said.err
    assert not (folder / STORE).exists()


def test_a_completed_instance_says_when_and_how_to_run_it_anew(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "plain")
    cli("run", target, "day=monday")
    before = rows(folder, "SELECT * FROM triolet_execution")
    said = cli("run", target, "day=monday")
    check(said, 3, "has completed", "(execution 1)", "--new")
    assert re.search(r"at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", said.err)
    assert rows(folder, "SELECT * FROM triolet_execution") == before
    assert (folder / "runs").read_text() == "x"


def test_a_changed_definition_says_what_changed(folder: Path, cli: Cli) -> None:
    target = put(folder, "routes")
    cli("run", target)
    path = folder / target
    changed = path.read_text().replace('"last"', '"final"')
    (folder / "changed_jobs.py").write_text(changed)
    before = rows(folder, "SELECT * FROM triolet_step")
    said = cli("run", "changed_jobs.py")
    check(said, 3, "has changed since execution 1", "'last' was removed", "--new")
    assert "'final' was added" in said.err
    assert rows(folder, "SELECT * FROM triolet_step") == before
    assert statuses(folder) == ["FAILED"]


def test_an_execution_that_is_not_there_is_not_found(folder: Path, cli: Cli) -> None:
    cli("run", put(folder, "plain"))
    check(cli("show", "99"), 4, "there is no execution 99 in this store")


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"id,name\n1,a\n2,b\n3\n", ["in.csv, line 4", "fields"]),
        (b'id,name\n1,a\n2,b\n3,"c\n', ["in.csv, line 4", "quote"]),
        (b"id,title\n1,a\n", ["in.csv, line 1", "'name'"]),
        (b"id,name\n1,a\n2,b\n3,K\xf6niz\n", ["in.csv, line 4", "0xF6", "utf-8"]),
        (b"", ["in.csv", "empty"]),
        (b"id,name\n1,a\n2,b\nthree,c\n", ["people", "'id'"]),
    ],
    ids=["ragged", "unclosed", "column", "encoding", "empty", "type"],
)
def test_a_bad_file_fails_the_job_and_is_named_with_its_line(
    folder: Path, cli: Cli, content: bytes, texts: list[str]
) -> None:
    (folder / "in.csv").write_bytes(content)
    said = cli("run", put(folder, "csv"))
    check(said, 11, "job 'csv' FAILED", *texts)
    chunks = 1 if b"2,b" in content else 0
    (written,) = rows(folder, "SELECT coalesce(sum(write_count), 0) FROM triolet_step")
    assert written == (2 * chunks,)


def test_a_missing_file_fails_the_job(folder: Path, cli: Cli) -> None:
    check(cli("run", put(folder, "csv")), 11, "in.csv")


def test_a_mended_file_is_loaded_from_the_last_commit_on(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "csv")
    (folder / "in.csv").write_text("id,name\n1,a\n2,b\n3\n")
    cli("run", target)
    (folder / "in.csv").write_text("id,name\n1,a\n2,b\n3,c\n")
    assert cli("run", target).code == 0
    assert rows(folder, "SELECT id FROM people") == [(1,), (2,), (3,)]


def test_a_locked_store_is_waited_for_and_then_refused(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("migrate")
    monkeypatch.setattr(backend_module, "PAUSES_MAX", 3)
    monkeypatch.setattr(connection_module, "BUSY_SECS", 0.05)
    other = sqlite3.connect(folder / STORE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    said = cli("run", put(folder, "plain"))
    other.execute("ROLLBACK")
    other.close()
    check(said, 7, STORE, "was locked by another process", "try again")
    assert statuses(folder) == []
    assert not (folder / "runs").exists()


def test_a_lock_that_is_given_back_in_time_is_waited_out(
    folder: Path, cli: Cli
) -> None:
    cli("migrate")
    other = sqlite3.connect(
        folder / STORE, isolation_level=None, check_same_thread=False
    )
    other.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.3, other.execute, ["ROLLBACK"])
    release.start()
    said = cli("run", put(folder, "plain"))
    release.join()
    other.close()
    assert said.code == 0
    assert statuses(folder) == ["COMPLETED"]


def test_questions_are_answered_while_another_process_writes(
    folder: Path, cli: Cli
) -> None:
    cli("run", put(folder, "plain"))
    other = sqlite3.connect(folder / STORE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    codes = (cli("list").code, cli("show", "1").code)
    other.execute("ROLLBACK")
    other.close()
    assert codes == (0, 0)


def test_a_read_only_store_is_refused_but_can_be_listed(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    cli("run", target)
    raw = bytearray((folder / STORE).read_bytes())
    raw[WRITE_VERSION_OFFSET] = 3
    (folder / STORE).write_bytes(raw)
    check(cli("run", target, "--new"), 7, STORE, "is read-only")
    assert (folder / STORE).read_bytes() == raw
    assert (folder / "runs").read_text() == "x"
    assert cli("list").code == 0


def test_questions_change_nothing_in_the_folder(folder: Path, cli: Cli) -> None:
    cli("run", put(folder, "plain"))
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    content = snapshot(folder)
    for words in (["list"], ["show", "1"], ["show", "7"]):
        assert cli(*words).code == (4 if words[-1] == "7" else 0)
    assert {one.name: one.stat().st_mtime_ns for one in folder.iterdir()} == before
    assert snapshot(folder) == content


def test_numbers_of_more_than_64_bits_are_refused(folder: Path, cli: Cli) -> None:
    target, huge = put(folder, "plain"), "9" * 30
    cli("run", target)
    check(cli("list", "--limit", huge), 2, "--limit")
    check(cli("list", "--before", huge), 2, "--before")
    check(cli("show", huge), 4, f"no execution {huge}")
    for number in (huge, "0", "-1"):
        check(cli("run", target, "--run", number), 2, "--run must be the number of a")
    check(cli("run", target, f"n:int={huge}"), 3, "more than 64 bits")


def test_a_store_in_memory_of_sqlite_is_refused_however_it_is_spelled(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "plain")
    for url in ("sqlite:///:memory:", "sqlite:///%3Amemory%3A"):
        check(cli("run", target, "--store", url), 2, "write memory: to mean that")
    check(cli("list", "--store", "sqlite:///a%00b"), 2, "U+0000")


def test_a_file_that_is_no_database_is_refused_and_left_alone(
    folder: Path, cli: Cli
) -> None:
    (folder / STORE).write_text("year,month\n" * 100)
    before = snapshot(folder)
    for words in (["run", put(folder, "plain")], ["list"], ["migrate"]):
        check(cli(*words), 7, STORE, "is not a SQLite database")
    assert snapshot(folder) == before


def test_a_newer_schema_is_refused_and_left_alone(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    cli("run", target)
    newer = sqlite3.connect(folder / STORE)
    newer.execute("INSERT INTO triolet_schema VALUES (?, 0)", (schema.NEWEST + 1,))
    newer.commit()
    newer.close()
    for words in (["run", target, "--new"], ["list"], ["show", "1"], ["migrate"]):
        check(cli(*words), 7, f"version {schema.NEWEST + 1}", "use a newer triolet")
    assert statuses(folder) == ["COMPLETED"]
    assert (folder / "runs").read_text() == "x"


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("raising", ["work", "ValueError", "no such ledger"]),
        ("returning", ["work", "str"]),
        ("leaving", ["work", "sys.exit(3)"]),
        ("deciding", ["choose", "int"]),
    ],
)
def test_user_code_that_goes_wrong_fails_the_job_without_a_traceback(
    folder: Path, cli: Cli, name: str, texts: list[str]
) -> None:
    said = cli("run", f"{put(folder, 'ends')}:{name}")
    check(said, 11, f"job {name!r} FAILED", *texts)
    assert statuses(folder) == ["FAILED"]


def test_debug_adds_the_traceback_of_user_code(folder: Path, cli: Cli) -> None:
    said = cli("run", f"{put(folder, 'ends')}:raising", "--debug")
    assert said.code == 11
    assert "Traceback (most recent call last)" in said.err
    assert "ends_jobs.py" in said.err


def test_debug_adds_the_traceback_of_an_error(folder: Path, cli: Cli) -> None:
    said = cli("run", "missing.py:job", "--debug")
    assert said.code == 2
    assert "Traceback (most recent call last)" in said.err
    assert said.err.splitlines()[-1].startswith("triolet: ")


def test_an_unknown_outcome_is_never_repeated(folder: Path, cli: Cli) -> None:
    target = f"{put(folder, 'ends')}:unknowing"
    check(cli("run", target), 6, "job 'unknowing' UNKNOWN")
    check(cli("run", target), 6, "outcome of execution 1 is UNKNOWN")
    assert statuses(folder) == ["UNKNOWN"]


def test_a_second_launch_of_a_running_instance_names_the_owner(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "waits")
    child = spawn("run", target, cwd=folder)
    until((folder / "began").exists)
    try:
        said = cli("run", target)
    finally:
        child.terminate()
    code, _, _ = ended(child)
    assert code == 12
    check(said, 5, "already running", "execution 1", f"process {child.pid} on host ")
    assert statuses(folder) == ["STOPPED"]
    assert (folder / "began").read_text() == "x"


STRANGER = (
    "UPDATE triolet_owner SET facts = "
    "json_set(json_remove(facts, '$.boot_id'), '$.host', 'mill')"
)


def test_a_lease_of_a_stranger_is_awaited_only_by_who_wants_to(
    folder: Path, cli: Cli
) -> None:
    """Whether a process of another machine lives, nobody here can know."""
    target = put(folder, "waits")
    child = spawn("run", target, cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)
    (folder / "go").touch()
    with closing(sqlite3.connect(folder / STORE)) as store, store:
        store.execute(STRANGER)

    began = time.monotonic()
    said = cli("run", target, "--no-wait")

    assert time.monotonic() - began < 5
    check(said, 5, "already running", "execution 1", "on host mill")
    assert statuses(folder) == ["STARTED"]
    with closing(sqlite3.connect(folder / STORE)) as store, store:
        soon = round((time.time() + 1) * 1_000_000)
        store.execute(f"UPDATE triolet_owner SET lease_until = {soon}")
    said = cli("run", target)
    assert said.code == 0
    assert "waiting" in said.err
    assert statuses(folder) == ["FAILED", "COMPLETED"]


def test_of_two_simultaneous_launches_exactly_one_wins(folder: Path) -> None:
    target = put(folder, "slow")
    put_people(folder, 300)
    children = [spawn("run", target, cwd=folder) for _ in range(2)]
    ends = sorted((ended(child)[::2] for child in children), key=lambda end: end[0])
    assert [code for code, _ in ends] == [0, 5]
    winner = next(child.pid for child in children if child.returncode == 0)
    loser = ends[1][1]
    assert f"owned by process {winner} on host " in loser
    assert "Traceback" not in loser
    assert statuses(folder) == ["COMPLETED"]
    assert rows(folder, "SELECT count(*), count(DISTINCT id) FROM people") == [
        (300, 300)
    ]


def test_a_file_that_is_not_utf8_source_is_a_clear_error(
    folder: Path, cli: Cli
) -> None:
    (folder / "latin_jobs.py").write_bytes(b"x = '\xe4'\n")
    check(cli("run", "latin_jobs.py"), 2, "latin_jobs.py")


def test_an_interrupted_import_shows_no_traceback(folder: Path) -> None:
    source = "import time\nopen('began', 'w').close()\ntime.sleep(60)\n"
    (folder / "long_jobs.py").write_text(source)
    child = spawn("run", "long_jobs.py", cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGINT)
    code, _, err = ended(child)
    assert code == 130
    assert "Traceback" not in err
    assert not (folder / STORE).exists()
