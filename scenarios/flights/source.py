"""What the source file says, read without Triolet: the truth to compare with."""

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen


@frozen
class Summary:
    """A table of flights in two numbers."""

    rows: int
    delay_sum: int
    """Sum of the arrival delays, in minutes."""


def records(source: Path) -> Iterator[dict[str, str]]:
    """Read the records of the zipped file."""
    with zipfile.ZipFile(source) as archive:
        (member,) = archive.namelist()
        with archive.open(member) as raw:
            yield from csv.DictReader(io.TextIOWrapper(raw, "utf-8", newline=""))


def summary_of(source: Path, limit: int | None = None) -> Summary:
    """Count and sum what the file holds."""
    rows = delay_sum = 0
    for record in records(source):
        if rows == limit:
            break
        rows += 1
        if record["arr_delay"] != "NA":
            delay_sum += int(record["arr_delay"])
    return Summary(rows, delay_sum)
