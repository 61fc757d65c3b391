"""The bytes of a delimited file, from the disk or out of a zip archive.

What the operating system, zipfile and its decompressors raise is said here in our
words, at opening and at every later read.
"""

import errno
import os
import stat
import zipfile
from pathlib import Path
from typing import IO, Protocol

from attrs import define, frozen

from .errors import CsvError, CsvFileMissing, CsvFileUnusable, CsvMemberUnclear, quoted

COUNTED_BYTES = 1_048_576
"""In a longer file, the block that the decoder is ahead weighs less than 1 %."""

ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
PACKED_BEGINNINGS = {
    b"\x1f\x8b\x08": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7z",
}
BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")
"""One of these follows the fourth byte of bzip2, whose first three are mere text."""
BEGINNING_BYTES = 10

ENCRYPTED = 0x1 | 0x40 | 0x2000
"""The bits of a member's flags that speak of encryption."""


class Readable(Protocol):
    """An open file, as far as it is used here."""

    def read(self, size: int, /) -> bytes:
        """Give the next bytes, none at the end."""

    def close(self) -> None:
        """Close the file."""


@define(eq=False)
class CountedBytes:
    """A file's bytes on their way to the decoder, looked at block by block.

    No `io` class on purpose: the decoder asks for `closed` at every line, and a plain
    attribute answers five times faster than theirs.
    """

    stream: Readable
    name: str
    """Of the file, for error messages."""
    bytes_total: int
    passed: int = 0
    lines: int = 0
    """Line breaks among the bytes that passed; not counted in a long file."""
    nul: bool = False
    checked: bool = False
    """Whether a checksum is compared at the end."""
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
        """Give the next bytes and look at them.

        Raises:
            CsvFileUnusable: They cannot be read, or there are fewer than there were.
        """
        try:
            data = self.stream.read(size)
        except OSError as exc:
            raise _refused(self.name, exc) from exc
        self.passed += len(data)
        if not data and self.passed < self.bytes_total:
            reason = (
                f"only {self.passed} of {self.bytes_total} bytes could be read: the "
                "file was cut short; put the whole file back"
            )
            raise CsvFileUnusable(self.name, None, reason)
        if self.bytes_total <= COUNTED_BYTES:
            self.lines += data.count(b"\n")
        self.nul = self.nul or b"\0" in data
        return data

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self.stream.close()


@frozen(eq=False)
class _Member:
    """An open file of an archive."""

    file: IO[bytes]
    name: str

    def read(self, size: int, /) -> bytes:
        try:
            return self.file.read(size)
        except Exception as exc:
            raise _damaged(self.name, exc) from exc

    def close(self) -> None:
        self.file.close()


def open_bytes(path: Path, member: str | None, name: str) -> CountedBytes:
    """Open a file, or the file in an archive, at its beginning.

    Args:
        path: The file; a zip archive is recognised by its content.
        member: Which file of the archive; None when there is but one.
        name: What error messages call it.

    Raises:
        CsvFileMissing: There is no such file.
        CsvFileUnusable: It cannot be read.
        CsvMemberUnclear: Which file of the archive is meant cannot be told.
    """
    try:
        _check_kind(path, name)
        if _is_archive(path):
            return _open_member(path, member, name)
        if member is not None:
            reason = "the file is no zip archive; leave out member"
            raise CsvMemberUnclear(name, None, reason)
        stream = path.open("rb")
        return CountedBytes(stream, name, os.fstat(stream.fileno()).st_size)
    except OSError as exc:
        raise _refused(name, exc) from exc


def _is_archive(path: Path) -> bool:
    """Tell whether a file is, or was once, a zip archive."""
    return _beginning(path).startswith(ZIP_BEGINNINGS) or zipfile.is_zipfile(path)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(BEGINNING_BYTES)


def _check_kind(path: Path, name: str) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        reason = "there is no such file; check the path and the working directory"
        raise CsvFileMissing(name, None, reason) from None
    if stat.S_ISDIR(mode):
        reason = "this is a directory; name a file in it"
        raise CsvFileUnusable(name, None, reason)
    if not stat.S_ISREG(mode):
        reason = "not a regular file, and a restart must read it again; copy it"
        raise CsvFileUnusable(name, None, reason)
    if packed := _packed(_beginning(path)):
        reason = f"the file is packed with {packed}; unpack it first"
        raise CsvFileUnusable(name, None, reason)


def _packed(beginning: bytes) -> str | None:
    for mark, kind in PACKED_BEGINNINGS.items():
        if beginning.startswith(mark):
            plain = kind == "bzip2" and beginning[4:] not in BZIP2_BLOCKS
            return None if plain else kind
    return None


def _open_member(path: Path, member: str | None, name: str) -> CountedBytes:
    try:
        with zipfile.ZipFile(path) as archive:
            info = _chosen(archive, member, name)
            stream = _Member(archive.open(info), name)
            return CountedBytes(stream, name, info.file_size, checked=True)
    except CsvError:
        raise
    except NotImplementedError as exc:
        reason = (
            f"the archive cannot be read by this Python ({exc}); unpack it, or pack "
            "it again with deflate"
        )
        raise CsvFileUnusable(name, None, reason) from exc
    except Exception as exc:
        raise _damaged(name, exc) from exc


def _chosen(archive: zipfile.ZipFile, member: str | None, name: str) -> zipfile.ZipInfo:
    files = {one.filename: one for one in archive.infolist() if not one.is_dir()}
    if member is not None and member not in files:
        reason = f"no such file in the archive; it holds {quoted(files)}"
        raise CsvMemberUnclear(name, None, reason)
    if not files:
        reason = "put a file into the archive; it holds none"
        raise CsvMemberUnclear(name, None, reason)
    if member is None and len(files) != 1:
        reason = f"say with member which file is meant; it holds {quoted(files)}"
        raise CsvMemberUnclear(name, None, reason)
    info = files[member or next(iter(files))]
    if info.flag_bits & ENCRYPTED:
        reason = "the archive is encrypted; unpack it, or pack it without a password"
        raise CsvFileUnusable(name, None, reason)
    return info


def _damaged(name: str, exc: Exception) -> CsvFileUnusable:
    """Say what zipfile met: it lets pass whatever its helpers raise for bad bytes."""
    if isinstance(exc, OSError) and exc.errno not in (None, errno.EINVAL):
        return _refused(name, exc)
    reason = (
        f"the archive cannot be read: it is damaged or cut short ({exc}); fetch or "
        "make it anew"
    )
    return CsvFileUnusable(name, None, reason)


def _refused(name: str, exc: OSError) -> CsvFileUnusable:
    said = exc.strerror or type(exc).__name__
    mend = "check the disk"
    if isinstance(exc, PermissionError):
        mend = "give this user the right to read it and to enter its folders"
    elif exc.errno == errno.ENAMETOOLONG:
        mend = "check the path"
    return CsvFileUnusable(name, None, f"the file cannot be read ({said}); {mend}")
