"""What the command line tells of loops."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from pathlib import Path
from triolet.actors import COMPLETE, Decision, Job, Step

def breaks(ctx):
    if not Path("paper").exists():
        raise ValueError("no paper")

job = Job("laps", [
    Step("load", lambda ctx: None),
    Decision("turn", lambda ctx: "AGAIN" if ctx.visit < 5 else "OUT",
             then={"AGAIN": "load", "OUT": "report"}, visit_limit=5),
    Step("report", breaks),
])
polling = Job("polling", [
    Step("poll", lambda ctx: None, then={"THERE": COMPLETE, "*": "poll"}, visit_limit=2),
])
"""


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "laps.py").write_text(JOBS)


def test_a_report_shows_the_last_visits(cli: Cli) -> None:
    said = cli("run", "laps.py:job")

    lines = said.out.splitlines()
    assert [line.split("  ")[1] for line in lines[1:5]] == [
        "load (visit 3)",
        "load (visit 4)",
        "load (visit 5)",
        "report",
    ]
    assert lines[5] == "  ...and 2 earlier visits, which --json shows"


def test_an_execution_is_shown_with_its_last_visits(cli: Cli) -> None:
    cli("run", "laps.py:job")

    out = cli("show", "1").out

    assert "load (visit 5)" in out
    assert "load (visit 2)" not in out
    assert "turn (visit 5)  OUT" in out
    shown = json.loads(cli("show", "1", "--json").out)["data"]["detail"]
    assert [one["visit"] for one in shown["steps"]] == [1, 2, 3, 4, 5, 1]


def test_a_preview_passes_by_the_visits(cli: Cli) -> None:
    cli("run", "laps.py:job")

    lines = cli("run", "laps.py:job", "--dry-run").out.splitlines()

    assert "  load (visit 5)  would be reused  it has completed" in lines
    assert (
        "  turn (visit 5)  would be kept    it answered OUT to the same input" in lines
    )
    assert lines[-3:] == [
        "  report          would run        it FAILED before",
        "  ...and 4 earlier visits, which --json shows",
        "and complete, if every step that runs succeeds",
    ]


def test_a_preview_does_not_go_round_for_ever(cli: Cli) -> None:
    lines = cli("run", "laps.py:polling", "--dry-run").out.splitlines()

    assert lines[1:] == [
        "  poll            would run        it has not run yet",
        "  poll (visit 2)  would run again  the flow goes round, and nobody knows how often",
    ]


def test_a_visit_too_many_needs_a_new_run(cli: Cli) -> None:
    said = cli("run", "laps.py:polling")

    assert said.code == 11
    assert "the flow has come to 'poll' 2 times" in said.err
    assert "it cannot be continued: 'triolet run ... --new'" in said.out
    assert cli("run", "laps.py:polling").code == 11


def test_a_graph_leads_back(cli: Cli) -> None:
    cli("run", "laps.py:job")

    lines = cli("graph", "laps.py:job", "--execution", "1").out.splitlines()

    assert '  n1 -->|"AGAIN"| n0' in lines
    assert "  class n0,n1 completed" in lines
