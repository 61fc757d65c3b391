"""``--json``: one object on standard output, whatever a command comes to."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Said
from tests.cli.programs import put
from triolet.actors.cli.app import app

JOBS = """
from triolet.actors import Decision, FAIL, Job, Parameter, Step

def load(ctx):
    ctx.state["n"] = 1

def breaks(ctx):
    raise ValueError("no paper, " + ctx.parameters["key"])

parameters = [Parameter("key", str, secret=True, identifying=False)]
job = Job("good", [Step("load", load)], parameters=parameters)
bad = Job("bad", [Step("load", load), Step("report", breaks)], parameters=parameters)
wrong = Job("wrong", [Step("a", load, then={"X": "nowhere"}), Step("b", 5)])
"""
SECRET = "s3cr3t"


@pytest.fixture
def jobs(folder: Path) -> None:
    (folder / "paper_jobs.py").write_text(JOBS)


def document(said: Said) -> dict[str, Any]:
    """Parse what was said: one line, one object, nothing about secrets."""
    assert said.out.count("\n") == 1, said
    assert SECRET not in said.out + said.err
    found: dict[str, Any] = json.loads(said.out)
    assert found["schema_version"] == 1
    assert found["exit_code"] == said.code
    return found


@pytest.mark.usefixtures("jobs")
def test_a_completed_run_is_a_report(cli: Cli) -> None:
    found = document(cli("run", "paper_jobs.py:job", f"key={SECRET}", "--json"))

    assert (found["command"], found["outcome"]) == ("run", "success")
    assert found["data"]["status"] == "COMPLETED"
    assert found["data"]["steps"][0]["row"]["node"] == "load"
    assert found["data"]["parameters"] == [
        {
            "name": "key",
            "type": "STRING",
            "value": None,
            "identifying": False,
            "secret": True,
        }
    ]
    assert found["diagnostics"] == []


@pytest.mark.usefixtures("jobs")
def test_a_failed_run_says_why(cli: Cli) -> None:
    found = document(cli("run", "paper_jobs.py:bad", f"key={SECRET}", "--json"))

    assert (found["outcome"], found["exit_code"]) == ("failed", 11)
    assert "no paper" in found["diagnostics"][0]["message"]
    assert found["data"]["failure"]["type"] == "ValueError"


@pytest.mark.usefixtures("jobs")
def test_every_mistake_of_a_definition_is_a_diagnostic(cli: Cli) -> None:
    found = document(cli("run", "paper_jobs.py:wrong", "--json"))

    assert (found["outcome"], found["exit_code"]) == ("error", 2)
    assert len(found["diagnostics"]) == 3
    assert {one["code"] for one in found["diagnostics"]} == {"definition_problem"}


@pytest.mark.usefixtures("jobs")
def test_a_page_says_where_the_next_one_begins(cli: Cli) -> None:
    for _ in range(3):
        cli("run", "paper_jobs.py:job", "key=k", "--new")

    first = document(cli("list", "--limit", "2", "--json"))
    rest = document(cli("list", "--before", str(first["page"]["before"]), "--json"))

    assert [one["execution"]["id"] for one in first["data"]] == [3, 2]
    assert [one["execution"]["id"] for one in rest["data"]] == [1]
    assert "page" not in rest


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("words", "code", "stable"),
    [
        (["show", "7"], 4, "execution_not_found"),
        (["run", "nowhere.py"], 2, "target_invalid"),
        (["stop", "9"], 4, "execution_not_found"),
        (["abandon", "1", "--reason", "old", "--yes"], 3, "action_not_allowed"),
        (["list", "--limit", "x"], 1, "usage_invalid"),
        (["run", "paper_jobs.py:job", "key=k"], 3, "instance_complete"),
    ],
)
def test_an_error_has_its_stable_code(
    cli: Cli, words: list[str], code: int, stable: str
) -> None:
    cli("run", "paper_jobs.py:job", "key=k")

    found = document(cli(*words, "--json"))

    assert (found["exit_code"], found["data"]) == (code, None)
    assert found["diagnostics"][0]["code"] == stable


GOOD, BAD = "paper_jobs.py:job", "paper_jobs.py:bad"
EVERY_COMMAND = [
    ["run", GOOD, "key=k"],
    ["run", GOOD, "key=k", "--dry-run"],
    ["list"],
    ["show", "1"],
    ["graph", BAD],
    ["graph", BAD, "--execution", "1"],
    ["migrate"],
    ["version"],
    ["stop", "1"],
    ["restart", "1", BAD, f"key={SECRET}", "--dry-run"],
    ["abandon", "1", "--reason", "old", "--yes"],
    ["recover", "1", "--mark-failed", "--reason", "old", "--yes"],
    ["doctor"],
    ["doctor", "--settle", "--yes"],
    ["upgrade", BAD, "--from", "1"],
    ["enqueue", "plain_jobs.py"],
    ["requests"],
    ["serve", "plain_jobs.py", "--once"],
]
REFUSED = {
    "recover": ("rejected", ["action_not_allowed"]),
    "upgrade": ("error", ["definition_unknown"]),
}
"""What cannot be done here is refused as a document, too."""


def test_there_is_no_other_command() -> None:
    named = {name for name in app if not name.startswith("-")}
    assert named == {words[0] for words in EVERY_COMMAND}


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("words", EVERY_COMMAND, ids=" ".join)
def test_every_command_has_it(cli: Cli, folder: Path, words: list[str]) -> None:
    put(folder, "plain")
    cli("run", BAD, f"key={SECRET}")

    found = document(cli(*words, "--json"))

    assert found["command"] == words[0]
    codes = [one["code"] for one in found["diagnostics"]]
    wanted = REFUSED.get(words[0], ("success", []))
    assert (found["outcome"], codes) == wanted
    assert (found["data"] is None) == (words[0] in REFUSED)
