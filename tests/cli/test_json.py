"""``--json``: one object on standard output, whatever a command comes to."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Said

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


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    "words",
    [["show", "1"], ["doctor"], ["migrate"], ["version"], ["doctor", "--settle"]],
)
def test_every_command_has_it(cli: Cli, words: list[str]) -> None:
    cli("run", "paper_jobs.py:bad", f"key={SECRET}")

    found = document(cli(*words, "--json"))

    assert (found["command"], found["outcome"]) == (words[0], "success")
