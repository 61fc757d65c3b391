"""The records of a delimited file one after another, each checked.

The hot path does no work per record in Python. A feed that failed stands where it
stood before the failing call, so that a call may be repeated.
"""

import csv
from collections.abc import Iterator
from itertools import islice

from attrs import define, field

from .csv_faults import is_text, parse_fault, ragged, text_fault, wrong_byte
from .csv_source import ESCAPE, CsvSource, CsvStream
from .errors import CsvError, CsvFileUnusable


@define(eq=False)
class RecordFeed:
    """A position in a file, counted in records that are not blank."""

    source: CsvSource
    width: int | None
    """Fields that each record must have; None: as many as the first record."""
    origin: str
    """Who wants that width, for a sentence."""
    taken: int = field(default=0, init=False)
    _careful: bool = field(default=False, init=False)
    _stream: CsvStream | None = field(default=None, init=False)
    _records: Iterator[list[str]] = field(factory=lambda: iter(()), init=False)

    def open(self) -> None:
        """Open the file at this position; the other methods do so when necessary.

        Raises:
            CsvError: There is no such file, or it cannot be read.
        """
        self._stream = self.source.open(ESCAPE if self._careful else "strict")
        self._records = filter(None, self._stream.parser)
        if self.taken:
            next(islice(self._records, self.taken - 1, self.taken), None)

    def take(self, n: int) -> list[list[str]]:
        """Give the next *n* records, fewer at the end of the file.

        Raises:
            CsvError: One of them is not as declared, or the file cannot be read.
        """
        try:
            rows = self._pull(0, n)
            self._check(rows)
        except BaseException:
            self.close()
            raise
        self.taken += len(rows)
        return rows

    def skip(self, n: int) -> list[str] | None:
        """Pass over *n* records; give the last of them, None if there are fewer.

        Raises:
            CsvError: As `take`, but the records themselves are not checked.
        """
        try:
            rows = self._pull(n - 1, n)
        except BaseException:
            self.close()
            raise
        self.taken += n
        return rows[0] if rows else None

    def fraction(self) -> float | None:
        """Tell which part of the file was parsed; None when it is closed or empty."""
        return None if self._stream is None else self._stream.fraction()

    def close(self) -> None:
        """Close the file; the next call opens it again at the same position."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    def _pull(self, start: int, stop: int) -> list[list[str]]:
        rows: list[list[str]] = []
        try:
            if self._stream is None:
                self.open()
            rows.extend(islice(self._records, start, stop))
        except UnicodeError:
            # The decoder is a block ahead: perhaps nobody wants the record with the
            # wrong byte. Read the block's good records first.
            if self._careful:
                raise self._undecodable() from None
            self.close()
            self._careful = True
            return self._pull(start, stop)
        except csv.Error as exc:
            self._check(rows)
            raise parse_fault(self.source, exc) from exc
        return rows

    def _undecodable(self) -> CsvError:
        found = wrong_byte(self.source)
        if found is not None:
            return found
        return CsvFileUnusable(self.source.name, None, "the file changes while read")

    def _check(self, rows: list[list[str]]) -> None:
        if not rows:
            return
        if self.width is None:
            self.width = len(rows[0])
        width, suspicious = self.width, self._is_suspicious()
        if not suspicious and [*map(len, rows)].count(width) == len(rows):
            return
        for index, row in enumerate(rows, self.taken):
            if len(row) != width:
                raise ragged(self.source, index, len(row), width, self.origin)
            if suspicious and not is_text(row):
                raise text_fault(self.source, index, row)

    def _is_suspicious(self) -> bool:
        """Tell whether the bytes so far make it necessary to look into the fields."""
        return self._careful or (self._stream is not None and self._stream.passing.nul)
