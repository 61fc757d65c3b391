"""What the command line tells of a stop that says where the next launch goes on."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from triolet.actors import COMPLETE, FAIL, Decision, Job, Split, Step, Stop

def load(ctx):
    pass

job = Job("held", [
    Step("load", load, then={"*": "sure"}),
    Decision("sure", lambda ctx: "HOLD", then={"HOLD": Stop(resume_at="report")}),
    Step("report", load),
])
failing = Job("failing", [
    Step("load", lambda ctx: 1 / 0, then={"FAILED": Stop(resume_at="report"), "*": "report"}),
    Step("report", load),
])
parted = Job("parted", [
    Step("load", load),
    Split("both", [[Step("left", load)], [Step("right", lambda ctx: 1 / 0)]],
          then={"FAILED": Stop(resume_at="report"), "*": "report"}),
    Step("report", load),
])
excused = Job("excused", [
    Step("load", load),
    Split("both", [
        [Step("left", load, then={"*": Stop(resume_at="on")}), Step("on", load)],
        [Step("right", load, then={"*": FAIL})],
    ], then={"FAILED": COMPLETE, "*": COMPLETE}),
])
"""


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "held_jobs.py").write_text(JOBS)


def test_a_graph_leads_on_from_the_stop(cli: Cli) -> None:
    lines = cli("graph", "held_jobs.py:job").out.splitlines()

    assert '  n1 -->|"HOLD"| stop_n2' in lines
    assert '  stop_n2(["STOP"])' in lines
    assert '  stop_n2 -.->|"resume"| n2' in lines


def test_a_preview_tells_where_a_decision_may_stop(cli: Cli) -> None:
    said = cli("run", "held_jobs.py:job", "--dry-run")

    assert said.out.splitlines()[-1] == "  HOLD  -> STOP, resume at report"


def test_a_preview_of_the_next_launch_goes_on_there(cli: Cli) -> None:
    cli("run", "held_jobs.py:job")

    said = cli("run", "held_jobs.py:job", "--dry-run")

    assert [line.split()[:3] for line in said.out.splitlines()[1:-1]] == [
        ["load", "would", "be"],
        ["sure", "would", "be"],
        ["report", "would", "run"],
    ]


def test_a_preview_tells_that_a_step_will_stop_the_job(cli: Cli) -> None:
    said = cli("run", "held_jobs.py:failing", "--dry-run")
    assert said.out.splitlines()[-1] == "and complete, if every step that runs succeeds"
    assert cli("run", "held_jobs.py:failing").code == 12

    said = cli("run", "held_jobs.py:failing", "--dry-run")

    assert said.out.splitlines()[1:3] == [
        "  load    would be reused  it FAILED before, and the job stopped there",
        "  report  would run        it has not run yet",
    ]


def test_a_preview_tells_of_the_steps_of_a_split_that_stopped_the_job(cli: Cli) -> None:
    assert cli("run", "held_jobs.py:parted").code == 12

    said = cli("run", "held_jobs.py:parted", "--dry-run")

    assert said.out.splitlines()[1:5] == [
        "  load    would be reused  it has completed",
        "  left    would be reused  it has completed",
        "  right   would be reused  it FAILED before, and the job stopped there",
        "  report  would run        it has not run yet",
    ]


def test_a_preview_says_nothing_of_a_stop_that_stops_no_job(cli: Cli) -> None:
    said = cli("run", "held_jobs.py:excused", "--dry-run", "--json")

    preview = json.loads(said.out)["data"]
    assert (preview["ends"], preview["why"]) == ("COMPLETED", None)


def test_the_stop_is_shown_with_its_place(cli: Cli) -> None:
    cli("run", "held_jobs.py:job")
    cli("run", "held_jobs.py:job")

    first, second = cli("show", "1").out, cli("show", "2").out

    assert "-> STOP, resume at report" in first
    assert "sure    HOLD       -> report    as in execution 1" in second
