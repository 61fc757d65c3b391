"""Branches and partitions, as a person sees them: by their keys, and never too many."""

import json
import signal
from pathlib import Path

import pytest

from triolet.actors import BatchStatus, Counts
from triolet.actors.cli.partitioning import (
    SHOWN_MAX,
    ShownPartition,
    Standing,
    Waiting,
    reported_lines,
    shown_lines,
    tally,
)

from .conftest import Cli
from .programs import ended, put, spawn, triolet, until


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
    assert "book: 1024 x book.worker, 1,023 COMPLETED, 1 FAILED" in graph
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


def test_a_restart_tells_which_partitions_are_reused(folder: Path, cli: Cli) -> None:
    target = put(folder, "parts") + ":few"
    cli("run", target)
    (folder / "mended").touch()
    assert "    partitions: 4 COMPLETED (3 reused)\n" in cli("run", target).out
    lines = cli("show", "2").out.splitlines()
    at = lines.index("    partitions: 4 COMPLETED (3 reused)")
    assert [line.endswith("reused") for line in lines[at + 1 : at + 5]] == [
        True,
        True,
        False,
        True,
    ]


def test_branches_stand_below_their_split(folder: Path, cli: Cli) -> None:
    said = cli("run", put(folder, "parts") + ":few")
    assert said.out.splitlines()[1:6] == [
        "  first   run  COMPLETED",
        "  both",
        "    fx    run  COMPLETED",
        "    fees  run  COMPLETED",
        "  book    run  FAILED",
    ]


def partition(ordinal: int, status: Standing) -> ShownPartition:
    return ShownPartition(
        node="book",
        key=f"account {ordinal:04}",
        ordinal=ordinal,
        status=status,
        exit_code=status.value,
        counts=Counts(),
        failure=None,
        reused=False,
    )


MANY = [
    *(partition(at, Waiting.PENDING) for at in range(30)),
    *(partition(at, BatchStatus.COMPLETED) for at in range(30, 1_050)),
    *(partition(at, BatchStatus.FAILED) for at in range(1_050, 1_053)),
]


def test_a_tally_goes_from_what_is_done_to_what_is_left() -> None:
    assert tally(MANY) == "1,020 COMPLETED, 3 FAILED, 30 pending"


def test_of_too_many_the_worst_are_shown() -> None:
    head, *rest = shown_lines(MANY, "book")
    assert head == "    partitions: 1,020 COMPLETED, 3 FAILED, 30 pending"
    assert len(rest) == SHOWN_MAX + 1
    assert [line.split()[2] for line in rest[:4]] == ["FAILED"] * 3 + ["pending"]
    assert rest[-1] == "      ...and 13 more"


def test_a_report_lists_what_went_wrong_and_not_what_is_left() -> None:
    assert list(reported_lines(MANY, "book")) == [
        "    partitions: 1,020 COMPLETED, 3 FAILED, 30 pending",
        "      account 1050  FAILED",
        "      account 1051  FAILED",
        "      account 1052  FAILED",
    ]
    assert not list(reported_lines(MANY, "other"))


def test_what_nobody_began_is_pending(folder: Path, cli: Cli) -> None:
    assert "2 COMPLETED, 1 FAILED, 1 pending" in (
        cli("run", put(folder, "parts") + ":one_by_one").out
    )
    lines = cli("show", "1").out.splitlines()
    assert [line.split() for line in lines if "account" in line][3] == [
        "account",
        "0003",
        "pending",
    ]
    data = json.loads(cli("show", "1", "--json").out)["data"]
    last = data["partitions"][3]
    assert (last["key"], last["status"]) == ("account 0003", "pending")
    assert (last["failure"], last["started_at"]) == (None, None)
    bad = data["partitions"][2]
    assert (bad["exit_code"], bad["failure"]["message"]) == ("FAILED", "it is broken")


def test_a_picture_knows_which_steps_of_branches_had_completed(
    folder: Path, cli: Cli
) -> None:
    target = put(folder, "parts") + ":few"

    def statuses(execution: int) -> dict[str, str]:
        said = cli("graph", target, "--execution", f"{execution}", "--json")
        found: dict[str, str] = json.loads(said.out)["data"]["statuses"]
        return found

    for _ in range(3):
        cli("run", target)
    (folder / "mended").touch()
    cli("run", target)
    every = ["both.join", "fees", "first", "fx"]
    assert statuses(3) == {"book": "FAILED", **dict.fromkeys(every, "COMPLETED")}
    assert statuses(4) == dict.fromkeys([*every, "book"], "COMPLETED")


NAMELESS = "__ob"


def test_what_died_in_a_partition_is_told_by_its_key(folder: Path, cli: Cli) -> None:
    target = put(folder, "parts") + ":waits"
    child = spawn("run", target, cwd=folder)
    until((folder / "began").exists)
    child.send_signal(signal.SIGKILL)
    ended(child)

    found = cli("doctor")
    assert "  step book: STARTED\n    partition account 0000: STARTED\n" in found.out
    (one,) = json.loads(cli("doctor", "--json").out)["data"]
    assert [step["node"] for step in one["seen"]["steps"]] == ["book"]
    last = one["seen"]["evidence"]["step"]
    assert (last["node"], last["name"]) == ("book", "book, partition account 0000")
    said = [
        found,
        cli("doctor", "--json"),
        cli("show", "1"),
        cli("doctor", "--settle", "--yes", "--json"),
        cli("show", "1"),
        cli("show", "1", "--json"),
    ]
    assert "account 0000  FAILED" in said[4].out
    assert "failure: book: the process that ran it has died" in said[4].out
    assert NAMELESS not in "".join(one.out + one.err for one in said)
    (folder / "go").touch()
    assert cli("run", target).code == 0


def test_a_stop_that_is_awaited_tells_no_derived_name(folder: Path) -> None:
    child = spawn("run", put(folder, "parts") + ":waits", cwd=folder)
    until((folder / "began").exists)
    said = triolet("stop", "1", "--wait", "--json", cwd=folder)
    ended(child)
    data = json.loads(said.stdout)["data"]
    assert [step["status"] for step in data["steps"] if step["node"] == "book"] == [
        "STOPPED"
    ]
    assert NAMELESS not in said.stdout


def test_an_unknown_partition_is_found_and_recovered_by_its_key(
    folder: Path, cli: Cli
) -> None:
    ran = cli("run", put(folder, "parts") + ":unsure")
    assert ran.code == 6
    found = cli("doctor")
    assert "  step book: UNKNOWN\n    partition account 0000: UNKNOWN\n" in found.out
    recovered = cli("recover", "1", "--mark-failed", "--reason", "x", "--yes", "--json")
    assert recovered.code == 0
    said = [ran, found, recovered, cli("show", "1"), cli("show", "1", "--json")]
    assert NAMELESS not in "".join(one.out + one.err for one in said)
