"""Ctrl-C at any instant, and output that nobody takes: never a traceback."""

import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from triolet.actors.cli import main
from triolet.actors.cli.interrupts import EndedByInterrupts

from .conftest import Cli
from .programs import PATIENCE_SECS, command, ended, environment, put, spawn, until

SLEEPS = "import time; open('began', 'w').close(); time.sleep(60)\n"


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["list"], "cyclopts"),
        (["list"], "sqlite3"),
        (["show", "1"], "sqlite3"),
        (["run", "x:y"], "trio"),
    ],
)
def test_an_interrupt_during_an_import_ends_quietly(
    folder: Path, words: list[str], module: str
) -> None:
    (folder / "first").mkdir()
    (folder / "first" / f"{module}.py").write_text(SLEEPS)
    (folder / "triolet.db").touch()
    child = spawn(*words, cwd=folder, PYTHONPATH="first")
    until((folder / "began").exists)
    child.send_signal(signal.SIGINT)
    assert ended(child) == (130, "", "")


def test_the_handler_that_was_there_comes_back(folder: Path, cli: Cli) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert cli("version").code == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_callers_stays(folder: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with EndedByInterrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_question_can_be_asked_in_any_thread(
    folder: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    cli("migrate")
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["list"])))
    thread.start()
    thread.join()
    assert codes == [0]
    assert capsys.readouterr().out == "no executions\n"


def shell(folder: Path, line: str) -> tuple[int, str]:
    """Run a line in bash with the command in place of ``triolet``: code and errors."""
    text = shlex.join(command())
    done = subprocess.run(
        ["bash", "-c", line.replace("triolet", text, 1)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words", ["list", "show 1", "version", "--version", "--help", "run --help"]
)
def test_a_closed_pipe_is_said_in_one_sentence_at_most(
    folder: Path, cli: Cli, words: str
) -> None:
    cli("run", put(folder, "plain"))
    code, err = shell(folder, f"triolet {words} | true; exit ${{PIPESTATUS[0]}}")
    assert code == 10
    assert err == "triolet: the output could not be written: Broken pipe\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
@pytest.mark.parametrize("words", ["list", "--help"])
def test_a_full_disk_is_said_in_one_sentence(
    folder: Path, cli: Cli, words: str
) -> None:
    cli("migrate")
    code, err = shell(folder, f"triolet {words} > /dev/full")
    assert code == 10
    assert err.startswith("triolet: the output could not be written: No space left")
    assert err.count("\n") == 1


def test_closed_output_is_said_and_closed_errors_are_not_missed(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "plain")
    cli("run", target)
    code, err = shell(folder, "triolet list >&-")
    assert code == 10
    assert err == (
        "triolet: the output could not be written: standard output is closed\n"
    )
    assert shell(folder, "triolet show 99 2>&-")[0] == 4
    assert shell(folder, f"triolet run {target} day=2 2>&-")[0] == 0
    assert (folder / "runs").read_text() == "xx"


def test_the_command_is_also_a_module(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triolet.actors.cli", "version"],
        capture_output=True,
        timeout=PATIENCE_SECS,
        check=False,
    )
    assert done.returncode == 0
