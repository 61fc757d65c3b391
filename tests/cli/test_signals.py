"""Signals to real processes: nothing is lost, nothing is done twice."""

import json
import signal
import sqlite3
from pathlib import Path

import pytest

from .programs import (
    STORE,
    ended,
    put,
    put_people,
    rows,
    spawn,
    statuses,
    triolet,
    until,
)

BOTH = pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name
)
PEOPLE = 300


def chunks(folder: Path) -> int:
    """Give the number of committed chunks, 0 before the store is there."""
    if not (folder / STORE).exists():
        return 0
    try:
        found = rows(folder, "SELECT coalesce(max(commit_count), 0) FROM triolet_step")
    except sqlite3.OperationalError:
        return 0
    (count,) = found[0]
    assert isinstance(count, int)
    return count


def is_loaded_once(folder: Path) -> bool:
    query = "SELECT count(*), count(DISTINCT id), sum(id) FROM people"
    return rows(folder, query) == [(PEOPLE, PEOPLE, PEOPLE * (PEOPLE - 1) // 2)]


@BOTH
def test_a_signal_stops_a_tasklet_and_the_store_says_so(
    tmp_path: Path, number: signal.Signals
) -> None:
    target = put(tmp_path, "waits")
    child = spawn("run", target, cwd=tmp_path)
    until((tmp_path / "began").exists)
    child.send_signal(number)
    code, out, err = ended(child)
    assert code == 12
    assert "stopping the job" in err
    assert err.splitlines()[-1] == "triolet: job 'waits' STOPPED (execution 1)"
    assert "Traceback" not in err
    assert "give the same command again" in out
    assert rows(tmp_path, "SELECT status, ended_at > 0 FROM triolet_execution") == [
        ("STOPPED", 1)
    ]
    (tmp_path / "go").touch()
    again = triolet("run", target, cwd=tmp_path)
    assert again.returncode == 0
    assert "continued execution 1" in again.stdout


@BOTH
def test_a_signal_stops_a_load_behind_a_whole_chunk(
    tmp_path: Path, number: signal.Signals
) -> None:
    target = put(tmp_path, "slow")
    put_people(tmp_path, PEOPLE)
    child = spawn("run", target, cwd=tmp_path)
    until(lambda: chunks(tmp_path) >= 3)
    child.send_signal(number)
    code, _, _ = ended(child)
    assert code == 12
    assert statuses(tmp_path) == ["STOPPED"]
    done = chunks(tmp_path)
    assert 3 <= done < PEOPLE // 10
    assert rows(tmp_path, "SELECT count(*) FROM people") == [(done * 10,)]
    again = triolet("run", target, cwd=tmp_path)
    assert again.returncode == 0
    assert f"load: continues after {done * 10} items" in again.stderr
    assert is_loaded_once(tmp_path)


def test_a_second_signal_ends_at_once_and_the_next_launch_takes_over(
    tmp_path: Path,
) -> None:
    target = put(tmp_path, "blocks")
    child = spawn("run", target, cwd=tmp_path)
    until((tmp_path / "began").exists)
    assert child.stderr is not None
    child.send_signal(signal.SIGINT)
    assert "a second Ctrl-C ends the process at once" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    code, _, err = ended(child)
    assert code == 130
    assert "the next launch continues from the last commit" in err
    assert "Traceback" not in err
    assert statuses(tmp_path)[0] in ("STARTED", "STOPPING")
    (tmp_path / "go").touch()
    again = triolet("run", target, cwd=tmp_path)
    assert again.returncode == 0
    assert "took over execution 1, whose process had died" in again.stdout
    assert statuses(tmp_path)[1:] == ["COMPLETED"]
    assert (tmp_path / "began").read_text() == "xx"


def test_a_killed_load_is_continued_with_nothing_lost_and_nothing_twice(
    tmp_path: Path,
) -> None:
    target = put(tmp_path, "slow")
    put_people(tmp_path, PEOPLE)
    for least in (3, 10):
        child = spawn("run", target, cwd=tmp_path)
        until(lambda least=least: chunks(tmp_path) >= least)  # type: ignore[misc]  # bound now
        child.kill()
        ended(child)
        assert statuses(tmp_path)[-1] == "STARTED"
    last = triolet("run", target, cwd=tmp_path)
    assert last.returncode == 0
    assert "took over execution 2, whose process had died" in last.stdout
    assert statuses(tmp_path) == ["FAILED", "FAILED", "COMPLETED"]
    assert is_loaded_once(tmp_path)
    shown = triolet("show", "1", cwd=tmp_path).stdout
    assert "[STALE_RECOVERED]" in shown


@BOTH
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_signal_before_the_job_began_leaves_no_execution(
    tmp_path: Path, number: signal.Signals, form: list[str]
) -> None:
    target = put(tmp_path, "plain")
    triolet("migrate", cwd=tmp_path)
    other = sqlite3.connect(tmp_path / STORE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    child = spawn("run", target, *form, cwd=tmp_path)
    until(lambda: signals_are_caught(child.pid))
    child.send_signal(number)
    code, out, err = ended(child)
    other.execute("ROLLBACK")
    other.close()
    assert code == 130
    assert err == "triolet: ended before the job began; nothing was started\n"
    if form:
        found = json.loads(out)
        assert (found["exit_code"], found["data"]) == (130, None)
        assert found["diagnostics"][0]["code"] == "interrupted"
    assert statuses(tmp_path) == []
    assert not (tmp_path / "runs").exists()
    assert triolet("run", target, cwd=tmp_path).returncode == 0


def signals_are_caught(pid: int) -> bool:
    """Ask Linux whether a process has a handler for SIGTERM."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    caught = next(line for line in text.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_a_stop_asked_for_twice_by_a_slow_chunk_ends_at_once(tmp_path: Path) -> None:
    target = put(tmp_path, "slow")
    put_people(tmp_path, PEOPLE)
    child = spawn("run", target, cwd=tmp_path)
    until(lambda: chunks(tmp_path) >= 2)
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGINT)
    code, _, _ = ended(child)
    # The chunk in flight may have been finished before the second signal came.
    assert code in (12, 130)
    assert triolet("run", target, cwd=tmp_path).returncode == 0
    assert is_loaded_once(tmp_path)


def test_a_signal_after_the_end_changes_nothing(tmp_path: Path) -> None:
    target = put(tmp_path, "plain")
    for day in range(3):
        child = spawn("run", target, f"day:int={day}", cwd=tmp_path)
        until(lambda day=day: _completed(tmp_path) > day)  # type: ignore[misc]  # bound now
        child.send_signal(signal.SIGTERM)
        code, _, _ = ended(child)
        assert code in (0, 12, 130, -signal.SIGTERM)
    assert statuses(tmp_path) == ["COMPLETED"] * 3


def _completed(folder: Path) -> int:
    if not (folder / STORE).exists():
        return 0
    try:
        return statuses(folder).count("COMPLETED")
    except sqlite3.OperationalError:
        return 0
