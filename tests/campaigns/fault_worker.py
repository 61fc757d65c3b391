"""A process that launches jobs until each of them has completed, whatever happens.

    python -m tests.campaigns.fault_worker URL FOLDER SLOT...

Each slot launches one job after another, numbered SLOT, SLOT + slots and so on, until
the file FOLDER/stop is there; a file per slot remembers how far it came.
"""

import logging
import sys
from pathlib import Path

import trio

from triolet.actors import (
    AlreadyRunning,
    BatchStatus,
    InstanceComplete,
    LaunchReport,
    LeaseLost,
    Runtime,
    RuntimeOptions,
    StoreError,
    open_runtime,
)

from .fault_jobs import job_of

SLOTS = 12
LEASE_SECS = 2.0
DEADLINE_SECS = 20.0
RETRY_SECS = 0.2
OPTIONS = RuntimeOptions(lease=LEASE_SECS, ask_deadline=DEADLINE_SECS)
PASSING = (StoreError, AlreadyRunning, LeaseLost)


class StayedUnknown(Exception):
    """A job ended UNKNOWN, which no fault of the campaign may cause."""


def _check(report: LaunchReport) -> bool:
    if report.status is BatchStatus.UNKNOWN:
        raise StayedUnknown(report.job)
    return report.status is BatchStatus.COMPLETED


async def _complete(runtime: Runtime, number: int) -> None:
    job = job_of(number)
    while True:
        try:
            if _check(await runtime.launch(job)):
                return
        except InstanceComplete:
            return
        except PASSING as exc:
            logging.info("%s: %r", job.name, exc)
        await trio.sleep(RETRY_SECS)


async def _work(runtime: Runtime, folder: Path, slot: int) -> None:
    file = folder / f"slot-{slot}"
    number = int(file.read_text()) if file.exists() else slot
    stopped = False
    while not stopped:
        # One that an earlier process left is completed, also when all is to stop.
        await _complete(runtime, number)
        number += SLOTS
        # A kill must not leave half a number.
        file.with_suffix(".new").write_text(str(number))
        file.with_suffix(".new").rename(file)
        stopped = (folder / "stop").exists()


async def main(url: str, folder: Path, slots: list[int]) -> None:
    """Work on all slots at once; open the store again when it cannot be opened."""
    while True:
        try:
            async with (
                open_runtime(url, OPTIONS) as runtime,
                trio.open_nursery() as all_,
            ):
                for slot in slots:
                    all_.start_soon(_work, runtime, folder, slot)
        except StoreError as exc:
            logging.info("%r", exc)
        else:
            return


if __name__ == "__main__":
    logging.basicConfig(filename=Path(sys.argv[2]) / f"log-{sys.argv[3]}", level="INFO")
    trio.run(main, sys.argv[1], Path(sys.argv[2]), [int(slot) for slot in sys.argv[3:]])
