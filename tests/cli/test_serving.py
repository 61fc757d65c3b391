"""``enqueue``, ``requests`` and ``serve``, also by several processes that die."""

import json
import signal
from pathlib import Path

import pytest

from .conftest import Cli, is_one_sentence
from .programs import ended, put, rows, spawn, statuses, until

REQUESTS = "SELECT status, execution_id FROM triolet_launch_request ORDER BY id"


def test_a_request_is_made_served_and_listed(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    assert cli("requests", "--store", "sqlite:///none.db").code == 7
    said = cli("enqueue", target)
    assert (said.code, said.out) == (
        0,
        "request 1 waits for a 'triolet serve' of job plain\n",
    )
    assert cli("enqueue", target, "--new").code == 0
    assert cli("enqueue", target).code == 0

    said = cli("serve", target, "--once", "--max", "1")

    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[:2] == [
        "request 1: job plain is COMPLETED (execution 1)",
        "request 2: job plain is COMPLETED (execution 2)",
    ]
    assert lines[2].startswith(
        "request 3: job plain was refused: job 'plain' has compl"
    )
    assert lines[3].endswith("2 done, 1 refused, 0 given back")
    listed = cli("requests").out.splitlines()
    assert [line.split()[2] for line in listed[1:]] == ["REFUSED", "DONE", "DONE"]
    assert (
        cli("requests", "--status", "refused", "--limit", "1").out.count("plain") == 2
    )
    more = cli("requests", "--limit", "1").out
    assert more.endswith("there are more: add --before 3\n")


def test_a_job_that_failed_is_told_and_listed_as_such(folder: Path, cli: Cli) -> None:
    target = put(folder, "ends") + ":raising"
    cli("enqueue", target)

    said = cli("serve", target, "--once")

    assert said.out.splitlines()[0] == (
        "request 1: job raising is FAILED (execution 1): work: ValueError: "
        "no such ledger"
    )
    head, row = cli("requests").out.splitlines()
    assert "execution  which is" in head
    assert row.split()[-2:] == ["1", "FAILED"]
    (listed,) = json.loads(cli("requests", "--json").out)["data"]
    assert (listed["status"], listed["execution_status"]) == ("DONE", "FAILED")


def test_both_speak_json(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    asked = json.loads(cli("enqueue", target, "--json").out)
    assert asked["data"] == {"request_id": 1}
    served = json.loads(cli("serve", target, "--once", "--json").out)
    assert served["data"] == {"done": 1, "refused": 0, "given_back": 0}
    (listed,) = json.loads(cli("requests", "--json").out)["data"]
    assert (listed["status"], listed["execution_id"]) == ("DONE", 1)


def test_bad_input_is_refused_in_a_sentence(folder: Path, cli: Cli) -> None:
    target = put(folder, "typed")
    for code, words, message in (
        (3, ["enqueue", target, "day=mon", "key=hush"], "'key' is secret"),
        (3, ["enqueue", target], "'day' is required"),
        (2, ["enqueue", "none.py"], "no file"),
        (2, ["serve", target, target, "--once"], "two jobs with the name 'typed'"),
        (2, ["serve", target, "--max", "0"], "--max"),
        (2, ["serve", target, "--store", "nonsense"], "the store URL"),
        (2, ["serve", target, "--store", "memory:"], "must outlast this process"),
        (2, ["enqueue", target, "--store", "memory:"], "must outlast this process"),
        (2, ["requests", "--store", "memory:"], "must outlast this process"),
        (2, ["requests", "--status", "odd"], "--status"),
        (2, ["requests", "--limit", "0"], "--limit"),
        (2, ["requests", "--before", "-1"], "--before"),
    ):
        said = cli(*words)
        assert said.code == code, said
        assert is_one_sentence(said)
        assert message in said.err
        assert "hush" not in said.err
    assert not (folder / "triolet.db").exists()


def test_a_killed_server_is_followed_at_once_by_the_next(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "waits")
    cli("enqueue", target, "--new")
    child = spawn("serve", target, cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)
    (folder / "go").touch()

    said = cli("serve", target, "--once")

    assert said.out.splitlines()[0] == "request 1: job waits is COMPLETED (execution 2)"
    assert rows(folder, REQUESTS) == [("DONE", 2)]
    assert rows(folder, "SELECT run FROM triolet_instance") == [(1,)]
    assert statuses(folder) == ["FAILED", "COMPLETED"]


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name
)
def test_a_signal_gives_back_what_runs(
    folder: Path, cli: Cli, number: signal.Signals
) -> None:
    target = put(folder, "waits")
    cli("enqueue", target)
    child = spawn("serve", target, cwd=folder)
    until((folder / "began").exists)
    child.send_signal(number)
    code, out, err = ended(child)

    assert code == 0
    assert "Traceback" not in err
    assert out.splitlines()[0] == (
        "request 1: job waits is STOPPED (execution 1), given back"
    )
    assert rows(folder, REQUESTS) == [("REQUESTED", 1)]
    (folder / "go").touch()
    assert cli("serve", target, "--once").code == 0
    assert rows(folder, REQUESTS) == [("DONE", 2)]


def test_an_idle_server_ends_with_a_signal(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    cli("enqueue", target)
    child = spawn("serve", target, cwd=folder)
    until(lambda: rows(folder, REQUESTS) == [("DONE", 1)])
    child.send_signal(signal.SIGTERM)
    code, out, err = ended(child)
    assert "the job" not in err
    assert (code, out.splitlines()[-1].endswith("1 done, 0 refused, 0 given back")) == (
        0,
        True,
    ), err
