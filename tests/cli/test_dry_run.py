"""``run --dry-run``: what would happen, and nothing happens."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from pathlib import Path
from triolet.actors import Decision, Exit, FAIL, Job, Parameter, Step, STOP

def load(ctx):
    pass

def breaks(ctx):
    if not Path("paper").exists():
        raise ValueError("no paper")

job = Job("dry", [
    Step("load", load),
    Decision("enough", lambda ctx: "YES", then={"YES": "report", "N*": FAIL}),
    Step("report", breaks),
    Step("always", load, allow_start_if_complete=True),
], parameters=[Parameter("day", str, default="today")])
"""


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "dry_jobs.py").write_text(JOBS)


def test_a_job_that_never_ran_is_previewed_to_its_decision(
    cli: Cli, folder: Path
) -> None:
    said = cli("run", "dry_jobs.py:job", "--dry-run")

    assert said.out.splitlines() == [
        "job dry would begin attempt 1",
        "  load    would run       it has not run yet",
        "  enough  would be asked  it has no answer yet for what it would be asked about",
        "and go on as it answers:",
        "  YES  -> report",
        "  N*   -> FAIL",
    ]
    assert (said.code, list(folder.glob("*.db"))) == (0, [])


def test_a_preview_is_what_the_next_launch_then_does(cli: Cli, folder: Path) -> None:
    cli("run", "dry_jobs.py:job")
    before = (folder / "triolet.db").read_bytes()

    said = cli("run", "dry_jobs.py:job", "--dry-run", "--json")

    found = json.loads(said.out)["data"]
    assert [(one["node"], one["verdict"]) for one in found["nodes"]] == [
        ("load", "reuse"),
        ("enough", "keep"),
        ("report", "run"),
        ("always", "run"),
    ]
    assert (found["ends"], found["restart_of"]) == ("COMPLETED", 1)
    assert (folder / "triolet.db").read_bytes() == before
    (folder / "paper").touch()
    ran = json.loads(cli("run", "dry_jobs.py:job", "--json").out)["data"]
    assert [(one["row"]["node"], one["reused"]) for one in ran["steps"]] == [
        ("load", True),
        ("report", False),
        ("always", False),
    ]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run", "dry_jobs.py:job"], 3, "has completed with these parameters"),
        (["run", "dry_jobs.py:job", "--run", "4"], 4, "has no such run"),
        (["run", "dry_jobs.py:job", "x=1"], 3, "parameter 'x'"),
        (["restart", "9", "dry_jobs.py:job"], 4, "there is no execution 9"),
    ],
)
def test_what_would_be_refused_is_refused(
    cli: Cli, folder: Path, words: list[str], code: int, sentence: str
) -> None:
    (folder / "paper").touch()
    cli("run", "dry_jobs.py:job")

    said = cli(*words, "--dry-run")

    assert (said.code, sentence in said.err) == (code, True), said
    assert said.code == cli(*words).code


def test_a_new_run_and_a_restart_are_previewed(cli: Cli) -> None:
    cli("run", "dry_jobs.py:job")

    anew = cli("run", "dry_jobs.py:job", "--new", "--dry-run")
    again = cli("restart", "1", "dry_jobs.py:job", "--dry-run")

    assert anew.out.startswith("job dry would begin attempt 1\n  load")
    assert again.out.splitlines()[0] == (
        "job dry would begin attempt 2, continuing execution 1"
    )
    assert "report  would run        it FAILED before" in again.out


def test_a_store_without_tables_is_previewed_like_one_that_is_not_there(
    cli: Cli, folder: Path, postgres_url: str
) -> None:
    (folder / "empty.db").touch()
    words = ["run", "dry_jobs.py:job", "--dry-run", "--store"]
    absent = cli(*words, "sqlite:///absent.db")

    for url in ("sqlite:///empty.db", postgres_url):
        said = cli(*words, url)
        assert (said.code, said.out) == (0, absent.out), said
        looked = cli("list", "--store", url)
        assert (looked.code, "first run of a job makes" in looked.err) == (7, True)
    assert (folder / "empty.db").read_bytes() == b""
    assert not (folder / "absent.db").exists()


def test_an_older_store_is_not_previewed_as_if_it_were_empty(
    cli: Cli, folder: Path
) -> None:
    cli("run", "dry_jobs.py:job")
    with closing(sqlite3.connect(folder / "triolet.db")) as older:
        older.execute("DELETE FROM triolet_schema WHERE version > 1")
        older.commit()

    for more in ([], ["--dry-run"]):
        said = cli("run", "dry_jobs.py:job", *more)
        assert (said.code, "run 'triolet migrate' once" in said.err) == (7, True), said
