"""Where the text of a delimited file comes from: a plain file or a zip's member.

This module opens; it neither checks records nor keeps a position.
"""

import codecs
import csv
import io
import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol, cast

from attrs import Attribute, define, field, frozen

from ...storage.model.errors import InvalidValue
from .errors import CsvFileMissing, CsvFileUnusable, CsvMemberUnclear, quoted

ESCAPE = "surrogateescape"
"""Error handler that turns undecodable bytes into lone surrogates."""

UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
"""What reading a file may raise; zipfile reports encryption as a RuntimeError."""

COUNTED_BYTES = 1_048_576
"""In a longer file, the block that the decoder is ahead weighs less than 1 %."""


class Parser(Protocol):
    """What `csv.reader` returns."""

    @property
    def line_num(self) -> int:
        """Count the physical lines that were consumed."""

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


@define(eq=False)
class CountedBytes:
    """A file's bytes on their way to the decoder, looked at block by block.

    No `io` class on purpose: the decoder asks for `closed` at every line, and a plain
    attribute answers five times faster than theirs.
    """

    stream: IO[bytes]
    bytes_total: int
    passed: int = 0
    lines: int = 0
    """Line breaks among the bytes that passed; not counted in a long file."""
    nul: bool = False
    closed: bool = False

    def readable(self) -> bool:
        """Say yes."""
        return True

    def writable(self) -> bool:
        """Say no."""
        return False

    def seekable(self) -> bool:
        """Say no."""
        return False

    def flush(self) -> None:
        """Do nothing."""

    def read1(self, size: int) -> bytes:
        """Give the next bytes and look at them."""
        data = self.stream.read(size)
        self.passed += len(data)
        if self.bytes_total <= COUNTED_BYTES:
            self.lines += data.count(b"\n")
        self.nul = self.nul or b"\0" in data
        return data

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self.stream.close()


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


def unusable(name: str, exc: BaseException) -> CsvFileUnusable:
    """Put the operating system's or zipfile's error into our words."""
    if isinstance(exc, OSError) and exc.strerror:
        reason = f"the file cannot be read ({exc.strerror})"
    else:
        reason = f"the archive cannot be read ({exc})"
    return CsvFileUnusable(name, None, reason)


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
        stream, bytes_total = self.open_bytes()
        passing = CountedBytes(stream, bytes_total)
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

    def open_bytes(self) -> tuple[IO[bytes], int]:
        """Open the file undecoded; also give its length in bytes. Raises as `open`."""
        try:
            return self._open_bytes()
        except UNREADABLE as exc:
            raise unusable(self.name, exc) from exc

    def _open_bytes(self) -> tuple[IO[bytes], int]:
        if not self.path.exists():
            reason = "there is no such file; check the path and the working directory"
            raise CsvFileMissing(self.name, None, reason)
        if self.path.is_dir():
            reason = "this is a directory; name a file in it"
            raise CsvFileUnusable(self.name, None, reason)
        if not self.path.is_file():
            reason = "not a regular file, and a restart must read it again; copy it"
            raise CsvFileUnusable(self.name, None, reason)
        if zipfile.is_zipfile(self.path):
            return self._open_member()
        if self.member is not None:
            reason = "the file is no zip archive; leave out member"
            raise CsvMemberUnclear(self.name, None, reason)
        stream = self.path.open("rb")
        return stream, os.fstat(stream.fileno()).st_size

    def _open_member(self) -> tuple[IO[bytes], int]:
        with zipfile.ZipFile(self.path) as archive:
            files = {info.filename: info for info in archive.infolist()}
            files = {name: info for name, info in files.items() if not info.is_dir()}
            if self.member is not None and self.member not in files:
                reason = f"no such file in the archive; it holds {quoted(files)}"
                raise CsvMemberUnclear(self.name, None, reason)
            if self.member is None and len(files) != 1:
                reason = (
                    f"say with member which file is meant; it holds {quoted(files)}"
                )
                raise CsvMemberUnclear(self.name, None, reason)
            info = files[self.member or next(iter(files))]
            return archive.open(info), info.file_size
