"""``triolet upgrade``: a renamed step goes on where it stood."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_operating import Terminal

BEFORE = """
from triolet.actors import Job, Step

def load(ctx):
    print("loads")

def report(ctx):
    raise ValueError("no paper")

job = Job("daily", revision="1", steps=[Step("load", load), Step("report", report)])
"""
AFTER = """
from triolet.actors import Job, Step

def load(ctx):
    raise AssertionError("ran again")

def report(ctx):
    print("reports")

job = Job("daily", revision="2", steps=[Step("fetch", load), Step("report", report)])
"""


@pytest.fixture
def changed(cli: Cli, folder: Path) -> None:
    """A job that failed, and has another revision and a renamed step since."""
    (folder / "daily_jobs.py").write_text(BEFORE)
    assert cli("run", "daily_jobs.py").code == 11
    (folder / "daily_jobs.py").unlink()
    (folder / "changed_jobs.py").write_text(AFTER)


@pytest.mark.usefixtures("changed")
def test_a_changed_job_continues_after_its_upgrade(cli: Cli) -> None:
    assert cli("run", "changed_jobs.py").code == 3

    said = cli("upgrade", "changed_jobs.py", "--from", "1", "load=fetch")

    assert said.code == 0
    assert said.out == (
        "job daily of revision 2 continues revision 1: 1 node as before, "
        "load as fetch\n"
    )
    ran = cli("run", "changed_jobs.py")
    assert ran.code == 0
    assert "reused" in ran.out


@pytest.mark.usefixtures("changed")
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--from", "9"], 4, "no definition of revision '9' in this store"),
        (["--from", "1", "x=fetch"], 2, "the earlier definition has 'load' and"),
        (["--from", "1", "load=x"], 2, "the changed definition has 'fetch' and"),
        (["--from", "1", "load"], 2, "the pair 'load' must be OLD=NEW"),
    ],
)
def test_what_cannot_be_upgraded_is_said(
    cli: Cli, words: list[str], code: int, sentence: str
) -> None:
    said = cli("upgrade", "changed_jobs.py", *words)

    assert (said.code, sentence in said.err) == (code, True), said


@pytest.mark.usefixtures("changed")
def test_an_upgrade_is_never_changed(cli: Cli) -> None:
    cli("upgrade", "changed_jobs.py", "--from", "1", "load=fetch")
    assert cli("upgrade", "changed_jobs.py", "--from", "1", "load=fetch").code == 0

    said = cli("upgrade", "changed_jobs.py", "--from", "1", "--yes")

    assert said.code == 5
    assert "an upgrade is never changed" in said.err


FORGOTTEN = (
    "job daily of revision 2 {} revision 1: 1 node as before",
    "  left behind: load",
    "  new: fetch",
)


@pytest.mark.usefixtures("changed")
def test_a_dry_run_tells_what_would_be_left_behind(cli: Cli) -> None:
    words = ["upgrade", "changed_jobs.py", "--from", "1"]
    told = [line.format("would continue") for line in FORGOTTEN]

    said = cli(*words, "--dry-run")
    data = json.loads(cli(*words, "--dry-run", "--json").out)["data"]

    assert (said.code, said.out.splitlines()) == (0, told)
    assert data == {
        "job": "daily",
        "revision": "2",
        "earlier": "1",
        "continued": {"report": "report"},
        "left_behind": ["load"],
        "new": ["fetch"],
        "registered": False,
        "unchanged": False,
    }
    assert cli("run", "changed_jobs.py").code == 3
    assert cli(*words, "load=fetch").code == 0


@pytest.mark.usefixtures("changed")
def test_a_forgotten_name_is_asked_about(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["upgrade", "changed_jobs.py", "--from", "1"]

    said = cli(*words)
    assert (said.code, "add --yes" in said.err) == (8, True)

    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    said = cli(*words)
    assert (said.code, said.out) == (8, "")
    question = "leave load behind, with all that was done there, and begin fetch anew?"
    assert question in said.err
    assert cli(*words, "load=fetch").code == 0


@pytest.mark.usefixtures("changed")
def test_what_is_left_behind_is_told_when_somebody_agreed(cli: Cli) -> None:
    said = cli("upgrade", "changed_jobs.py", "--from", "1", "--yes")

    told = [line.format("continues") for line in FORGOTTEN]
    assert (said.code, said.out.splitlines()) == (0, told)


@pytest.mark.usefixtures("changed")
def test_the_refusal_of_a_changed_job_leads_to_the_upgrade(cli: Cli) -> None:
    said = cli("run", "changed_jobs.py")

    assert (said.code, "'triolet upgrade'" in said.err) == (3, True)
