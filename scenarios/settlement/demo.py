"""The demo: settle the day, meet a broken account, mend it, do the rest, check.

Run it with ``make settlement``, or ``python -m scenarios.settlement.demo``.
"""

import logging
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import trio

from triolet.actors import BatchStatus, LaunchReport, PartitionReport, open_runtime

from .bank import Bank, make_bank, put_files
from .job import make_job

FOLDER = Path("build") / "settlement"
STORE = FOLDER / "bank.db"
BROKEN_ACCOUNT = 133
"""In the fourth of eight ranges."""
UNTIL_CLOSE_SECS = 1.0
"""Nobody waits for a real market."""


def main() -> int:
    """Play the story; 0 when everything was as promised."""
    # The report says what failed; whoever wants the traceback configures logging.
    logging.getLogger("triolet.job").addHandler(logging.NullHandler())
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    bank = make_bank()
    put_files(bank, FOLDER, broken=BROKEN_ACCOUNT)
    say(f"Settling {len(bank.postings):,} postings of {len(bank.opening)} accounts.")
    first = trio.run(launch)
    tell(first)
    say("Eight ranges of accounts, two at a time; this is left of them:")
    tell_partitions(first)
    say(f"Somebody mends account {BROKEN_ACCOUNT}. The same launch again:")
    put_files(bank, FOLDER)
    second = trio.run(launch)
    tell(second)
    say("Booked were only the ranges that were left:")
    tell_partitions(second)
    return check(bank)


def say(sentence: str) -> None:
    """Print a heading."""
    print(f"\n>>> {sentence}", flush=True)


async def launch() -> LaunchReport:
    """Launch the job, or continue it."""
    job = make_job(FOLDER, until_close=UNTIL_CLOSE_SECS)
    async with open_runtime(f"sqlite:///{STORE}") as runtime:
        return await runtime.launch(job, day="2026-11-30")


def tell(report: LaunchReport) -> None:
    """Print what a launch came by, and what it came to."""
    for step in report.steps:
        how = "reused" if step.reused else step.status.value
        print(f"  {step.node:<12} {how}")
    failure = "" if report.failure is None else f": {report.failure.message}"
    print(f"The job is {report.status}{failure}.")


def tell_partitions(report: LaunchReport) -> None:
    """Print how each range of accounts stands."""
    for one in report.partitions:
        print(f"  {one.key}  {standing(one)}")


def standing(one: PartitionReport) -> str:
    """Say in words what became of a partition."""
    if one.reused:
        return "booked before"
    if not one.began:
        return "not begun"
    return "booked" if one.status is BatchStatus.COMPLETED else one.status.value


def check(bank: Bank) -> int:
    """Compare the balances with those that are worked out without Triolet."""
    with closing(sqlite3.connect(STORE)) as look:
        found = dict(look.execute("SELECT account, cents FROM balances"))
    say("The check against the files:")
    print(f"  balances {len(found):>6}   expected {len(bank.balances):>6}")
    print(f"  their sum {sum(found.values()):>5}   expected      0")
    print(
        "equal: nothing lost, nothing twice" if found == bank.balances else "DIFFERENT"
    )
    return 0 if found == bank.balances else 1


if __name__ == "__main__":
    sys.exit(main())
