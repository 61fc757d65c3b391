"""Where a CSV file may come from, and what may be declared about it."""

import os
from pathlib import Path
from typing import Any

import pytest

from triolet.actors.items import (
    CsvFileMissing,
    CsvFileUnusable,
    CsvMemberUnclear,
    CsvReader,
)
from triolet.storage.model.errors import InvalidValue

from .files import TRADES, put, put_zip, read_all, resumed, state_after


def test_the_only_file_of_an_archive_needs_no_name(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "trades.zip", trades=TRADES)
    assert len(read_all(path)) == 3
    assert len(resumed(path, state_after(path, 1))) == 2


def test_an_archive_is_known_by_its_content_not_by_its_name(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "trades.csv", trades=TRADES)
    assert len(read_all(path)) == 3


def test_the_named_file_of_an_archive_is_read(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "all.zip", trades=TRADES, prices="id\n7\n")
    assert read_all(path, member="prices.csv") == [["7"]]


def test_an_archive_of_several_files_wants_a_name(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "all.zip", trades=TRADES, prices="id\n7\n")
    with pytest.raises(CsvMemberUnclear, match=r"'trades\.csv' and 'prices\.csv'"):
        read_all(path)


def test_a_file_that_is_not_in_the_archive_is_refused(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "all.zip", trades=TRADES)
    with pytest.raises(CsvMemberUnclear, match=r"it holds 'trades\.csv'"):
        read_all(path, member="prices.csv")


def test_an_archive_without_files_is_refused(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "all.zip")
    with pytest.raises(CsvMemberUnclear, match="it holds none"):
        read_all(path)


def test_a_plain_file_has_no_members(file: Path) -> None:
    with pytest.raises(CsvMemberUnclear, match="no zip archive"):
        read_all(put(file, TRADES), member="trades.csv")


def test_a_damaged_archive_is_reported_as_such(tmp_path: Path) -> None:
    path = put_zip(tmp_path / "all.zip", trades=TRADES * 50)
    content = bytearray(path.read_bytes())
    content[50] ^= 0xFF
    put(path, bytes(content))
    with pytest.raises(CsvFileUnusable, match="archive cannot be read"):
        read_all(path)


def test_a_missing_file_is_named(file: Path) -> None:
    with pytest.raises(CsvFileMissing, match=r"trades\.csv: there is no such file"):
        read_all(file)


def test_a_missing_file_is_noticed_when_it_is_opened(file: Path) -> None:
    with pytest.raises(CsvFileMissing):
        CsvReader(file, header=False).open(None)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CsvFileUnusable, match="directory"):
        read_all(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_because_it_cannot_be_read_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CsvFileUnusable, match="regular file"):
        read_all(tmp_path / "pipe")


def test_an_operating_system_error_is_reported_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(CsvFileUnusable, match="cannot be read"):
        read_all(tmp_path / ("x" * 5_000))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", []),
        ("columns", "id"),
        ("columns", 5),
        ("columns", ["id", 5]),
        ("columns", ["id", "id"]),
        ("header", "yes"),
        ("encoding", "no such"),
        ("encoding", "base64"),
        ("encoding", "idna"),
        ("encoding", "punycode"),
        ("encoding", "undefined"),
        ("encoding", None),
        ("delimiter", ""),
        ("delimiter", "::"),
        ("delimiter", "\n"),
        ("delimiter", 5),
        ("quotechar", ""),
        ("quotechar", "\r"),
        ("quotechar", ","),
        ("as_dicts", 1),
        ("member", ""),
        ("member", 5),
        ("limit", 0),
        ("limit", -1),
        ("limit", 1 << 63),
        ("limit", True),
        ("limit", 1.5),
    ],
)
def test_a_bad_argument_is_refused_at_once_and_named(name: str, value: object) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(InvalidValue, match=rf"^{name} "):
        CsvReader("trades.csv", **options)


@pytest.mark.parametrize("path", ["", "a\0b", b"trades.csv", None, 5])
def test_a_bad_path_is_refused_at_once(path: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^path "):
        CsvReader(path)


def test_dicts_need_names() -> None:
    with pytest.raises(InvalidValue, match=r"^as_dicts needs names"):
        CsvReader("trades.csv", header=False, as_dicts=True)


def test_a_reader_shows_its_file() -> None:
    reader = CsvReader("trades.zip", member="a.csv")
    assert repr(reader) == "CsvReader(\"trades.zip, member 'a.csv'\")"
