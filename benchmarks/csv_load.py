"""A CSV file into SQLite, chunk by chunk: rows per second, and peak memory."""

import csv
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import trio
from attrs import frozen

from triolet.actors import (
    BatchStatus,
    Job,
    LaunchReport,
    RuntimeOptions,
    open_runtime,
)
from triolet.actors.cli.running import PATIENCE_SECS

from . import flights
from .benchmark import (
    Benchmark,
    Workspace,
    flights_archive,
    plain_connection,
    url_of,
)
from .flights import CHUNK, Convert
from .rounds import ROUNDS, bounded, compared, in_turns
from .rows import Row, WrongResult, check

TARGET = 0.8
PEAK_MIB = 120.0
GROWTH_MIB = 10.0
TIMES_LONGER = 4
ROOT = Path(__file__).parents[1]
AS_THE_COMMAND_LINE = RuntimeOptions(patience=PATIENCE_SECS)

Lines = Callable[[], Iterator[str]]


def real_lines() -> Iterator[str]:
    """Give the lines of the real flights."""
    return flights.archived_lines(flights_archive())


@frozen(kw_only=True)
class Size:
    """What is loaded, and how often."""

    lines: Lines = real_lines
    rows: int = 200_000
    rounds: int = ROUNDS
    whole: int = 336_776
    """Records of the file whose load is watched for memory."""


FULL_SIZE = Size()


@frozen
class Load:
    """A file, the table for it, and what is done to each row in between."""

    source: Path
    columns: dict[str, type]
    expected: tuple[int, int]
    """How many records the file has, and the sum of their flight numbers."""
    convert: Convert | None = None

    @property
    def rows(self) -> int:
        """How many records the file has."""
        return self.expected[0]


def load_of(
    source: Path, columns: dict[str, type], convert: Convert | None = None
) -> Load:
    """Look into the file for what the table must hold in the end."""
    with source.open(encoding="utf-8", newline="") as file:
        numbers = [int(record["flight"]) for record in csv.DictReader(file)]
    return Load(source, columns, (len(numbers), sum(numbers)), convert)


def bare_load(workspace: Workspace, load: Load) -> float:
    """Give rows per second of csv, executemany and a commit for each chunk."""
    with workspace.store() as path:
        db = plain_connection(path)
        began = time.perf_counter()
        _copy(db, load)
        took = time.perf_counter() - began
        db.close()
        _check_table(path, load)
    return load.rows / took


def _copy(db: sqlite3.Connection, load: Load) -> None:
    db.execute(flights.create_statement(load.columns))
    insert = flights.insert_statement(load.columns)
    with load.source.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        while rows := list(islice(reader, CHUNK)):
            values = rows if load.convert is None else map(load.convert, rows)
            db.execute("BEGIN")
            db.executemany(insert, values)
            db.execute("COMMIT")


def durable_load(workspace: Workspace, load: Load) -> float:
    """Give rows per second of a job that loads the same file in the same chunks."""
    job = flights.load_job(load.source, load.columns, load.convert)
    with workspace.store() as path:
        took, report = trio.run(_launched, url_of(path), job)
        check(report.status, BatchStatus.COMPLETED, "the job's status")
        check(report.counts.written, load.rows, "rows that the job counted")
        check(report.counts.committed, -(-load.rows // CHUNK), "chunks")
        _check_table(path, load)
    return load.rows / took


async def _launched(url: str, job: Job) -> tuple[float, LaunchReport]:
    async with open_runtime(url, AS_THE_COMMAND_LINE) as runtime:
        began = time.perf_counter()
        report = await runtime.launch(job)
        return time.perf_counter() - began, report


def _check_table(path: Path, load: Load) -> None:
    db = plain_connection(path)
    found = db.execute(f"SELECT count(*), sum(flight) FROM {flights.TABLE}").fetchone()
    (statement,) = db.execute(
        "SELECT sql FROM sqlite_schema WHERE name = ?", (flights.TABLE,)
    ).fetchone()
    db.close()
    expected = flights.create_statement(load.columns).replace("IF NOT EXISTS ", "")
    check(statement, expected, "the table's definition")
    check(found, load.expected, "rows and sum of flight numbers")


def _measure(name: str, workspace: Workspace, size: Size, load: Load) -> Row:
    check(load.rows, size.rows, "records of the file")
    rounds = in_turns(
        partial(bare_load, workspace, load),
        partial(durable_load, workspace, load),
        size.rounds,
    )
    load.source.unlink()
    return compared(name, "rows/s", "higher", TARGET, rounds)


def _source(workspace: Workspace, size: Size) -> Path:
    path = workspace.new_file(".csv")
    flights.write_csv(path, size.lines(), size.rows)
    return path


def plain(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure rows that go from the file to the table as they are."""
    source = _source(workspace, size)
    return _measure(name, workspace, size, load_of(source, flights.COLUMNS))


def narrow(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure as many rows of three columns, where all that is not theirs weighs."""
    source, wide = workspace.new_file(".csv"), _source(workspace, size)
    flights.write_narrow(source, wide)
    wide.unlink()
    return _measure(name, workspace, size, load_of(source, flights.NARROW))


def converted(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure rows that a plain function converts, on both sides."""
    source = _source(workspace, size)
    load = load_of(source, flights.CONVERTED, flights.convert)
    return _measure(name, workspace, size, load)


def peak_of_load(workspace: Workspace, archive: Path, rows: int) -> float:
    """Give the peak memory, in MiB, of a process that loads a zipped file."""
    with workspace.store() as path:
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.load_once", archive, path],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        check(child.returncode, 0, f"exit code of the load\n{child.stderr}")
        found = json.loads(child.stdout)
        check(found["status"], BatchStatus.COMPLETED, "the job's status")
        check(found["rows"], rows, "rows in the table")
    return float(found["peak_mib"])


def memory(name: str, workspace: Workspace, size: Size = FULL_SIZE) -> Row:
    """Measure the whole file, and see that a longer one does not take more."""
    peaks = []
    for times in 1, TIMES_LONGER:
        archive = workspace.new_file(".csv.zip")
        flights.write_archive(archive, size.lines, times)
        peaks.append(peak_of_load(workspace, archive, size.whole * times))
        archive.unlink()
    growth = peaks[1] - peaks[0]
    if growth > GROWTH_MIB:
        raise WrongResult(
            f"a file {TIMES_LONGER} times as long takes {growth:.1f} MiB more, "
            f"at most {GROWTH_MIB:g} are allowed"
        )
    return bounded(name, "MiB", PEAK_MIB, peaks[:1])


BENCHMARKS = (
    Benchmark("sqlite.csv", plain),
    Benchmark("sqlite.csv_narrow", narrow),
    Benchmark("sqlite.csv_processor", converted),
    Benchmark("sqlite.csv_memory", memory),
)
