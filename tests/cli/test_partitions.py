"""Branches and partitions, as a person sees them: by their keys, and never too many."""

import json
from pathlib import Path

import pytest

from .conftest import Cli
from .programs import put


@pytest.mark.parametrize("words", [["show", "1"], ["show", "1", "--json"], ["doctor"]])
def test_a_worker_is_never_called_by_its_derived_name(
    folder: Path, cli: Cli, words: list[str]
) -> None:
    ran = cli("run", put(folder, "parts") + ":few")
    said = cli(*words)
    assert "__ob" not in ran.out + ran.err + said.out + said.err


def test_few_partitions_are_all_shown(folder: Path, cli: Cli) -> None:
    said = cli("run", put(folder, "parts") + ":few")
    assert said.code == 11
    assert (
        "    partitions: 3 COMPLETED, 1 FAILED\n      account 0002  FAILED" in said.out
    )
    lines = cli("show", "1").out.splitlines()
    at = lines.index("    partitions: 3 COMPLETED, 1 FAILED")
    assert [line.split()[1:3] for line in lines[at + 1 : at + 4]] == [
        ["0000", "COMPLETED"],
        ["0001", "COMPLETED"],
        ["0002", "FAILED"],
    ]
    assert "it is broken" in lines[at + 4]
    data = json.loads(cli("show", "1", "--json").out)["data"]
    assert [one["status"] for one in data["partitions"]].count("COMPLETED") == 3
    assert [one["node"] for one in data["detail"]["steps"]] == [
        "first",
        "fx",
        "fees",
        "book",
    ]


def test_of_many_only_those_that_matter_are_shown(folder: Path, cli: Cli) -> None:
    target = put(folder, "parts") + ":many"
    cli("run", target)
    said = cli("show", "1")
    assert "    partitions: 1,023 COMPLETED, 1 FAILED" in said.out
    assert said.out.count("account") == 1
    graph = cli("graph", target, "--execution", "1").out
    assert "book: 1024 x book.worker; 1,023 COMPLETED, 1 FAILED" in graph
    assert len(graph.splitlines()) < 40


def test_a_preview_tells_what_is_left(folder: Path, cli: Cli) -> None:
    target = put(folder, "parts") + ":few"
    first = cli("run", target, "--dry-run")
    assert "book" in first.out
    cli("run", target)
    said = cli("run", target, "--dry-run")
    assert "3 of its 4 partitions have completed" in said.out
    (folder / "mended").touch()
    assert cli("run", target).code == 0
