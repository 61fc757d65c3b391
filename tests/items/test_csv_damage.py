"""A damaged, packed or shortened file is called that, whatever its bytes look like."""

import bz2
import codecs
import gzip
import lzma
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from triolet.actors.items import (
    CsvEncodingWrong,
    CsvError,
    CsvFileChanged,
    CsvFileMissing,
    CsvFileUnusable,
    CsvMemberUnclear,
    CsvReader,
)

from .files import TRADES, put, read_all, resumed, state_after

LONG = "id,name\n" + "".join(f"{one},Ada{one * 7919 % 1000}\n" for one in range(2_000))
DAMAGED = "archive cannot be read: it is damaged or cut short"
FLAGS, METHOD = (6, 8), (8, 10)
"""Offsets in the local and in the central header of a member."""


def archived(path: Path, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("trades.csv", LONG)
    return path.read_bytes()


def patched(content: bytes, offsets: tuple[int, int], value: int) -> bytes:
    changed = bytearray(content)
    for start, offset in zip((0, content.rindex(b"PK\1\2")), offsets, strict=True):
        changed[start + offset : start + offset + 2] = value.to_bytes(2, "little")
    return bytes(changed)


@pytest.mark.parametrize("options", [{}, {"member": "trades.csv"}, {"header": False}])
@pytest.mark.parametrize("missing", [1, 21, 22, 40, 70, 5_000])
def test_an_archive_that_was_cut_short_is_called_damaged(
    file: Path, missing: int, options: dict[str, Any]
) -> None:
    put(file, archived(file)[:-missing])
    with pytest.raises(CsvFileUnusable, match=DAMAGED):
        read_all(file, **options)


@pytest.mark.parametrize("content", [b"PK\3\4", b"PK\3\4,a\n1,2\n", b"PK\5\6\0\0"])
def test_what_begins_like_an_archive_and_is_none_is_refused(
    file: Path, content: bytes
) -> None:
    for options in ({}, {"header": False}):
        with pytest.raises(CsvFileUnusable, match=DAMAGED):
            read_all(put(file, content), **options)


def test_a_hole_in_an_archive_is_called_damage(file: Path) -> None:
    content = archived(file)
    with pytest.raises(CsvFileUnusable, match=DAMAGED):
        read_all(put(file, content[:1_000] + content[2_000:]))


@pytest.mark.parametrize("place", ["id,name", "\n77,Ada"])
def test_a_record_that_damage_made_ragged_is_not_blamed(file: Path, place: str) -> None:
    content = archived(file, zipfile.ZIP_STORED)
    put(file, content.replace(place.encode(), place.encode().replace(b",", b";")))
    with pytest.raises(CsvFileUnusable, match=rf"{DAMAGED} \(Bad CRC-32"):
        read_all(file, columns=["name"])


def test_an_encrypted_archive_is_called_that(file: Path) -> None:
    for flags in (0x1, 0x41):
        put(file, patched(archived(file), FLAGS, flags))
        with pytest.raises(CsvFileUnusable, match=r"encrypted; unpack it") as caught:
            read_all(file)
        assert "ZipInfo" not in str(caught.value)


def test_an_archive_with_an_unknown_compression_is_called_that(file: Path) -> None:
    put(file, patched(archived(file), METHOD, 99))
    with pytest.raises(CsvFileUnusable, match=r"compression method .* with deflate"):
        read_all(file)


def test_an_archive_whose_file_is_shorter_than_it_says_is_refused(file: Path) -> None:
    content = archived(file)
    put(file, patched(content, (24, 26), 0x7F))
    with pytest.raises(CsvFileUnusable, match="cut short"):
        read_all(file)


@pytest.mark.parametrize(
    "method",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA],
)
def test_no_damage_gives_other_records_or_an_error_not_ours(
    file: Path, method: int
) -> None:
    content, random = archived(file, method), Random(method)
    whole = read_all(file)
    for _ in range(150):
        changed = bytearray(content)
        # The headers are a small part of the whole, and hold most of the meaning.
        for at in (random.randrange(len(content)), random.randrange(-100, 40)):
            changed[at] = random.randrange(256)
        put(file, changed)
        try:
            rows = read_all(file)
        except CsvError:
            continue
        assert rows == whole


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("gzip", gzip.compress(LONG.encode())),
        ("bzip2", bz2.compress(LONG.encode())),
        ("bzip2", bz2.compress(b"")),
        ("xz", lzma.compress(LONG.encode())),
    ],
)
def test_a_packed_file_that_is_no_zip_archive_is_refused(
    file: Path, kind: str, content: bytes
) -> None:
    for options in ({}, {"header": False, "encoding": "latin-1"}):
        with pytest.raises(CsvFileUnusable, match=f"packed with {kind}; unpack it"):
            read_all(put(file, content), **options)


def test_a_text_that_begins_like_bzip2_is_read(file: Path) -> None:
    assert read_all(put(file, "BZh9,name\n1,Ada\n")) == [["1", "Ada"]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "UTF16"])
def test_a_missing_byte_order_mark_is_said_with_the_mend(
    file: Path, encoding: str
) -> None:
    order = f"{codecs.lookup(encoding).name}-le"
    put(file, TRADES.encode(order))
    with pytest.raises(CsvEncodingWrong, match="byte order mark") as caught:
        read_all(file, encoding=encoding)
    assert (caught.value.line, caught.value.offset) == (1, 0)
    assert f"encoding='{order}' or encoding=" in str(caught.value)
    with pytest.raises(CsvEncodingWrong, match="byte order mark"):
        read_all(file, encoding=encoding, header=False)
    assert len(read_all(file, encoding=order)) == 3


def test_a_file_with_a_byte_order_mark_is_read(file: Path) -> None:
    for encoding in ("utf-16", "utf-32"):
        put(file, TRADES.encode(encoding))
        assert read_all(file, encoding=encoding)[0] == ["1", "Ada", "2.50"]


def test_a_file_that_may_not_be_read_says_so(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    put(file, TRADES)
    for method in ("open", "stat"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, refuse)
            with pytest.raises(CsvFileUnusable, match=r"denied\); give this user the"):
                read_all(file)


def test_a_file_below_a_file_is_missing(file: Path) -> None:
    with pytest.raises(CsvFileMissing):
        read_all(put(file, TRADES) / "trades.csv")


def test_a_file_that_is_cut_short_while_it_is_read_is_noticed(file: Path) -> None:
    put(file, LONG * 3)
    reader = CsvReader(file, header=False)
    reader.open(None)
    reader.read(10)
    put(file, LONG)
    with pytest.raises(CsvFileUnusable, match=r"only \d+ of \d+ bytes"):
        reader.read(10_000)
    reader.close()


@pytest.mark.parametrize("left", ["", "id,name\n", "id,name\n0,Ada0\n1,Ada919\n"])
def test_a_file_that_was_cut_short_before_a_restart_has_changed(
    file: Path, left: str
) -> None:
    state = state_after(put(file, LONG), 3)
    with pytest.raises(CsvFileChanged, match="put the old file back"):
        resumed(put(file, left), state)


def test_an_archive_that_was_cut_short_before_a_restart_is_damaged(file: Path) -> None:
    content = archived(file)
    state = state_after(file, 3)
    with pytest.raises(CsvFileUnusable, match=DAMAGED):
        resumed(put(file, content[:-30]), state)
    file.unlink()
    with pytest.raises(CsvFileMissing):
        resumed(file, state)


def test_an_archive_of_folders_alone_wants_a_file(file: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.mkdir("empty")
    with pytest.raises(CsvMemberUnclear, match="put a file into the archive"):
        read_all(file)


def test_a_file_of_nothing_but_its_header_has_no_records(file: Path) -> None:
    put(file, "id,name\n")
    assert read_all(file) == []
    assert resumed(file, state_after(file, 1)) == []
