"""``stop``, ``abandon``, ``recover``, ``restart`` and ``doctor``, as operators use them."""

import getpass
import io
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from triolet.actors.cli import asking
from triolet.storage import backend
from triolet.storage.backend import AnswerLost

from .conftest import Cli, Said, is_one_sentence
from .programs import ended, put, rows, spawn, statuses, triolet, until


class Terminal(io.StringIO):
    """Standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(text))


def refused(said: Said, code: int, *texts: str) -> None:
    assert said.code == code, said
    assert is_one_sentence(said), said.err
    assert not [text for text in texts if text not in said.err], said.err


def audit(folder: Path) -> list[tuple[object, ...]]:
    query = "SELECT action, actor, reason, outcome FROM triolet_operator_request"
    return rows(folder, f"{query} ORDER BY id")


def fail(folder: Path, cli: Cli) -> str:
    """Leave execution 1 FAILED; give the target."""
    target = put(folder, "routes")
    assert cli("run", target).code == 11
    return target


def leave_unknown(folder: Path, cli: Cli) -> None:
    """Leave execution 1 UNKNOWN."""
    assert cli("run", f"{put(folder, 'ends')}:unknowing").code == 6


def die(folder: Path, name: str = "waits") -> str:
    """Kill a process in the midst of execution 1; give the target."""
    target = put(folder, name)
    child = spawn("run", target, cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)
    return target


# stop


def test_a_running_job_is_stopped_from_another_process(folder: Path, cli: Cli) -> None:
    target = put(folder, "waits")
    child = spawn("run", target, cwd=folder)
    until((folder / "began").exists)

    said = cli("stop", "1", "--reason", "too slow", "--wait")

    assert (said.code, said.out) == (0, "execution 1 is STOPPED\n")
    assert ended(child)[0] == 12
    assert audit(folder) == [("STOP", getpass.getuser(), "too slow", "APPLIED")]
    assert "  stop of STARTED: requested, by " in cli("show", "1").out
    (folder / "go").touch()
    assert cli("run", target).code == 0


def test_a_stop_need_not_be_awaited(folder: Path, cli: Cli) -> None:
    child = spawn("run", put(folder, "waits"), cwd=folder)
    until((folder / "began").exists)

    said = cli("stop", "1")

    assert said.code == 0
    assert "the stop of execution 1 was requested" in said.out
    assert ended(child)[0] == 12


def test_what_has_ended_needs_no_stop(folder: Path, cli: Cli) -> None:
    fail(folder, cli)

    said = cli("stop", "1")

    assert (said.code, said.out) == (
        0,
        "execution 1 is FAILED: there is nothing to stop\n",
    )
    assert cli("stop", "1", "--wait").out == "execution 1 is FAILED\n"
    assert "  stop of FAILED: nothing to stop, by " in cli("show", "1").out


def test_nobody_takes_in_the_stop_of_a_dead_process(folder: Path, cli: Cli) -> None:
    die(folder)

    said = cli("stop", "1")
    assert (said.code, "nobody works on it any more" in said.out) == (0, True)
    refused(cli("stop", "1", "--wait"), 9, "nobody works on it any more", "doctor")
    assert "a stop is pending: by " in cli("show", "1").out

    assert cli("doctor", "--settle", "--yes").code == 0
    assert statuses(folder) == ["STOPPED"]


def test_the_outcome_of_what_is_unknown_is_not_stopped(folder: Path, cli: Cli) -> None:
    leave_unknown(folder, cli)

    refused(cli("stop", "1"), 3, "UNKNOWN", "what is allowed now is recover")
    assert [row[3] for row in audit(folder)] == ["REJECTED"]


# abandon


def test_what_failed_is_abandoned_for_good(folder: Path, cli: Cli) -> None:
    target = fail(folder, cli)

    said = cli("abandon", "1", "--reason", "no longer needed", "--yes")

    assert (said.code, said.out) == (0, "execution 1 is ABANDONED\n")
    refused(cli("run", target), 3, "abandoned")
    assert cli("abandon", "1", "--reason", "again").code == 0
    shown = cli("show", "1").out
    assert "  abandon of FAILED: now ABANDONED, by " in shown
    assert "  abandon of ABANDONED: ABANDONED already, by " in shown


def test_nothing_is_abandoned_without_a_yes(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(folder, cli)
    words = ["abandon", "1", "--reason", "no longer needed"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))

    refused(cli(*words), 8, "--yes")
    answer(monkeypatch, "n\n")
    said = cli(*words)
    assert said.code == 8
    assert "is never continued? [y/N] " in said.err
    assert statuses(folder) == ["FAILED"]
    assert audit(folder) == []

    answer(monkeypatch, "y\n")
    assert cli(*words).code == 0
    assert statuses(folder) == ["ABANDONED"]


def test_a_reason_is_required_where_something_is_closed(folder: Path, cli: Cli) -> None:
    fail(folder, cli)

    refused(cli("abandon", "1", "--yes"), 1, "see 'triolet --help'")
    refused(cli("recover", "1", "--mark-failed", "--yes"), 1, "see 'triolet --help'")


def test_what_completed_is_not_abandoned(folder: Path, cli: Cli) -> None:
    assert cli("run", put(folder, "plain")).code == 0

    said = cli("abandon", "1", "--reason", "x", "--yes")

    refused(said, 3, "COMPLETED", "nothing can be done")


def test_an_earlier_attempt_is_not_abandoned(folder: Path, cli: Cli) -> None:
    target = fail(folder, cli)
    cli("run", target)

    refused(cli("abandon", "1", "--reason", "x", "--yes"), 3, "execution 2")


# recover


@pytest.mark.parametrize(
    ("directive", "status"), [("--mark-failed", "FAILED"), ("--abandon", "ABANDONED")]
)
def test_an_unknown_outcome_is_decided(
    folder: Path, cli: Cli, directive: str, status: str
) -> None:
    leave_unknown(folder, cli)

    said = cli("recover", "1", directive, "--reason", "the bank said no", "--yes")

    assert (said.code, said.out) == (0, f"execution 1 is {status}\n")
    shown = cli("show", "1").out
    assert f"  UNKNOWN -> {status}: by {getpass.getuser()} at " in shown
    assert "'the bank said no'" in shown


def test_a_recovery_tells_what_has_to_be_known(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_unknown(folder, cli)
    answer(monkeypatch, "\n")

    said = cli("recover", "1", "--mark-failed", "--reason", "x")

    assert said.code == 8
    assert "what its last commit did is not known" in said.err
    assert statuses(folder) == ["UNKNOWN"]


@pytest.mark.parametrize("words", [[], ["--mark-failed", "--abandon"]])
def test_a_recovery_is_one_decision(folder: Path, cli: Cli, words: list[str]) -> None:
    leave_unknown(folder, cli)

    refused(cli("recover", "1", *words, "--reason", "x", "--yes"), 1, "--mark-failed")


def test_what_failed_is_not_recovered(folder: Path, cli: Cli) -> None:
    fail(folder, cli)

    said = cli("recover", "1", "--mark-failed", "--reason", "x", "--yes")

    refused(said, 3, "FAILED", "what is allowed now is restart and abandon")
    shown = cli("show", "1").out
    assert "  recover of FAILED: by " in shown
    assert "refused: execution 1 is FAILED" in shown


def test_what_runs_is_not_recovered(folder: Path, cli: Cli) -> None:
    child = spawn("run", put(folder, "waits"), cwd=folder)
    until((folder / "began").exists)

    said = cli("recover", "1", "--mark-failed", "--reason", "x", "--yes")

    refused(said, 5, "already running", f"process {child.pid}")
    child.send_signal(signal.SIGTERM)
    assert ended(child)[0] == 12


@pytest.mark.parametrize(
    "words",
    [
        ["stop", "7"],
        ["abandon", "7", "--reason", "x", "--yes"],
        ["recover", "7", "--abandon", "--reason", "x", "--yes"],
        ["restart", "7", "routes_jobs.py"],
        ["stop", "7" * 30],
        ["abandon", "0", "--reason", "x", "--yes"],
        ["recover", "7" * 30, "--abandon", "--reason", "x", "--yes"],
    ],
)
def test_an_unknown_execution_is_not_found(
    folder: Path, cli: Cli, words: list[str]
) -> None:
    fail(folder, cli)

    refused(cli(*words), 4, f"no execution {words[1]}")


def test_no_operator_makes_a_store(folder: Path, cli: Cli) -> None:
    put(folder, "routes")
    for words in (
        ["stop", "1"],
        ["abandon", "1", "--reason", "x", "--yes"],
        ["recover", "1", "--abandon", "--reason", "x", "--yes"],
        ["restart", "1", "routes_jobs.py"],
        ["doctor"],
    ):
        refused(cli(*words), 7, "there is no store")
    assert not list(folder.glob("*.db*"))


def test_a_request_whose_answer_is_lost_is_done_once(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(folder, cli)
    run = backend.run
    lost = [True]

    def losing(*arguments: Any) -> Any:
        reply = run(*arguments)
        if lost and "Abandon" in type(arguments[2]).__name__:
            lost.pop()
            raise AnswerLost("the wire was cut")
        return reply

    monkeypatch.setattr(asking, "run", losing)

    said = cli("abandon", "1", "--reason", "x", "--yes")

    assert (said.code, said.out) == (0, "execution 1 is ABANDONED\n")
    assert len(audit(folder)) == 1


def test_an_operation_id_is_for_one_request(folder: Path, cli: Cli) -> None:
    fail(folder, cli)

    assert cli("stop", "1", "--operation-id", "mine").code == 0
    assert cli("stop", "1", "--operation-id", "mine").code == 0
    refused(cli("stop", "1", "--operation-id", "mine", "--reason", "x"), 5, "'mine'")
    assert len(audit(folder)) == 1


def test_who_asks_can_be_said(folder: Path, cli: Cli) -> None:
    fail(folder, cli)
    cli("stop", "1", "--actor", "eve")

    assert audit(folder) == [("STOP", "eve", None, "APPLIED")]
    refused(cli("stop", "1", "--actor", "a\tb"), 2, "the actor")


def test_a_user_without_a_name_has_a_number(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(folder, cli)

    def nobody() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert cli("stop", "1").code == 0
    assert str(audit(folder)[0][1]).startswith("uid ")


# restart


def test_a_restart_has_the_parameters_of_the_execution(folder: Path, cli: Cli) -> None:
    target = put(folder, "typed")
    given = ["day=monday", "count=3", "note=first", "key=hush"]
    assert cli("run", target, *given).code == 11

    said = cli("restart", "1", target, "note=second", "key=hush")

    assert said.code == 11
    assert "attempt 2" in said.out
    assert (
        "parameters kept: count and day; given or by default: key and note" in said.out
    )
    shown = cli("show", "2").out
    assert "parameter day = monday" in shown
    assert "parameter note = second" in shown


def test_what_has_completed_is_not_restarted_but_run_anew(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "plain")
    assert cli("run", target).code == 0

    refused(cli("restart", "1", target), 3, "use 'triolet run ... --new'")


def test_of_two_failed_instances_the_named_one_is_restarted(
    folder: Path, cli: Cli
) -> None:
    """C157."""
    target = put(folder, "typed")
    for day in ("monday", "tuesday"):
        cli("run", target, f"day={day}", "key=x")

    cli("restart", "1", target, "key=x")

    shown = cli("show", "3").out
    assert "continues 1" in shown
    assert "parameter day = monday" in shown


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ([], ["'key'", "secret"]),
        (["key=loud"], ["another value"]),
        (["key=hush", "day=tuesday"], ["'day'", "identifying"]),
        (["key=hush", "nite=x"], ["'nite'", "unknown"]),
    ],
)
def test_a_restart_that_does_not_fit_is_refused(
    folder: Path, cli: Cli, words: list[str], texts: list[str]
) -> None:
    target = put(folder, "typed")
    cli("run", target, "day=monday", "key=hush")

    refused(cli("restart", "1", target, *words), 3, *texts)
    assert statuses(folder) == ["FAILED"]


def test_a_restart_is_of_the_same_job(folder: Path, cli: Cli) -> None:
    fail(folder, cli)

    refused(cli("restart", "1", put(folder, "plain")), 2, "'routes'", "'plain'")


# doctor


def test_where_all_has_ended_nothing_is_stuck(folder: Path, cli: Cli) -> None:
    fail(folder, cli)

    assert cli("doctor").out == "every execution has ended: nothing is stuck\n"
    assert cli("doctor", "--settle").out == "there is nothing to settle\n"


def test_what_a_dead_process_left_is_named_and_settled(folder: Path, cli: Cli) -> None:
    target = die(folder)

    said = cli("doctor")

    assert said.code == 0
    assert "execution 1 of job waits: STARTED since " in said.out
    assert "which has died" in said.out
    assert "step work: STARTED" in said.out
    assert "'triolet doctor --settle'" in said.out

    refused(cli("doctor", "--settle"), 8, "--yes")
    settled = cli("doctor", "--settle", "--yes")
    assert settled.out == (
        "execution 1 is FAILED: the next launch continues it, unless the job is not "
        "restartable\n"
    )
    assert statuses(folder) == ["FAILED"]
    assert "every execution has ended" in cli("doctor").out
    (folder / "go").touch()
    assert cli("run", target).code == 0


def test_what_runs_is_left_alone(folder: Path, cli: Cli) -> None:
    child = spawn("run", put(folder, "waits"), cwd=folder)
    until((folder / "began").exists)

    said = cli("doctor")

    assert f"owner: process {child.pid} on host " in said.out
    assert "somebody works on it; 'triolet stop 1' stops it" in said.out
    assert cli("doctor", "--settle", "--yes").out == "there is nothing to settle\n"
    child.send_signal(signal.SIGTERM)
    assert ended(child)[0] == 12


def test_what_is_unknown_is_left_to_an_operator(folder: Path, cli: Cli) -> None:
    leave_unknown(folder, cli)

    said = cli("doctor")

    assert (
        "'triolet recover 1 --reason WHY' with --mark-failed or --abandon" in said.out
    )
    assert cli("doctor", "--settle", "--yes").out == "there is nothing to settle\n"


def test_operators_work_on_postgresql_too(folder: Path, postgres_url: str) -> None:
    target = put(folder, "ends")
    store = {"TRIOLET_STORE": postgres_url}

    def said(*words: str) -> tuple[int, str]:
        done = triolet(*words, cwd=folder, **store)
        return done.returncode, done.stdout + done.stderr

    assert said("run", f"{target}:unknowing")[0] == 6
    assert "'triolet recover 1 --reason WHY'" in said("doctor")[1]
    recovering = said("recover", "1", "--mark-failed", "--reason", "x", "--yes")
    assert recovering == (0, "execution 1 is FAILED\n")
    abandoning = said("abandon", "1", "--reason", "x", "--yes")
    assert abandoning == (0, "execution 1 is ABANDONED\n")
    assert "UNKNOWN -> FAILED: by" in said("show", "1")[1]
