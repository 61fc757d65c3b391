"""The flights: their columns, the file that is loaded, and the job that loads it."""

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, TypeAlias

from triolet.actors import Chunk, CsvReader, Job, Step, TableWriter

Convert: TypeAlias = Callable[[list[str]], Sequence[Any]]

TABLE = "flights"
CHUNK = 1000
COLUMNS: dict[str, type] = {
    "year": int,
    "month": int,
    "day": int,
    "dep_time": str,
    "sched_dep_time": int,
    "dep_delay": str,
    "arr_time": str,
    "sched_arr_time": int,
    "arr_delay": str,
    "carrier": str,
    "flight": int,
    "tailnum": str,
    "origin": str,
    "dest": str,
    "air_time": str,
    "distance": int,
    "hour": int,
    "minute": int,
    "time_hour": str,
}
"""Where a number may be missing, the file says NA, which only a text column takes."""

CONVERTED: dict[str, type] = {
    **COLUMNS,
    **dict.fromkeys(
        ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"), int
    ),
}

NARROW: dict[str, type] = {"carrier": str, "flight": int, "origin": str}

_EXAMPLE = (
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,"
    "2013-01-01T10:00:00Z\n"
)
_SQL = {int: "INTEGER", str: "TEXT"}


def convert(row: list[str]) -> tuple[object, ...]:
    """Make numbers of texts; NA is a number that is missing."""
    year, month, day, dep, sched_dep, dep_delay, arr, sched_arr, arr_delay = row[:9]
    carrier, flight, tailnum, origin, dest, air, distance, hour, minute, at = row[9:]
    return (
        int(year),
        int(month),
        int(day),
        None if dep == "NA" else int(dep),
        int(sched_dep),
        None if dep_delay == "NA" else int(dep_delay),
        None if arr == "NA" else int(arr),
        int(sched_arr),
        None if arr_delay == "NA" else int(arr_delay),
        carrier,
        int(flight),
        tailnum,
        origin,
        dest,
        None if air == "NA" else int(air),
        int(distance),
        int(hour),
        int(minute),
        at,
    )


def create_statement(columns: dict[str, type]) -> str:
    """Write the DDL that TableWriter writes for these columns."""
    body = ", ".join(f'"{name}" {_SQL[kind]}' for name, kind in columns.items())
    return f'CREATE TABLE IF NOT EXISTS "{TABLE}" ({body}) STRICT'


def insert_statement(columns: dict[str, type]) -> str:
    """Write the statement that inserts a row."""
    values = ", ".join("?" * len(columns))
    return f'INSERT INTO "{TABLE}" VALUES ({values})'


def load_job(
    path: Path, columns: dict[str, type], processor: Convert | None = None
) -> Job:
    """Describe the job that loads a file."""
    chunk = Chunk(CsvReader(path), TableWriter(TABLE, columns), processor, size=CHUNK)
    return Job("load", [Step("load", chunk)])


def generated_lines(rows: int) -> Iterator[str]:
    """Give the lines of a file that is as wide as the real one."""
    return chain([",".join(COLUMNS) + "\n"], repeat(_EXAMPLE, rows))


def archived_lines(archive: Path) -> Iterator[str]:
    """Give the lines of the real file."""
    with zipfile.ZipFile(archive) as zipped:
        (member,) = zipped.namelist()
        with zipped.open(member) as raw:
            yield from io.TextIOWrapper(raw, encoding="utf-8", newline="")


def write_csv(path: Path, lines: Iterator[str], rows: int) -> None:
    """Keep the header and the first *rows* records."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(islice(lines, rows + 1))


def write_narrow(path: Path, source: Path) -> None:
    """Copy the columns of NARROW from another file."""
    with (
        source.open(encoding="utf-8", newline="") as read,
        path.open("w", encoding="utf-8", newline="") as written,
    ):
        writer = csv.writer(written)
        writer.writerow(NARROW)
        for record in csv.DictReader(read):
            writer.writerow([record[name] for name in NARROW])


def write_archive(path: Path, lines: Callable[[], Iterator[str]], times: int) -> None:
    """Write a zipped file that holds the records *times* over."""
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped,
        zipped.open("flights.csv", "w", force_zip64=True) as raw,
        io.TextIOWrapper(raw, encoding="utf-8", newline="") as file,
    ):
        file.writelines(lines())
        for _ in range(times - 1):
            file.writelines(islice(lines(), 1, None))
