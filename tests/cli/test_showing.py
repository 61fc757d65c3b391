"""What ``show`` and ``list`` tell of steps that were reused, and of those who died."""

import json
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Cli
from .programs import STORE, ended, put, spawn, until

JOBS = """
from pathlib import Path
from triolet.actors import COMPLETE, Decision, Job, Split, Step

def work(ctx):
    pass

def fails(ctx):
    if not Path("mended").exists():
        raise ValueError("no paper")

def turns(ctx):
    return "AGAIN" if ctx.visit == 1 else "DONE"

def both(first, second, **settings):
    return Split("both", [
        [Step("a1", work), Step("a2", first)],
        [Step("b1", work), Step("b2", second)],
    ], on_failure="drain_siblings", **settings)

inside = Job("inside", [Step("first", work), both(fails, work), Step("last", work)])
behind = Job("behind", [Step("first", work), both(work, work), Step("last", fails)])
again = Job("again", [
    Step("first", work, visit_limit=3), both(work, work, visit_limit=3),
    Decision("turn", turns, then={"AGAIN": "first", "DONE": "last"}, visit_limit=3),
    Step("last", fails)])
"""
HOUR = re.compile(r"(?<!\d)1:00:0")
"""A length of time, and not a time of day."""


def section(text: str, head: str) -> list[str]:
    """Give the lines below a head."""
    lines = text.splitlines()
    below = lines[lines.index(head) + 1 :]
    length = next((at for at, line in enumerate(below) if line[0] != " "), len(below))
    return [" ".join(line.split()) for line in below[:length]]


@pytest.mark.parametrize(
    ("name", "reused"),
    [
        ("inside", ["first", "a1", "b1", "b2"]),
        ("behind", ["first", "a1", "a2", "b1", "b2"]),
    ],
)
def test_steps_of_branches_are_shown_as_reused(
    folder: Path, cli: Cli, name: str, reused: list[str]
) -> None:
    (folder / "branch_jobs.py").write_text(JOBS)
    for _ in range(3):
        assert cli("run", f"branch_jobs.py:{name}").code == 11

    for number in ("2", "3"):
        found = section(cli("show", number).out, "reused")
        assert sorted(found) == sorted(f"{one} from execution 1" for one in reused)
        shown = json.loads(cli("show", number, "--json").out)["data"]["detail"]
        nodes = [step["node"] for step in shown["reused"]]
        assert sorted(nodes) == sorted(reused)
    assert "reused" not in cli("show", "1").out

    (folder / "mended").touch()
    assert cli("run", f"branch_jobs.py:{name}").code == 0
    found = section(cli("show", "4").out, "reused")
    assert sorted(found) == sorted(f"{one} from execution 1" for one in reused)


def test_each_visit_of_a_branch_is_reused_by_itself(folder: Path, cli: Cli) -> None:
    (folder / "branch_jobs.py").write_text(JOBS)
    for _ in range(2):
        assert cli("run", "branch_jobs.py:again").code == 11

    found = section(cli("show", "2").out, "reused")

    nodes = ["first", "a1", "a2", "b1", "b2"]
    visits = [*nodes, *(f"{node} (visit 2)" for node in nodes)]
    assert sorted(found) == sorted(f"{one} from execution 1" for one in visits)


def let_time_pass(folder: Path) -> None:
    """Let the takeover be an hour after the death."""
    with closing(sqlite3.connect(folder / STORE)) as store:
        for table in ("execution", "step"):
            for column in ("created_at", "started_at"):
                store.execute(
                    f"UPDATE triolet_{table} SET {column} = {column} - 3600000000"  # of a test
                )
        store.commit()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_death_has_no_duration(folder: Path, cli: Cli, stopped: bool) -> None:
    target = put(folder, "waits")
    child = spawn("run", target, cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)
    let_time_pass(folder)
    if stopped:
        cli("stop", "1")
    assert cli("doctor", "--settle", "--yes").code == 0

    shown = cli("show", "1").out

    (line,) = (one for one in shown.splitlines() if one.startswith("  started "))
    assert re.fullmatch(
        r"  started \S+ \S+ UTC, died at \S+ \S+ or later, closed \S+ \S+", line
    ), line
    assert "took" not in line
    assert section(shown, "steps")[0] == "work FAILED died"
    assert not HOUR.search(shown)
    if not stopped:
        assert cli("list").out.splitlines()[1].split()[-1] == "died"


def test_what_an_operator_closed_has_no_duration(folder: Path, cli: Cli) -> None:
    target = put(folder, "ends")
    assert cli("run", f"{target}:unknowing").code == 6
    let_time_pass(folder)
    cli("recover", "1", "--mark-failed", "--reason", "booked", "--yes")

    shown = cli("show", "1").out

    assert "UTC, closed " in shown
    assert " by an operator\n" in shown
    assert not HOUR.search(shown + cli("list").out)


def test_a_list_tells_instances_apart_without_secrets(folder: Path, cli: Cli) -> None:
    target = put(folder, "typed")
    cli("run", target, "day=monday", "key=hunter2")
    cli("run", target, "day=tuesday", f"note={'x' * 99}", "key=hunter2")
    cli("run", put(folder, "plain"), "long=" + "y" * 99)

    head, *lines = cli("list").out.splitlines()

    assert head.endswith("parameters")
    ends = [line.split("  ")[-1].strip() for line in lines]
    assert ends[0] == "long=" + "y" * 42 + "..."
    assert ends[1:] == ["count=1 day=tuesday key=***", "count=1 day=monday key=***"]
