"""Finding out what is wrong with a delimited file, and where.

Called once something is known to be wrong: the file is read again from its beginning,
so that reading good files need not keep count of lines and bytes.
"""

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress

from .csv_source import CsvSource
from .errors import (
    CsvCharacterIllegal,
    CsvEncodingWrong,
    CsvError,
    CsvFieldTooLarge,
    CsvQuoteMisplaced,
    CsvQuoteUnclosed,
    CsvRecordRagged,
)

BLOCK_BYTES = 65_536

UNREADABLE = (csv.Error, UnicodeError)
"""What ends the search for a line early."""


def line_of(source: CsvSource, index: int) -> int | None:
    """Find the physical line on which record *index* begins.

    Args:
        source: The file.
        index: Counts the records that are not blank, a header included, from 0.

    Returns:
        The line, from 1; None when the file no longer has that record.
    """
    line = 1
    with closing(source.open("replace")) as stream, suppress(*UNREADABLE):
        for row in stream.parser:
            if row and index == 0:
                return line
            index -= bool(row)
            line = stream.parser.line_num + 1
    return None


def lines_of_failure(source: CsvSource) -> tuple[int, int] | None:
    """Find the first and last physical line of the first record that csv refuses."""
    line = 1
    with closing(source.open("replace")) as stream:
        try:
            for _ in stream.parser:
                line = stream.parser.line_num + 1
        except UNREADABLE:
            return line, stream.parser.line_num
    return None


def parse_fault(source: CsvSource, exc: csv.Error) -> CsvError:
    """Say what the csv module could not take."""
    first, last = lines_of_failure(source) or (None, None)
    problem = str(exc)
    mend = "or set quotechar=None if quotes mean nothing in this file"
    if problem == "unexpected end of data":
        reason = f"a quote is opened in this record and never closed; close it, {mend}"
        return CsvQuoteUnclosed(source.name, first, reason)
    if "expected after" in problem:
        reason = (
            "a closing quote is not followed by the delimiter or the line's end; "
            f"double the quotes inside a quoted field, {mend}"
        )
        return CsvQuoteMisplaced(source.name, first, reason)
    if problem.startswith("field larger than field limit"):
        reason = f"a field is longer than {csv.field_size_limit()} characters"
        if first != last:
            reason += (
                " and runs on over many lines: is its quote never closed? Close it"
            )
        reason += f"; raise csv.field_size_limit() if it is meant so, {mend}"
        return CsvFieldTooLarge(source.name, first, reason)
    return CsvError(source.name, first, f"the record cannot be parsed ({problem})")


def ragged(
    source: CsvSource, index: int, found: int, expected: int, origin: str
) -> CsvRecordRagged:
    """Say that a record has the wrong number of fields; *origin* says who wants it."""
    fields = "1 field" if found == 1 else f"{found} fields"
    reason = (
        f"the record has {fields}, expected {expected} as {origin}; quote fields that "
        "hold the delimiter, and check that delimiter is the right one"
    )
    return CsvRecordRagged(source.name, line_of(source, index), reason)


def is_text(row: Sequence[str]) -> bool:
    """Tell whether a record holds neither U+0000 nor undecoded bytes."""
    text = "".join(row)
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def text_fault(source: CsvSource, index: int, row: Sequence[str]) -> CsvError:
    """Say what is wrong with a record that is not text."""
    if "\0" in "".join(row):
        reason = (
            "a field holds a NUL character (U+0000), which cannot be stored; remove it, "
            "or name the right encoding: UTF-16 read as something else looks like that"
        )
        return CsvCharacterIllegal(source.name, line_of(source, index), reason)
    found = wrong_byte(source)
    if found is not None:
        return found
    reason = "a field holds a lone surrogate, which cannot be stored; check encoding"
    return CsvCharacterIllegal(source.name, line_of(source, index), reason)


def wrong_byte(source: CsvSource) -> CsvEncodingWrong | None:
    """Find the first byte that does not belong to the declared encoding."""
    decoder = codecs.getincrementaldecoder(source.codec)()
    fed = 0
    for block in _blocks(source):
        fed += len(block)
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as exc:
            offset, byte = fed - len(exc.object) + exc.start, exc.object[exc.start]
            break
        except UnicodeError:
            return _mark_missing(source, block)
    else:
        return None
    reason = (
        f"byte 0x{byte:02X} at offset {offset} is not valid {source.encoding}; "
        "name the encoding in which the file was written with encoding=..."
    )
    line = 1 + _line_breaks_before(source, offset)
    return CsvEncodingWrong(source.name, line, reason, offset, byte)


def _mark_missing(source: CsvSource, beginning: bytes) -> CsvEncodingWrong:
    """Say that UTF-16 or UTF-32 cannot be told by a mark: which one it is."""
    reason = (
        f"the file does not begin with the byte order mark of {source.encoding}; name "
        f"the order with encoding='{source.codec}-le' or encoding='{source.codec}-be'"
    )
    return CsvEncodingWrong(source.name, 1, reason, 0, beginning[0])


def _blocks(source: CsvSource) -> Iterator[bytes]:
    """Give the file's bytes in blocks; an empty one comes last."""
    with closing(source.open_bytes()) as stream:
        while block := stream.read1(BLOCK_BYTES):
            yield block
        yield b""


def _line_breaks_before(source: CsvSource, offset: int) -> int:
    decoder = codecs.getincrementaldecoder(source.codec)()
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    breaks = 0
    for block in _blocks(source):
        text = decoder.decode(block[:offset])
        offset -= len(block)
        breaks += newlines.decode(text, final=offset <= 0).count("\n")
        if offset <= 0:
            break
    return breaks
