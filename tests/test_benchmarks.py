"""The arithmetic of the benchmarks, and every workload once, at a tiny size."""

import json
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import pytest
import trio

from benchmarks import cli_start, csv_load, flights, memory, sqlite
from benchmarks.__main__ import ALL, main, selected
from benchmarks.benchmark import Benchmark, Workspace
from benchmarks.peak import peak_mib
from benchmarks.rounds import Round, bounded, compared, in_turns
from benchmarks.rows import Better, Row, WrongResult, table

ROWS = 2_500


def generated() -> Iterator[str]:
    return flights.generated_lines(ROWS)


SMALL_FILE = csv_load.Size(lines=generated, rows=ROWS, rounds=1, whole=ROWS)
ONE_JOB = sqlite.Size(commits=5, jobs=1, rounds=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def row(
    value: float,
    better: Better,
    target: float,
    name: str = "a.b",
    limit: float = 200.0,
) -> Row:
    return Row(
        name=name,
        value=value,
        unit="steps/s",
        limit=limit,
        better=better,
        target=target,
        spread=(0.25, 0.75),
    )


@pytest.mark.parametrize(
    ("value", "better", "met"),
    [
        (100.0, "higher", True),
        (99.9, "higher", False),
        (100.0, "lower", True),
        (100.1, "lower", False),
    ],
)
def test_the_ratio_decides_whether_a_target_is_met(
    value: float, better: Better, met: bool
) -> None:
    found = row(value, better, 0.5)
    assert found.ratio == value / 200
    assert found.met is met


def test_a_limit_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        row(1.0, "higher", 1.0, limit=0.0)


def test_limit_and_value_are_measured_in_turns() -> None:
    clock = count()
    rounds = in_turns(lambda: next(clock), lambda: next(clock), 3)
    assert rounds == [Round(0, 1), Round(2, 3), Round(4, 5)]


def test_the_round_with_the_median_ratio_is_reported() -> None:
    rounds = [Round(10.0, 1.0), Round(100.0, 90.0), Round(50.0, 20.0)]
    found = compared("a", "rows/s", "higher", 0.8, rounds)
    assert (found.value, found.limit) == (20.0, 50.0)
    assert found.spread == (0.1, 0.9)


def test_an_absolute_bound_is_the_limit() -> None:
    found = bounded("a", "us", 80.0, [60.0, 100.0, 70.0])
    assert (found.value, found.limit, found.target) == (70.0, 80.0, 1.0)
    assert found.better == "lower"
    assert found.met


def test_the_results_hold_what_was_promised() -> None:
    assert row(100.0, "higher", 0.5).as_json() == {
        "name": "a.b",
        "value": 100.0,
        "unit": "steps/s",
        "limit": 200.0,
        "ratio": 0.5,
        "better": "higher",
        "target": 0.5,
        "met": True,
    }


def test_the_table_is_aligned() -> None:
    rows = [row(100.0, "higher", 0.5), row(12345.6, "lower", 2.5, "long.name")]
    assert table(rows).splitlines() == [
        "name        value  unit     limit  ratio        spread  target  met",
        "a.b           100  steps/s    200   0.50  0.25 to 0.75  >= 0.5  yes",
        "long.name  12,346  steps/s    200  61.73  0.25 to 0.75  <= 2.5  no",
    ]


def test_a_prefix_selects_rows() -> None:
    assert selected("") == ALL
    names = [one.name for one in selected("sqlite.c")]
    assert set(names) > {"sqlite.concurrent", "sqlite.csv", "sqlite.csv_memory"}
    assert "sqlite.sequential" not in names


def test_every_name_is_there_once() -> None:
    names = [one.name for one in ALL]
    assert len(set(names)) == len(names)


def good(name: str, _: Workspace) -> Row:
    return row(100.0, "higher", 0.5, name)


def missed(name: str, _: Workspace) -> Row:
    return row(10.0, "higher", 0.5, name)


def wrong(_: str, __: Workspace) -> Row:
    raise WrongResult("rows: expected 2, found 1")


def broken(_: str, __: Workspace) -> Row:
    raise ZeroDivisionError


FAKES = (
    Benchmark("x.good", good),
    Benchmark("x.missed", missed),
    Benchmark("y.wrong", wrong),
    Benchmark("y.broken", broken),
)


def run_fakes(folder: Path, *arguments: str) -> int:
    results, build = folder / "results.json", folder / "build"
    code = main(arguments, every=FAKES, results=results, build=build)
    assert list(build.iterdir()) == []
    return code


def test_a_missed_target_fails_only_when_asked_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_fakes(tmp_path, "x") == 0
    assert "1 of 2 targets met" in capsys.readouterr().out
    assert run_fakes(tmp_path, "x", "--strict") == 1
    assert run_fakes(tmp_path, "x.good", "--strict") == 0


def test_a_wrong_result_has_no_figure_and_harms_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_fakes(tmp_path) == 1
    told = capsys.readouterr()
    assert "y.wrong has no figure: rows: expected 2, found 1" in told.err
    assert "ZeroDivisionError" in told.err
    assert "1 of 4 targets met" in told.out
    kept = json.loads((tmp_path / "results.json").read_text())
    assert [one["name"] for one in kept] == ["x.good", "x.missed"]


def test_an_unknown_prefix_lists_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["nothing"])
    assert ended.value.code == 2
    assert "sqlite.sequential" in capsys.readouterr().err


def test_step_cpu_is_measured_with_and_without_history() -> None:
    size = memory.Size(jobs=1, before=2, rounds=2)
    empty, filled = trio.run(memory.measure_cpu, size)
    assert (len(empty), len(filled)) == (2, 2)


def test_step_cpu_gives_the_worse_store(workspace: Workspace) -> None:
    size = memory.Size(jobs=1, before=1, rounds=1)
    found = memory.step_cpu("memory.step_cpu", workspace, size)
    assert (found.limit, found.target) == (memory.MICROSECONDS_MAX, 1.0)


def test_sequential_steps_are_measured(workspace: Workspace) -> None:
    assert sqlite.sequential("a", workspace, ONE_JOB).target == 0.5
    assert list(workspace.folder.iterdir()) == []


def test_concurrent_steps_are_measured(workspace: Workspace) -> None:
    size = sqlite.Size(commits=5, jobs=3, rounds=1)
    assert sqlite.concurrent("a", workspace, size).target == 2.5
    assert list(workspace.folder.iterdir()) == []


@pytest.mark.parametrize(
    "measure", [csv_load.plain, csv_load.narrow, csv_load.converted]
)
def test_a_load_is_measured(
    workspace: Workspace, measure: Callable[[str, Workspace, csv_load.Size], Row]
) -> None:
    found = measure("a", workspace, SMALL_FILE)
    assert (found.unit, found.better, found.target) == ("rows/s", "higher", 0.8)
    assert list(workspace.folder.iterdir()) == []


def test_the_peak_of_a_load_is_measured_in_a_process(workspace: Workspace) -> None:
    found = csv_load.memory("a", workspace, SMALL_FILE)
    assert (found.unit, found.limit) == ("MiB", 120.0)
    assert list(workspace.folder.iterdir()) == []


def test_a_load_of_another_length_is_refused(workspace: Workspace) -> None:
    size = csv_load.Size(lines=generated, rows=ROWS + 1, rounds=1)
    with pytest.raises(WrongResult, match=f"expected {ROWS + 1}, found {ROWS}"):
        csv_load.plain("a", workspace, size)


def test_the_peak_of_this_process_is_plausible() -> None:
    assert 5 < peak_mib() < 10_000


def test_missing_numbers_are_converted_to_none() -> None:
    header, record = islice(generated(), 2)
    texts = dict(zip(header.split(","), record.split(","), strict=True))
    values = flights.convert([*(texts | {"dep_time": "NA"}).values()])
    converted = dict(zip(flights.CONVERTED, values, strict=True))
    assert converted["dep_time"] is None
    assert converted["arr_time"] == 830


def test_the_start_of_the_command_line_is_measured(workspace: Workspace) -> None:
    found = cli_start.start("a", workspace, rounds=1)
    assert (found.unit, found.better, found.target) == ("ms", "lower", 2.5)
