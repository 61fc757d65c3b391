"""Branches with rules, as a person sees them: reports, previews, pictures, details."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

JOBS = """
from pathlib import Path
from triolet.actors import COMPLETE, Decision, Job, Split, Step

def load(ctx):
    pass

def breaks(ctx):
    if not Path("paper").exists():
        raise ValueError("no paper")

def yes(ctx):
    return "YES"

inner = Split("rates", [Step("fx", load), Step("bonds", load)])
then = {"YES": "rates", "*": COMPLETE}
job = Job("close", [
    Step("first", load),
    Split("both", [
        [Decision("full", yes, then=then), inner, Step("book", breaks)],
        [Step("fees", load), Decision("more", yes, then={"YES": COMPLETE})],
    ]),
    Step("last", load),
])
"""
TARGET = "branch_jobs.py:job"


@pytest.fixture(autouse=True)
def jobs(folder: Path) -> None:
    (folder / "branch_jobs.py").write_text(JOBS)


def test_what_is_in_an_inner_split_stands_below_it(cli: Cli, folder: Path) -> None:
    (folder / "paper").touch()
    assert cli("run", TARGET).out.splitlines()[1:] == [
        "  first      run  COMPLETED",
        "  both",
        "    rates",
        "      fx     run  COMPLETED",
        "      bonds  run  COMPLETED",
        "    book     run  COMPLETED",
        "    fees     run  COMPLETED",
        "  last       run  COMPLETED",
    ]
    shown = cli("show", "1").out.splitlines()
    assert [line.split() for line in shown[shown.index("decisions") + 1 :]] == [
        ["1", "first", "COMPLETED", "->", "both"],
        ["2", "full", "YES", "->", "rates"],
        ["3", "rates.join", "COMPLETED", "->", "book"],
        ["4", "book", "COMPLETED", "->", "COMPLETE"],
        ["5", "fees", "COMPLETED", "->", "more"],
        ["6", "more", "YES", "->", "COMPLETE"],
        ["7", "both.join", "COMPLETED", "->", "last"],
        ["8", "last", "COMPLETED", "->", "COMPLETE"],
    ]


def test_a_preview_asks_in_every_branch(cli: Cli) -> None:
    assert cli("run", TARGET, "--dry-run").out.splitlines()[1:] == [
        "  first  would run       it has not run yet",
        "  full   would be asked  it has no answer yet for what it would be asked about",
        "  fees   would run       it has not run yet",
        "  more   would be asked  it has no answer yet for what it would be asked about",
        "and go on as they answer:",
        "  full  YES  -> rates",
        "  full  *    -> COMPLETE",
        "  more  YES  -> COMPLETE",
    ]


def test_a_preview_of_a_restart_goes_through_the_branches(cli: Cli) -> None:
    cli("run", TARGET)
    found = json.loads(cli("run", TARGET, "--dry-run", "--json").out)["data"]
    assert [(one["node"], one["verdict"]) for one in found["nodes"]] == [
        ("first", "reuse"),
        ("full", "keep"),
        ("fx", "reuse"),
        ("bonds", "reuse"),
        ("book", "run"),
        ("fees", "run"),
        ("more", "ask"),
    ]


def test_a_picture_tells_how_all_nodes_of_branches_stand(
    cli: Cli, folder: Path
) -> None:
    cli("run", TARGET)
    (folder / "paper").touch()
    cli("run", TARGET)
    said = cli("graph", TARGET, "--execution", "2", "--json")
    statuses = json.loads(said.out)["data"]["statuses"]
    every = "first both.join full rates.join fx bonds book fees more last"
    assert statuses == dict.fromkeys(every.split(), "COMPLETED")
