"""Readers and writers for chunk steps, and the contracts for one's own."""

from ...storage.commands import Cursor as Cursor
from ...storage.model.json import JsonObject as JsonObject
from .csv_reader import CsvReader as CsvReader
from .errors import CsvCharacterIllegal as CsvCharacterIllegal
from .errors import CsvColumnAmbiguous as CsvColumnAmbiguous
from .errors import CsvColumnMissing as CsvColumnMissing
from .errors import CsvEncodingWrong as CsvEncodingWrong
from .errors import CsvError as CsvError
from .errors import CsvFieldTooLarge as CsvFieldTooLarge
from .errors import CsvFileChanged as CsvFileChanged
from .errors import CsvFileMissing as CsvFileMissing
from .errors import CsvFileUnusable as CsvFileUnusable
from .errors import CsvHeaderMissing as CsvHeaderMissing
from .errors import CsvMemberUnclear as CsvMemberUnclear
from .errors import CsvQuoteMisplaced as CsvQuoteMisplaced
from .errors import CsvQuoteUnclosed as CsvQuoteUnclosed
from .errors import CsvRecordRagged as CsvRecordRagged
from .errors import QueryChanged as QueryChanged
from .errors import QueryKeyInvalid as QueryKeyInvalid
from .errors import TableError as TableError
from .errors import TableMismatch as TableMismatch
from .errors import TableMissing as TableMissing
from .errors import TableRowRefused as TableRowRefused
from .protocols import ChunkKey as ChunkKey
from .protocols import Delivery as Delivery
from .protocols import Reader as Reader
from .protocols import SizedReader as SizedReader
from .protocols import Writer as Writer
from .query_reader import QueryReader as QueryReader
from .table_writer import TableWriter as TableWriter

__all__ = [
    "ChunkKey",
    "CsvCharacterIllegal",
    "CsvColumnAmbiguous",
    "CsvColumnMissing",
    "CsvEncodingWrong",
    "CsvError",
    "CsvFieldTooLarge",
    "CsvFileChanged",
    "CsvFileMissing",
    "CsvFileUnusable",
    "CsvHeaderMissing",
    "CsvMemberUnclear",
    "CsvQuoteMisplaced",
    "CsvQuoteUnclosed",
    "CsvReader",
    "CsvRecordRagged",
    "Cursor",
    "Delivery",
    "JsonObject",
    "QueryChanged",
    "QueryKeyInvalid",
    "QueryReader",
    "Reader",
    "SizedReader",
    "TableError",
    "TableMismatch",
    "TableMissing",
    "TableRowRefused",
    "TableWriter",
    "Writer",
]
