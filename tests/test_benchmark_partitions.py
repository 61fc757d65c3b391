"""The workloads of partitions, at a tiny size."""

from pathlib import Path

import pytest

from benchmarks import partitions
from benchmarks.benchmark import Workspace

TINY = partitions.Size(waiting=4, jobs=3, rounds=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.mark.parametrize("workers", [1, 3])
async def test_partitions_are_counted(postgres_url: str, workers: int) -> None:
    assert await partitions.rate(postgres_url, 6, workers) > 0


def test_efficiency_is_a_share(workspace: Workspace) -> None:
    row = partitions.efficiency("a", workspace, TINY)
    assert row.value > 0  # on a busy machine even more than 1
    assert (row.limit, row.unit) == (1.0, "T1/(n Tn)")


async def test_a_stop_is_measured(postgres_url: str, workspace: Workspace) -> None:
    assert await partitions.stop_secs(postgres_url, 4) > 0


def test_a_stop_is_measured_in_memory(workspace: Workspace) -> None:
    assert partitions.stop_memory("a", workspace, TINY).value > 0


def test_an_idle_job_holds_something(workspace: Workspace) -> None:
    assert partitions.per_job("a", workspace, TINY).value > 1
