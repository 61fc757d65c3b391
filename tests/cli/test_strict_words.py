"""A number or a text that was mistyped never becomes another one."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.programs import put

NUMBERS = [
    "1.4",
    "1.6",
    "1_0",
    "0x1",
    "\N{FULLWIDTH DIGIT ONE}",
    "1e0",
    "",
    " 1",
    "one",
]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("stop",),
        ("abandon", "--reason", "x", "--yes"),
        ("recover", "--abandon", "--reason", "x", "--yes"),
        ("withdraw", "--reason", "x"),
    ],
)
def test_only_whole_numbers_name_an_execution(
    folder: Path, cli: Cli, words: tuple[str, ...], number: str
) -> None:
    cli("run", put(folder, "plain"))

    said = cli(words[0], number, *words[1:])

    assert said.code == 1
    assert "is not a whole number" in said.err


@pytest.mark.parametrize("option", ["--limit", "--before"])
def test_only_whole_numbers_page(folder: Path, cli: Cli, option: str) -> None:
    cli("run", put(folder, "plain"))
    said = cli("list", option, "1.5")
    assert (said.code, "is not a whole number" in said.err) == (1, True)


@pytest.mark.parametrize("option", ["--operation-id", "--actor", "--reason"])
def test_an_empty_text_is_not_taken_as_none(
    folder: Path, cli: Cli, option: str
) -> None:
    cli("run", put(folder, "plain"))
    said = cli("stop", "1", f"{option}=")
    assert said.code == 1
    assert option in said.err
    assert "must not be empty" in said.err


def test_a_sqlite_url_has_no_options(folder: Path, cli: Cli) -> None:
    said = cli("run", put(folder, "plain"), "--store", "sqlite:///x.db?mode=ro")
    assert said.code == 2
    assert "SQLite takes no options" in said.err
    assert not list(folder.glob("x.db*"))
    named = cli("run", put(folder, "plain"), "--store", "sqlite:///x%3Fy.db")
    assert named.code == 0
    assert (folder / "x?y.db").exists()
