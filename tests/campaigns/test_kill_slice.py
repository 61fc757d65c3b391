"""A slice of the kill campaign; the long form is ``tests.campaigns.kill_flights``."""

from pathlib import Path
from random import Random

import pytest

from scenarios.flights.job import data_file
from tests.scenarios.flights_data import put_flights

from .kill_flights import SHARE_BEFORE_END, campaign, load_of, parts, summarised

RECORDS = 20_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    try:
        return data_file()
    except FileNotFoundError:
        return put_flights(tmp_path / "flights.csv.zip", RECORDS)


def test_killed_loads_end_with_exactly_the_right_table(
    source: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    load = load_of(source, RECORDS)
    done = campaign(load, tmp_path / "work", 3, 7, said.append)
    assert [kill.faults for kill in done] == [(), (), ()], "\n".join(said)
    assert "seed 7: 3 kills" in said[-1]


def test_four_kills_in_five_fall_before_the_measured_end() -> None:
    for seed in range(20):
        drawn = parts(Random(seed), 50)
        assert len(drawn) == 50
        assert sum(part < 1 for part in drawn) >= 50 * SHARE_BEFORE_END


def test_a_row_that_is_there_twice_is_noticed() -> None:
    row = tuple(range(19))
    once, twice = summarised([row]), summarised([row, row])
    assert (once.rows, twice.rows) == (1, 2)
    assert once.digest != twice.digest


def test_the_order_of_rows_does_not_matter() -> None:
    one, two = tuple(range(19)), tuple(range(1, 20))
    assert summarised([one, two]) == summarised([two, one])
