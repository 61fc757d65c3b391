"""The flights job on a small file of the same shape."""

import csv
import io
import sqlite3
import zipfile
from pathlib import Path

import pytest
import trio

from scenarios.flights import job as flights
from scenarios.flights.source import Summary, records, summary_of
from triolet.actors import (
    BatchStatus,
    Event,
    EventKind,
    LaunchReport,
    RuntimeOptions,
    open_runtime,
)

from .flights_data import put_flights

RECORDS = 3_500
NODES = ["inspect", "load", "rank", "report"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flights, "ENOUGH_ROWS", RECORDS)
    return put_flights(tmp_path / "flights.csv.zip", RECORDS)


async def launch(
    source: Path, options: RuntimeOptions | None = None, limit: int | None = None
) -> LaunchReport:
    async with open_runtime("sqlite:///flights.db", options) as runtime:
        return await runtime.launch(flights.make_job(source, limit))


def ask(query: str) -> list[tuple[object, ...]]:
    look = sqlite3.connect("flights.db")
    try:
        return look.execute(query).fetchall()
    finally:
        look.close()


def loaded() -> tuple[object, ...]:
    (found,) = ask("SELECT count(*), sum(arr_delay) FROM flights")
    return found


def expected(source: Path) -> tuple[object, ...]:
    summary = summary_of(source)
    return summary.rows, summary.delay_sum


async def test_enough_flights_are_loaded_ranked_and_reported(source: Path) -> None:
    report = await launch(source)
    assert report.status is BatchStatus.COMPLETED
    assert [step.node for step in report.steps] == NODES
    assert report.step("load").counts.committed == 4
    assert loaded() == expected(source)


async def test_too_few_flights_fail_the_job_and_make_no_report(
    source: Path, tmp_path: Path
) -> None:
    report = await launch(source, limit=RECORDS - 1)
    assert report.status is BatchStatus.FAILED
    assert [step.node for step in report.steps] == NODES[:2]
    assert report.step("load").status is BatchStatus.COMPLETED
    assert loaded()[0] == RECORDS - 1
    assert not (tmp_path / flights.REPORT).exists()
    assert ask("SELECT name FROM sqlite_schema WHERE name = 'worst_routes'") == []


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)


async def test_a_damaged_file_fails_before_anything_is_loaded(source: Path) -> None:
    damage(source)
    report = await launch(source)
    assert report.status is BatchStatus.FAILED
    assert [step.node for step in report.steps] == ["inspect"]
    assert ask("SELECT name FROM sqlite_schema WHERE name = 'flights'") == []


async def test_a_load_cut_off_in_the_middle_is_continued(source: Path) -> None:
    scope = trio.CancelScope()
    committed = 0

    def cut_off(event: Event) -> None:
        nonlocal committed
        if event.kind is EventKind.CHUNK_COMMITTED:
            committed += 1
            if committed == 2:
                scope.cancel()

    with scope:
        await launch(source, RuntimeOptions(events=cut_off))
    assert scope.cancelled_caught
    assert ask("SELECT status FROM triolet_execution") == [("STOPPED",)]
    report = await launch(source)
    assert report.status is BatchStatus.COMPLETED
    assert report.restart_of is not None
    assert report.step("inspect").reused
    assert report.step("load").counts.read == RECORDS
    assert loaded() == expected(source)


async def test_missing_values_are_nulls(source: Path) -> None:
    await launch(source)
    missing = sum(record["arr_delay"] == "NA" for record in records(source))
    assert missing > 0
    nulls = ask("SELECT count(*) FROM flights WHERE arr_delay IS NULL")
    assert nulls == [(missing,)]
    assert ask("SELECT count(*) FROM flights WHERE tailnum = 'NA'") == [(0,)]


async def test_the_report_holds_the_ten_worst_routes(
    source: Path, tmp_path: Path
) -> None:
    await launch(source)
    text = (tmp_path / flights.REPORT).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == "# The ten worst routes out of New York, 2013"
    assert lines[4:] == worst(source)
    assert len(lines[4:]) == 10
    assert not (tmp_path / "flights-report.draft").exists()


def worst(source: Path) -> list[str]:
    """Rank the routes from the file, without SQL."""
    delays: dict[tuple[str, str], list[int]] = {}
    for record in records(source):
        if record["arr_delay"] != "NA":
            route = record["origin"], record["dest"]
            delays.setdefault(route, []).append(int(record["arr_delay"]))
    ranked = sorted(
        (-sum(all_) / len(all_), *route, len(all_))
        for route, all_ in delays.items()
        if len(all_) >= flights.FEWEST_FLIGHTS
    )
    return [
        f"| {origin} - {dest} | {count:,} | {-mean:.1f} |"
        for mean, origin, dest, count in ranked[:10]
    ]


async def test_routes_with_few_flights_are_left_out(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights, "FEWEST_FLIGHTS", RECORDS)
    await launch(source)
    assert ask("SELECT * FROM worst_routes") == []


def test_the_source_is_summed_without_triolet(tmp_path: Path) -> None:
    path = tmp_path / "few.zip"
    out = io.StringIO()
    csv.writer(out).writerows([["arr_delay"], ["5"], ["NA"], ["-2"], ["9"]])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("flights.csv", out.getvalue())
    assert summary_of(path) == Summary(4, 12)
    assert summary_of(path, limit=3) == Summary(3, 3)


def test_the_real_file_has_the_declared_columns() -> None:
    assert list(next(records(flights.data_file()))) == list(flights.COLUMNS)
