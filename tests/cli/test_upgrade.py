"""``triolet upgrade``: a renamed step goes on where it stood."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

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

    said = cli("upgrade", "changed_jobs.py", "--from", "1")

    assert said.code == 5
    assert "an edge is never changed" in said.err
