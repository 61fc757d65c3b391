"""``triolet graph``: a job drawn for Mermaid."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from triolet.actors import FAIL, Decision, Job, Step

def load(ctx):
    pass

def breaks(ctx):
    raise ValueError("no paper")

job = Job("drawn", [
    Step("load", load),
    Decision("enough", lambda ctx: "YES", then={"YES": "report", "N*": FAIL}),
    Step("report", breaks),
])
other = Job("other", [Step("load", load)])
odd = Job("odd", [Step("a.b-c", load, then={"[x]?": "a.b-c2"}), Step("a.b-c2", load)])
"""
DRAWN = """flowchart TD
  start(( )) --> n0
  n0["load"]
  n1{"enough"}
  n2["report"]
  n0 -->|"FAILED"| fail
  n0 -->|"*"| n1
  n1 -->|"YES"| n2
  n1 -->|"N*"| fail
  n2 -->|"FAILED"| fail
  n2 -->|"*"| complete
  complete(["COMPLETE"])
  fail(["FAIL"])
"""


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "drawn_jobs.py").write_text(JOBS)


def test_a_job_is_drawn_without_a_store(cli: Cli, folder: Path) -> None:
    said = cli("graph", "drawn_jobs.py:job")

    assert (said.code, said.out) == (0, DRAWN)
    assert not list(folder.glob("*.db"))


def test_an_execution_gives_every_node_its_status(cli: Cli) -> None:
    cli("run", "drawn_jobs.py:job")

    said = cli("graph", "drawn_jobs.py:job", "--execution", "1")

    assert said.out == DRAWN + (
        "  classDef completed fill:#d3f0d3\n  class n0,n1 completed\n"
        "  classDef failed fill:#f6c9c9\n  class n2 failed\n"
    )
    found = json.loads(
        cli("graph", "drawn_jobs.py:job", "--execution", "1", "--json").out
    )
    assert found["data"]["statuses"] == {
        "enough": "COMPLETED",
        "load": "COMPLETED",
        "report": "FAILED",
    }


def test_an_execution_of_another_job_is_refused(cli: Cli) -> None:
    cli("run", "drawn_jobs.py:other")

    said = cli("graph", "drawn_jobs.py:job", "--execution", "1")

    assert said.code == 2
    assert "execution 1 is one of job 'other', not of 'drawn'" in said.err


def test_names_cannot_break_the_picture(cli: Cli) -> None:
    said = cli("graph", "drawn_jobs.py:odd")

    assert (said.code, said.err) == (0, "")
    assert '  n0 -->|"#91;x#93;?"| n1' in said.out.splitlines()
