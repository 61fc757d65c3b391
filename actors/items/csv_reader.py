"""A reader of delimited text files that goes on exactly where it stopped."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import ClassVar, Generic, Literal, TypeVar, overload

from attrs import evolve, frozen

from ...storage.model.bounds import check_whole
from ...storage.model.errors import InvalidValue
from ...storage.model.execution import COUNT_MAX
from ...storage.model.json import JsonObject
from .csv_faults import line_of
from .csv_feed import RecordFeed
from .csv_layout import Layout, Shaper
from .csv_source import CsvSource
from .errors import CsvError, CsvFileChanged, CsvHeaderMissing

R_co = TypeVar("R_co", covariant=True)


@frozen
class _Place:
    """How far a file was read, and by what it is recognised at a restart."""

    record: int = 0
    header: str | None = None
    """Digest of the header; None when none was read."""
    last: str | None = None
    """Digest of the last record that was read; None before the first."""

    def as_state(self) -> JsonObject:
        return {"record": self.record, "header": self.header, "last": self.last}


def _place_from(state: JsonObject) -> _Place:
    record, header, last = (state.get(key) for key in ("record", "header", "last"))
    if type(record) is not int or not 0 <= record <= COUNT_MAX:
        raise InvalidValue("the checkpoint", "is not one of a CsvReader")
    if not isinstance(header, str | None) or not isinstance(last, str | None):
        raise InvalidValue("the checkpoint", "is not one of a CsvReader")
    return _Place(record, header, last)


def _digest(row: Sequence[str]) -> str:
    return sha256(json.dumps(row).encode()).hexdigest()[:16]


class CsvReader(Generic[R_co]):
    """Read the records of a delimited file, plain or in a zip archive.

    A record is a list of texts; a tuple of the selected *columns*, in that order; or,
    with *as_dicts*, a dict. Blank lines are skipped; no line is a comment. All records
    must have as many fields as the header, as *columns* when there is no header, or
    else as the first record. A quote is special only at the beginning of a field.

    The position is a number of records, so that a restart is exact even when quoted
    fields hold line breaks. A restart refuses a file that has become shorter, or whose
    header or last record read is another one. Only the records asked for are held.

    Args:
        path: The file; a zip archive is recognised by its content.
        columns: With a header: which columns to deliver. Without: names for all
            fields, in the order of the file.
        header: Whether the first record holds the names of the columns. A byte order
            mark of UTF-8 belongs to no name.
        encoding: How the text is encoded; never taken from the locale.
        delimiter: The character between two fields.
        quotechar: The character around fields that hold delimiters or line breaks,
            doubled inside them; None when quotes have no meaning in this file.
        as_dicts: Deliver dicts from column name to text.
        member: The file in the archive; needed when the archive holds several.
        limit: Stop after so many records, counted from the beginning of the file.

    Raises:
        InvalidValue: An argument is out of its bounds.
    """

    brief: ClassVar[bool] = True
    """A local file waits for nobody, so reading needs no thread of its own."""

    @overload
    def __init__(
        self: "CsvReader[dict[str, str]]",
        path: str | os.PathLike[str],
        *,
        as_dicts: Literal[True],
        columns: Sequence[str] | None = None,
        header: bool = True,
        encoding: str = "utf-8",
        delimiter: str = ",",
        quotechar: str | None = '"',
        member: str | None = None,
        limit: int | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: "CsvReader[tuple[str, ...]]",
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str],
        as_dicts: Literal[False] = False,
        header: bool = True,
        encoding: str = "utf-8",
        delimiter: str = ",",
        quotechar: str | None = '"',
        member: str | None = None,
        limit: int | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: "CsvReader[list[str]]",
        path: str | os.PathLike[str],
        *,
        columns: None = None,
        as_dicts: Literal[False] = False,
        header: bool = True,
        encoding: str = "utf-8",
        delimiter: str = ",",
        quotechar: str | None = '"',
        member: str | None = None,
        limit: int | None = None,
    ) -> None: ...

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        header: bool = True,
        encoding: str = "utf-8",
        delimiter: str = ",",
        quotechar: str | None = '"',
        as_dicts: bool = False,
        member: str | None = None,
        limit: int | None = None,
    ) -> None:
        self._source = CsvSource(
            path=path,
            member=member,
            encoding=encoding,
            delimiter=delimiter,
            quotechar=quotechar,
        )
        self._layout = Layout(columns=columns, header=header, as_dicts=as_dicts)
        if limit is not None:
            check_whole("limit", limit, 1, COUNT_MAX)
        self._limit = limit
        self._place = _Place()
        self._feed: RecordFeed | None = None
        self._shape: Shaper | None = None
        self._ended = False

    def __repr__(self) -> str:
        return f"CsvReader({self._source.name!r})"

    def open(self, state: JsonObject | None) -> None:
        """Open the file and pass over the records that were read before.

        Raises:
            CsvError: The file cannot be used as declared, or has changed.
            InvalidValue: The state is not one of this reader.
        """
        self.close()
        self._ended = False
        self._place = _Place() if state is None else _place_from(state)
        self._feed = RecordFeed(self._source, self._layout.width, self._layout.origin)
        with self._damage_first():
            self._feed.open()
            names = self._names(self._feed)
            self._recognise(names)
            shape = self._layout.shaper(self._source, names)
            if self._place.record:
                self._resume(self._feed)
        self._shape = shape

    def read(self, n: int) -> Sequence[R_co]:
        """Give the next *n* records, fewer at the end, none after it.

        Raises:
            CsvError: One of them is not as declared, or the file cannot be read. The
                position is then as before the call.
            InvalidValue: *n* is less than 1, or the reader is not open.
        """
        if n < 1:
            raise InvalidValue("the number of records to read", "must be at least 1")
        if self._feed is None or self._shape is None:
            raise InvalidValue(repr(self), "is not open")
        if self._limit is not None:
            n = min(n, self._limit - self._place.record)
        with self._damage_first():
            rows = self._feed.take(n) if n > 0 else []
        if not rows:
            self._ended = True
            return []
        record = self._place.record + len(rows)
        self._place = _Place(record, self._place.header, _digest(rows[-1]))
        return self._shape(rows)

    def state(self) -> JsonObject:
        """Give the number of records read, and digests that recognise the file."""
        return self._place.as_state()

    def fraction(self) -> float | None:
        """Tell the part of the bytes that was read, or of *limit* if that is more."""
        if self._ended:
            return 1.0
        parts = [None if self._feed is None else self._feed.fraction()]
        if self._limit is not None:
            parts.append(min(1.0, self._place.record / self._limit))
        return max((part for part in parts if part is not None), default=None)

    def close(self) -> None:
        """Close the file; harmless when it is not open."""
        if self._feed is not None:
            self._feed.close()
        self._feed = None
        self._shape = None

    @contextmanager
    def _damage_first(self) -> Iterator[None]:
        """Look whether a fault in an archive's records is damage to the archive."""
        try:
            yield
        except CsvError:
            self._source.check_archive()
            raise

    def _names(self, feed: RecordFeed) -> list[str] | None:
        if not self._layout.header:
            return None
        rows = feed.take(1)
        if not rows and self._place != _Place():
            raise self._changed(None, "the file is empty and was not when it was read")
        if not rows:
            reason = "the file is empty, a header was expected; is header=False meant?"
            raise CsvHeaderMissing(self._source.name, None, reason)
        return rows[0]

    def _recognise(self, names: list[str] | None) -> None:
        """Compare the header with that of the checkpoint, and remember it."""
        header = None if names is None else _digest(names)
        if self._place not in (_Place(), evolve(self._place, header=header)):
            reason = "the header is another one than when the first records were read"
            raise self._changed(line_of(self._source, 0), reason)
        self._place = evolve(self._place, header=header)

    def _resume(self, feed: RecordFeed) -> None:
        done = self._place.record
        before = feed.taken
        rows = feed.take(1)
        last = rows[0] if rows else None
        if last is not None and done > 1:
            last = feed.skip(done - 1)
        if last is None:
            reason = f"the file has fewer than the {done} records that were read before"
            raise self._changed(None, reason)
        if _digest(last) != self._place.last:
            reason = f"record {done}, the last that was read before, has changed"
            raise self._changed(line_of(self._source, before + done - 1), reason)

    def _changed(self, line: int | None, reason: str) -> CsvFileChanged:
        mend = "put the old file back to go on, or run the job anew"
        return CsvFileChanged(self._source.name, line, f"{reason}; {mend}")
