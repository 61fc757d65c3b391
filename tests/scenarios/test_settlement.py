"""The settlement: hours on the virtual clock, every crash, and nothing booked twice."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from scenarios.settlement import demo
from scenarios.settlement.bank import Bank, make_bank, put_files
from scenarios.settlement.job import UNTIL_CLOSE_SECS, make_job
from triolet.actors import BatchStatus, Job, LaunchReport, open_runtime
from triolet.actors.testing import (
    Scenario,
    StoreKind,
    cancel_at_every_checkpoint,
    crash_at_every_commit,
)

BROKEN = 13
ACCOUNTS = 24
PARTITIONS = 4


@pytest.fixture
def bank() -> Bank:
    return make_bank(accounts=ACCOUNTS, payments=40)


def story(
    bank: Bank, folder: Path, store: StoreKind, until_close: float = 20.0
) -> Scenario:
    """An account is broken at the first launch, and mended before the next one."""

    def world() -> Callable[[], Job]:
        launches: list[Job] = []

        def make() -> Job:
            put_files(bank, folder, broken=None if launches else BROKEN)
            job = make_job(
                folder, until_close=until_close, partitions=PARTITIONS, size=30
            )
            launches.append(job)
            return launches[-1]

        return make

    parameters = {"day": "2026-11-30"}
    return Scenario(world, parameters=parameters, store=store, launches=2, seed=7)


@pytest.mark.parametrize("store", StoreKind)
def test_hours_pass_on_the_virtual_clock_and_the_day_is_settled(
    bank: Bank, tmp_path: Path, store: StoreKind
) -> None:
    run = story(bank, tmp_path, store, UNTIL_CLOSE_SECS).run()
    failed, done = run.reports
    assert failed.status is BatchStatus.FAILED
    assert failed.failure is not None
    assert f"account {BROKEN}" in (failed.failure.message or "")
    assert done.status is BatchStatus.COMPLETED
    left = {one.key for one in failed.partitions if one.status != "COMPLETED"}
    assert {one.key for one in done.partitions if not one.reused} == left
    assert run.ending.rows["balances"] == dict.fromkeys(bank.balances.items(), 1)


@pytest.mark.parametrize("store", StoreKind)
@pytest.mark.parametrize("sweep", [crash_at_every_commit, cancel_at_every_checkpoint])
def test_the_day_is_settled_whatever_dies(
    bank: Bank,
    tmp_path: Path,
    store: StoreKind,
    sweep: Callable[..., object],
) -> None:
    sweep(story(bank, tmp_path, store), points=12)


def test_a_day_without_postings_is_a_holiday(bank: Bank, tmp_path: Path) -> None:
    closed = make_bank(accounts=ACCOUNTS, payments=0)
    put_files(closed, tmp_path)

    async def main() -> LaunchReport:
        async with open_runtime(f"sqlite:///{tmp_path / 'bank.db'}") as runtime:
            return await runtime.launch(make_job(tmp_path), day="2026-12-25")

    report = trio.run(main)
    assert report.status is BatchStatus.COMPLETED
    assert [step.node for step in report.steps] == ["receive", "load"]


def test_the_demo_tells_the_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "UNTIL_CLOSE_SECS", 0.0)
    assert demo.main() == 0
    said = capsys.readouterr().out
    assert "00113-00150  FAILED" in said
    # Two workers read in threads: which of the first ranges is booked, they decide.
    assert 2 <= said.count("booked before") <= 4
    assert said.rstrip().endswith("equal: nothing lost, nothing twice")
    with sqlite3.connect(demo.STORE) as look:
        assert look.execute("SELECT sum(cents) FROM balances").fetchone() == (0,)
    look.close()
