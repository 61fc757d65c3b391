"""What the peers are asked to do, answered by one that keeps nothing."""

from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from benchmarks.peers import workload
from benchmarks.peers.__main__ import FIGURES, PEERS, line, new_database
from benchmarks.rows import WrongResult

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


class Forgetful:
    def __init__(self, url: str, loads: bool = True) -> None:
        self.url, self.loads = url, loads
        self.started = False

    def start(self) -> None:
        self.started = True

    def sequential(self, workflows: int) -> Sequence[float]:
        assert self.started
        return [0.001 * number for number in range(workflows)]

    def concurrent(self, workflows: int) -> None:
        assert self.started

    def die(self, steps: int) -> None:
        raise NotImplementedError

    def restart(self, steps: int) -> float:
        return 0.5

    def load(self, source: Path) -> None:
        assert self.started
        with psycopg.connect(self.url) as connection:
            for rows in workload.chunks(source):
                kept = rows if self.loads else rows[1:]
                workload.copy(connection.cursor(), kept)


@pytest.mark.parametrize("name", workload.WORKLOADS)
def test_a_workload_has_figures_that_the_table_knows(
    name: str, postgres_url: str
) -> None:
    figures = workload.WORKLOADS[name](Forgetful(postgres_url), postgres_url, 2_500)
    assert set(figures) < set(FIGURES)
    assert "cpu_us_per_step" in figures
    assert line(name, figures).startswith(name)


def test_a_load_that_loses_rows_has_no_figures(postgres_url: str) -> None:
    peer = Forgetful(postgres_url, loads=False)
    with pytest.raises(WrongResult, match=r"expected \(2500"):
        workload.WORKLOADS["csv"](peer, postgres_url, 2_500)


def test_each_measurement_has_a_database_of_its_own(postgres_url: str) -> None:
    with new_database(postgres_url) as url, psycopg.connect(url) as connection:
        assert url != postgres_url
        connection.execute("CREATE TABLE flights (id int)")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


@pytest.mark.parametrize("peer", PEERS)
def test_the_packages_of_a_peer_are_pinned(peer: str) -> None:
    pins = Path(workload.__file__).with_name(f"{peer}.txt").read_text().splitlines()
    assert all(pin.count("==") == 1 for pin in pins)
    drivers = {pin for pin in pins if pin.startswith("psycopg")}
    assert drivers <= set(CONSTRAINTS.read_text().splitlines())
