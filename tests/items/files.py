"""Files for readers, and the ways in which the tests read them."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from triolet.actors.items import CsvReader, JsonObject
from triolet.storage.envelope import canonical_json

TRADES = "id,name,amount\n1,Ada,2.50\n2,Bob,3\n3,Eve,4\n"


def put(path: Path, content: str | bytes | bytearray) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def put_zip(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.csv", content)
    return path


def drain(reader: CsvReader[Any], chunk: int = 2) -> list[Any]:
    return [row for rows in chunks(reader, chunk) for row in rows]


def chunks(reader: CsvReader[Any], size: int) -> Iterator[Sequence[Any]]:
    while rows := reader.read(size):
        yield rows


def read_all(path: Path, **options: Any) -> list[Any]:
    reader: CsvReader[Any] = CsvReader(path, **options)
    reader.open(None)
    try:
        return drain(reader)
    finally:
        reader.close()


def stored(state: JsonObject) -> JsonObject:
    loaded: JsonObject = json.loads(canonical_json(state))
    return loaded


def state_after(path: Path, records: int, **options: Any) -> JsonObject:
    reader: CsvReader[Any] = CsvReader(path, **options)
    reader.open(None)
    if records:
        reader.read(records)
    reader.close()
    return stored(reader.state())


def resumed(path: Path, state: JsonObject, **options: Any) -> list[Any]:
    reader: CsvReader[Any] = CsvReader(path, **options)
    reader.open(state)
    try:
        return drain(reader)
    finally:
        reader.close()
