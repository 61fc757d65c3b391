"""What may be wrong with an input file or an output table.

All of these are the fault of the data or of what was declared about it. Nothing of
the present chunk was written; repeating it is pointless until the data or the
declaration is mended. Sentences name files, lines, tables and columns, never values.
"""

from collections.abc import Iterable

from ...storage.model.errors import TrioletError, error, listed

NAMES_MAX = 20


@error
class CsvError(TrioletError):
    """A delimited file cannot be read as it was declared."""

    code = "csv_error"
    file: str
    line: int | None
    """The physical line, from 1, on which the record in question begins."""
    reason: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.reason}"


@error
class CsvFileMissing(CsvError):
    """There is no such file."""

    code = "csv_file_missing"


@error
class CsvFileUnusable(CsvError):
    """The path is there, but is no file, may not be read, or is a damaged archive."""

    code = "csv_file_unusable"


@error
class CsvMemberUnclear(CsvError):
    """A zip archive does not hold the file that was named, or not exactly one."""

    code = "csv_member_unclear"


@error
class CsvEncodingWrong(CsvError):
    """A byte does not belong to the declared encoding; *line* is that byte's own."""

    code = "csv_encoding_wrong"
    offset: int
    """Position of the byte in the file, or in the archive's member, from 0."""
    byte: int


@error
class CsvCharacterIllegal(CsvError):
    """A field holds a character that no store takes, such as U+0000."""

    code = "csv_character_illegal"


@error
class CsvQuoteUnclosed(CsvError):
    """A quote is opened and the file ends before it is closed."""

    code = "csv_quote_unclosed"


@error
class CsvQuoteMisplaced(CsvError):
    """A closing quote is followed by something else than a delimiter or line end."""

    code = "csv_quote_misplaced"


@error
class CsvFieldTooLarge(CsvError):
    """A field is longer than the csv module's limit."""

    code = "csv_field_too_large"


@error
class CsvRecordRagged(CsvError):
    """A record has another number of fields than the header or the first record."""

    code = "csv_record_ragged"


@error
class CsvHeaderMissing(CsvError):
    """The file is empty where a header was declared."""

    code = "csv_header_missing"


@error
class CsvColumnMissing(CsvError):
    """The header does not name a column that was asked for."""

    code = "csv_column_missing"


@error
class CsvColumnAmbiguous(CsvError):
    """The header gives two columns the same name, and that name is needed."""

    code = "csv_column_ambiguous"


@error
class CsvFileChanged(CsvError):
    """The file is not the one from which the step has read before."""

    code = "csv_file_changed"


@error
class TableError(TrioletError):
    """A table is not as it was declared."""

    code = "table_error"
    table: str
    column: str | None
    reason: str

    def __str__(self) -> str:
        where = f"table {self.table!r}"
        if self.column is not None:
            where += f", column {self.column!r}"
        return f"{where}: {self.reason}"


@error
class TableMissing(TableError):
    """The table does not exist, and may not or cannot be created."""

    code = "table_missing"


@error
class TableMismatch(TableError):
    """The table exists with other columns or types than those declared."""

    code = "table_mismatch"


@error
class TableRowRefused(TableError):
    """A row does not fit its table; the whole chunk is rolled back."""

    code = "table_row_refused"
    index: int
    """Of the row inside its chunk, from 0."""
    ordinal: int
    """Of the record: the chunk's first ordinal plus *index*."""

    def __str__(self) -> str:
        first = self.ordinal - self.index
        place = f"row {self.index + 1} of the chunk that begins with item {first + 1}"
        return f"{super().__str__()} ({place})"


def quoted(names: Iterable[str]) -> str:
    """List *names* for a sentence, at most the first twenty."""
    every = [repr(name) for name in names]
    if len(every) > NAMES_MAX:
        more = len(every) - NAMES_MAX
        every = [*every[:NAMES_MAX], f"{more} more"]
    return listed(every) or "none"


@error
class QueryKeyInvalid(TrioletError):
    """A query cannot be read along its key."""

    code = "query_key_invalid"
    key: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return f"the key {listed(map(repr, self.key))} of the query: {self.reason}"


@error
class QueryChanged(TrioletError):
    """The checkpoint belongs to a reader with another key."""

    code = "query_changed"
    key: tuple[str, ...]

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return (
            f"the checkpoint is not one of a query along {listed(map(repr, self.key))}: "
            "restore the key, or launch the job anew"
        )
