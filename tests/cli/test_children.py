"""Jobs that run other jobs, seen from the command line."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from pathlib import Path
from triolet.actors import FromParent, Job, JobStep, Parameter, Step

def load(ctx):
    pass

def breaks(ctx):
    if not Path("paper").exists():
        raise ValueError("no paper")

child = Job("child", [Step("load", load), Step("print", breaks)],
            parameters=[Parameter("day", str)])
job = Job("outer", [
    Step("first", load),
    JobStep("books", child, parameters={"day": FromParent("day")}),
], parameters=[Parameter("day", str)])
"""
DRAWN = """flowchart TD
  start(( )) --> n0
  n0["first"]
  n1[/"books: job child"/]
  n0 -->|"FAILED"| fail
  n0 -->|"*"| n1
  n1 -->|"FAILED"| fail
  n1 -->|"*"| complete
  complete(["COMPLETE"])
  fail(["FAIL"])
"""


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "jobs.py").write_text(JOBS)


def test_parent_and_child_show_each_other(cli: Cli, folder: Path) -> None:
    said = cli("run", "jobs.py:job", "day=monday")
    assert said.code == 11
    assert "books: execution 2 of job 'child' FAILED: print: ValueError" in said.err

    parent = cli("show", "1").out.splitlines()
    assert "    job child: execution 2" in parent
    child = cli("show", "2").out.splitlines()
    assert "  run by step books of execution 1" in child
    assert "  parameter day = monday (not identifying)" in child
    assert not any("triolet." in line for line in child)
    listed = cli("list").out
    assert "child" in listed
    assert "outer" in listed

    (folder / "paper").touch()
    assert cli("run", "jobs.py:job", "day=monday").code == 0
    shown = json.loads(cli("show", "4", "--json").out)["data"]["detail"]
    assert shown["execution"]["restart_of"] == 2
    lineage = {
        one["name"]: one["value"]
        for one in shown["execution"]["parameters"]
        if one["name"].startswith("triolet.")
    }
    assert lineage == {
        "triolet.parent_instance": 1,
        "triolet.parent_node": "books",
        "triolet.parent_execution": 3,
    }


def test_a_child_is_found_whose_step_did_not_come_to_say_it(
    cli: Cli, folder: Path
) -> None:
    cli("run", "jobs.py:job", "day=monday")
    cli("run", "jobs.py:job", "day=monday")
    with closing(sqlite3.connect(folder / "triolet.db")) as database:
        database.execute("UPDATE triolet_step SET context = NULL")
        database.commit()
    assert "    job child: execution 2" in cli("show", "1").out.splitlines()
    shown = json.loads(cli("show", "3", "--json").out)["data"]
    assert shown["children"] == {"books": {"job": "child", "execution_id": 4}}
    assert json.loads(cli("show", "2", "--json").out)["data"]["children"] == {}


def test_a_child_is_not_restarted_by_itself(cli: Cli) -> None:
    cli("run", "jobs.py:job", "day=monday")
    said = cli("restart", "2", "jobs.py:child")
    assert said.code == 3
    assert "execution 2 is run by step 'books' of execution 1" in said.err


def test_a_step_that_runs_a_job_is_drawn_slanted(cli: Cli) -> None:
    assert cli("graph", "jobs.py:job").out == DRAWN


def test_a_preview_says_which_job_would_run(cli: Cli) -> None:
    said = cli("run", "jobs.py:job", "day=monday", "--dry-run").out.splitlines()
    assert said[2] == ("  books  would run  it has not run yet; it runs job child")
    cli("run", "jobs.py:job", "day=monday")
    said = cli("run", "jobs.py:job", "day=monday", "--dry-run").out.splitlines()
    assert said[2].endswith("it FAILED before; it runs job child")


def test_a_child_that_cannot_go_on_is_only_proposed_anew(
    cli: Cli, folder: Path
) -> None:
    (folder / "once_jobs.py").write_text(
        JOBS.replace(
            'parameters=[Parameter("day", str)])\njob',
            'parameters=[Parameter("day", str)], restartable=False)\njob',
        )
    )
    for code in (11, 11):
        said = cli("run", "once_jobs.py:job", "day=monday")
        assert said.code == code
        assert said.out.splitlines()[-1] == (
            "  it cannot be continued: 'triolet run ... --new' runs it anew"
        )
    (folder / "paper").touch()
    assert cli("run", "once_jobs.py:job", "day=monday", "--new").code == 0


def test_an_abandoned_child_is_only_proposed_anew(cli: Cli) -> None:
    said = cli("run", "jobs.py:job", "day=monday")
    assert "give the same command again" in said.out
    cli("abandon", "2", "--reason", "no paper any more", "--yes")

    said = cli("run", "jobs.py:job", "day=monday")

    assert "was abandoned" in said.err
    assert "same command" not in said.out
    assert said.out.splitlines()[-1].startswith("  it cannot be continued")


def test_a_child_of_unknown_outcome_has_to_be_resolved_too(
    cli: Cli, folder: Path
) -> None:
    text = JOBS.replace("import FromParent", "import OutcomeUnknown, FromParent")
    text = text.replace("ValueError", "OutcomeUnknown")
    (folder / "unsure_jobs.py").write_text(text)

    said = cli("run", "unsure_jobs.py:job", "day=monday")

    assert said.code == 6
    recover, child = said.out.splitlines()[-2:]
    assert "use 'triolet recover 1 --reason WHY'" in recover
    assert child == (
        "  and the same for execution 2 of job child, which step books ran"
    )
