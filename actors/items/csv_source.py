"""A delimited file as text: how it is decoded and split.

This module opens; it neither checks records nor keeps a position.
"""

import codecs
import csv
import io
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Protocol, cast

from attrs import Attribute, define, field, frozen

from ...storage.model.errors import InvalidValue
from .csv_bytes import COUNTED_BYTES, CountedBytes, open_bytes

ESCAPE = "surrogateescape"
"""Error handler that turns undecodable bytes into lone surrogates."""


class Parser(Protocol):
    """What `csv.reader` returns."""

    @property
    def line_num(self) -> int:
        """Count the physical lines that were consumed."""

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


@define(eq=False)
class CsvStream:
    """An open file in the middle of being parsed."""

    text: io.TextIOWrapper
    parser: Parser
    passing: CountedBytes

    def fraction(self) -> float | None:
        """Tell which part of the bytes was parsed.

        The decoder is up to a block ahead. In a short file that is taken into account:
        the lines that the parser has not asked for yet count as long as the others.
        """
        passing = self.passing
        if not passing.bytes_total:
            return None
        share = min(1.0, passing.passed / passing.bytes_total)
        if passing.lines:
            share *= min(1.0, self.parser.line_num / passing.lines)
        return share

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self.text.close()


def _path(value: object) -> Path:
    if not isinstance(value, str | os.PathLike):
        kind = type(value).__name__
        raise InvalidValue("path", f"must be text or a path object, not {kind}")
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidValue("path", "must be text, not empty and without U+0000")
    return Path(text)


def _check_encoding(_: object, __: "Attribute[str]", value: object) -> None:
    reason = "must name a text encoding that Python knows"
    if not isinstance(value, str):
        raise InvalidValue("encoding", reason)
    try:
        io.TextIOWrapper(io.BytesIO(), value)
        codecs.getincrementaldecoder(value)(ESCAPE).decode(b"a")
    except (LookupError, ValueError):
        raise InvalidValue("encoding", reason) from None


def _check_mark(source: "CsvSource", at: "Attribute[str]", value: object) -> None:
    if not isinstance(value, str) or len(value) != 1 or value in "\r\n\0\ufeff":
        raise InvalidValue(at.name, "must be one character, not a line break or NUL")
    if at.name == "quotechar" and value == source.delimiter:
        raise InvalidValue(at.name, "must differ from delimiter")


def _check_quotechar(source: "CsvSource", at: "Attribute[str]", value: object) -> None:
    if value is not None:
        _check_mark(source, at, value)


def _check_member(_: object, __: "Attribute[str]", value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise InvalidValue("member", "must be the name of a file in the archive")


@frozen(kw_only=True)
class CsvSource:
    """A file and how its text is to be split; checked when it is made."""

    path: Path = field(converter=_path)
    member: str | None = field(validator=_check_member)
    encoding: str = field(validator=_check_encoding)
    delimiter: str = field(validator=_check_mark)
    quotechar: str | None = field(validator=_check_quotechar)

    @property
    def name(self) -> str:
        """Name the file in error messages."""
        if self.member is None:
            return str(self.path)
        return f"{self.path}, member {self.member!r}"

    @property
    def codec(self) -> str:
        """Name the decoder; for UTF-8 the one that drops a byte order mark."""
        found = codecs.lookup(self.encoding).name
        return "utf-8-sig" if found == "utf-8" else found

    def open(self, errors: str = "strict") -> CsvStream:
        """Open the file at its beginning.

        Args:
            errors: What to do with undecodable bytes, as in `open`.

        Raises:
            CsvFileMissing: There is no such file.
            CsvFileUnusable: It cannot be read.
            CsvMemberUnclear: Which file of the archive is meant cannot be told.
        """
        passing = self.open_bytes()
        text = io.TextIOWrapper(
            cast("IO[bytes]", passing), self.codec, errors, newline=""
        )
        parser = csv.reader(
            text,
            strict=True,
            delimiter=self.delimiter,
            quotechar=self.quotechar,
            quoting=csv.QUOTE_NONE if self.quotechar is None else csv.QUOTE_MINIMAL,
        )
        return CsvStream(text, parser, passing)

    def open_bytes(self) -> CountedBytes:
        """Open the file undecoded; raises as `open`."""
        return open_bytes(self.path, self.member, self.name)

    def check_archive(self) -> None:
        """Read an archive's file to its end, where its checksum is compared.

        Raises:
            CsvFileUnusable: The archive is damaged.
        """
        with closing(self.open_bytes()) as passing:
            while passing.checked and passing.read1(COUNTED_BYTES):
                pass
