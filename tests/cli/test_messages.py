"""What went wrong is said once, in words, with the line that is to be mended."""

import signal
from pathlib import Path

import pytest

from .conftest import Cli, is_one_sentence
from .programs import ended, put, spawn, statuses, triolet, until

PLACE = "at ends_jobs.py, line "
HINT = "--debug shows the traceback"


def test_a_failure_is_told_once_with_the_line_that_raised_it(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "ends")
    said = cli("run", f"{target}:raising")
    assert (said.out + said.err).count("no such ledger") == 1
    lines = (folder / target).read_text().splitlines()
    number = 1 + lines.index('def raises(ctx): raise ValueError("no such ledger")')
    assert f"{PLACE}{number}; {HINT}" in said.err
    assert f"{PLACE}{number}" in cli("show", "1").out


def test_with_the_traceback_there_is_no_hint_at_it(folder: Path, cli: Cli) -> None:
    said = cli("run", put(folder, "ends") + ":raising", "--debug")
    assert "Traceback" in said.err
    assert HINT not in said.err


def test_what_is_no_exception_ends_the_command_with_a_sentence(
    folder: Path, cli: Cli
) -> None:
    said = cli("run", put(folder, "mistakes") + ":bare")
    assert said.code == 70
    assert is_one_sentence(said)
    assert "Odd: strange (mistakes_jobs.py, line " in said.err
    assert "please report it" not in said.err
    assert statuses(folder) == ["FAILED"]


@pytest.mark.parametrize("words", [(), ("--debug",)], ids=["quiet", "debug"])
def test_a_mistake_in_logging_never_fails_the_work(
    folder: Path, words: tuple[str, ...]
) -> None:
    # In a process of its own: the handlers of pytest do raise.
    target = put(folder, "mistakes") + ":logging"
    said = triolet("run", target, *words, cwd=folder)
    assert said.returncode == 0
    assert "warning: a log record of mistakes_jobs.py, line " in said.stderr
    assert "Traceback" not in said.stderr


def test_progress_that_is_no_number_is_the_fault_of_who_gave_it(
    folder: Path, cli: Cli
) -> None:
    said = cli("run", put(folder, "mistakes") + ":counting")
    assert said.code == 11
    assert "done of ctx.progress must be an int, not str" in said.err
    assert "at mistakes_jobs.py, line " in said.err
    assert "sink" not in said.err


def test_an_execution_that_runs_has_neither_an_exit_code_nor_an_end(
    folder: Path, cli: Cli
) -> None:
    child = spawn("run", put(folder, "waits"), cwd=folder)
    until((folder / "began").exists)
    shown = cli("show", "1").out
    child.send_signal(signal.SIGINT)
    ended(child)
    assert shown.startswith("execution 1 of job waits: STARTED\n")
    assert "UTC, not ended" in shown
    assert "UNKNOWN" not in shown


def test_a_stop_that_a_thread_does_not_heed_says_what_it_waits_for(
    folder: Path,
) -> None:
    child = spawn("run", put(folder, "blocks"), cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGINT)
    assert child.stderr is not None
    # Between the two a slow machine writes progress.
    said = next(line for line in child.stderr if "waiting" in line)
    assert said == (
        "'work' runs in a thread that cannot be cancelled; waiting for it to "
        "return; Ctrl-C again ends the process now\n"
    )
    (folder / "go").touch()
    assert ended(child)[0] == 12
