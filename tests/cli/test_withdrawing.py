"""``triolet withdraw``: a launch request that nobody wants any more."""

import json
from pathlib import Path

import pytest

from .conftest import Cli
from .programs import put, rows
from .test_operating import answer, refused

WHY = ["--reason", "wrong day"]
REQUESTS = "SELECT status, withdrawn_by, withdrawn_why FROM triolet_launch_request"


def test_a_withdrawn_request_is_never_launched(folder: Path, cli: Cli) -> None:
    target = put(folder, "plain")
    cli("enqueue", target)
    cli("enqueue", target)

    said = cli("withdraw", "1", *WHY, "--actor", "eve", "--yes")

    assert (said.code, said.out) == (0, "request 1 is WITHDRAWN\n")
    again = cli("withdraw", "1", "--reason", "another", "--actor", "adam")
    assert (again.code, again.out) == (0, "request 1 is WITHDRAWN, as before\n")
    served = cli("serve", target, "--once").out.splitlines()
    assert served[0] == "request 2: job plain is COMPLETED (execution 1)"
    assert rows(folder, REQUESTS) == [
        ("WITHDRAWN", "eve", "wrong day"),
        ("DONE", None, None),
    ]
    _, _, withdrawn = cli("requests").out.splitlines()
    assert withdrawn.endswith("by eve, 'wrong day'")
    refused(cli("withdraw", "2", *WHY), 3, "is DONE", "nothing to withdraw")


def test_it_speaks_json(folder: Path, cli: Cli) -> None:
    cli("enqueue", put(folder, "plain"))

    said = json.loads(cli("withdraw", "1", *WHY, "--yes", "--json").out)

    assert (said["command"], said["exit_code"]) == ("withdraw", 0)
    assert said["data"]["already"] is False
    request = said["data"]["request"]
    assert (request["id"], request["status"]) == (1, "WITHDRAWN")
    assert request["withdrawal"]["reason"] == "wrong day"


def test_a_withdrawal_has_to_be_confirmed(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("enqueue", put(folder, "plain"))
    refused(cli("withdraw", "1", *WHY), 8, "add --yes")
    answer(monkeypatch, "n\n")
    assert cli("withdraw", "1", *WHY).code == 8
    assert rows(folder, REQUESTS) == [("REQUESTED", None, None)]
    answer(monkeypatch, "y\n")
    said = cli("withdraw", "1", *WHY)
    assert said.code == 0
    assert "request 1 for job plain waits; withdraw it" in said.err


def test_bad_input_is_refused_in_a_sentence(folder: Path, cli: Cli) -> None:
    cli("enqueue", put(folder, "plain"))
    for code, words, message in (
        (4, ["9", *WHY], "there is no launch request 9"),
        (4, ["0", *WHY], "there is no launch request 0"),
        (4, [str((1 << 63) - 1), *WHY], "there is no launch request"),
        (4, [str(1 << 80), *WHY], "there is no launch request"),
        (2, ["1", "--reason", " ", "--yes"], "the reason"),
        (2, ["1", *WHY, "--store", "memory:"], "must outlast this process"),
        (7, ["1", *WHY, "--store", "sqlite:///none.db"], "none.db"),
    ):
        refused(cli("withdraw", *words), code, message)
    assert cli("withdraw", "1").code == 1
