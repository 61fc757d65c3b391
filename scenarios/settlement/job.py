"""Settle the day of a small bank: load its postings, work on them, book the balances.

The files of the day lie in one folder; see `bank.put_files`. The tables hold one day:
the first step of the next one begins them anew.
"""

import csv
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import cast

import trio

from triolet.actors import (
    COMPLETE,
    FAIL,
    Chunk,
    CsvReader,
    Cursor,
    DeciderContext,
    Decision,
    Job,
    JsonObject,
    Parameter,
    PartitionedStep,
    PlannerContext,
    Split,
    Step,
    StepContext,
    TableWriter,
)

from .bank import (
    ACCOUNTS,
    DAY,
    FEE,
    FIRST_CUSTOMER,
    FREE_POSTINGS,
    GAINS,
    HOUSE,
    POSTINGS,
    RATES,
    RESERVE,
)

PARTITIONS = 8
UNTIL_CLOSE_SECS = 6 * 3600.0
"""How long the market is still open when the postings come."""

Work = Callable[[StepContext], None]


# The first steps, and the way that the day takes


def receive(folder: Path) -> Work:
    """Make the step that learns what the day should hold."""

    def read_day(ctx: StepContext) -> None:
        ctx.state.update(json.loads((folder / DAY).read_text(encoding="utf-8")))

    return read_day


TABLES = {
    "postings": "account INTEGER, currency TEXT, cents INTEGER",
    "fees": "account INTEGER, currency TEXT, cents INTEGER",
    "revaluation": "account INTEGER, cents INTEGER",
    "reconciliation": "currency TEXT, postings INTEGER, cents INTEGER",
    "balances": "account INTEGER PRIMARY KEY, cents INTEGER",
}


def begin_tables(cursor: Cursor, ctx: StepContext) -> None:
    """Forget the day before."""
    for table, columns in TABLES.items():
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute(f"CREATE TABLE {table} ({columns})")


def kind_of_day(ctx: DeciderContext) -> str:
    """Decide by the number of postings that the load has written."""
    assert ctx.preceding is not None
    written = ctx.preceding.counts.written
    if written != ctx.state_of("receive")["postings"]:
        return "CUT_OFF"
    return "CLOSED" if written else "HOLIDAY"


# The branches of the split


async def announce(ctx: StepContext) -> None:
    """Say what is being done; the work is the step's enlisted write."""
    ctx.log.info("%s: working on the postings", ctx.node)


def wait_for_close(seconds: float) -> Callable[[StepContext], Awaitable[None]]:
    """Make the step that waits for today's rates."""

    async def wait(ctx: StepContext) -> None:
        await trio.sleep(seconds)

    return wait


def take_rates(folder: Path) -> Work:
    """Make the step that takes the rates; its enlisted write uses them."""

    def read_rates(ctx: StepContext) -> None:
        ctx.state["rates"] = json.loads((folder / RATES).read_text(encoding="utf-8"))

    return read_rates


def revalue(cursor: Cursor, ctx: StepContext) -> None:
    """Book what the new rates make of what customers hold in other currencies."""
    rates = cast(dict[str, tuple[int, int]], ctx.state["rates"])
    cursor.execute(
        "SELECT currency, sum(cents) FROM postings WHERE account >= ? "
        "GROUP BY currency",
        (FIRST_CUSTOMER,),
    )
    gain = 0
    for currency, position in cursor.fetchall():
        yesterday, today = rates.get(currency, (0, 0))
        gain += position * (today - yesterday) // 10_000
    both = [(GAINS, gain), (RESERVE, -gain)]
    cursor.executemany("INSERT INTO revaluation VALUES (?, ?)", both)


def charge_fees(cursor: Cursor, ctx: StepContext) -> None:
    """Charge customers with many postings; the bank receives what they pay."""
    cursor.execute(
        "INSERT INTO fees SELECT account, currency, (? - count(*)) * ? FROM postings "
        "WHERE account >= ? GROUP BY account, currency HAVING count(*) > ?",
        (FREE_POSTINGS, FEE, FIRST_CUSTOMER, FREE_POSTINGS),
    )
    for currency, account in HOUSE.items():
        cursor.execute(
            "INSERT INTO fees SELECT ?, ?, coalesce(-sum(cents), 0) FROM fees "
            "WHERE currency = ?",
            (account, currency, currency),
        )


def reconcile(cursor: Cursor, ctx: StepContext) -> None:
    """Report what the postings come to: zero, in each currency."""
    cursor.execute(
        "INSERT INTO reconciliation SELECT currency, count(*), sum(cents) "
        "FROM postings GROUP BY currency"
    )


# The partitions


def ranges(ctx: PlannerContext) -> list[tuple[str, dict[str, int]]]:
    """Divide the accounts, which are numbered from 1, into ranges of equal size."""
    accounts = cast(int, ctx.state_of("receive")["accounts"])
    parts = cast(int, ctx.partitions)
    ends = [accounts * part // parts for part in range(parts + 1)]
    return [
        (f"{before + 1:05}-{last:05}", {"first": before + 1, "last": last})
        for before, last in pairwise(ends)
    ]


def range_of(ctx: StepContext) -> tuple[int, int]:
    """Give the first and the last account of a worker's partition."""
    assert ctx.partition is not None
    context = cast(dict[str, int], ctx.partition.context)
    return context["first"], context["last"]


def take_opening(folder: Path) -> Work:
    """Make the worker that takes the opening balances of its accounts."""

    def read_accounts(ctx: StepContext) -> None:
        first, last = range_of(ctx)
        opening: JsonObject = {}
        with (folder / ACCOUNTS).open(encoding="utf-8", newline="") as file:
            for record in csv.DictReader(file):
                account, text = record["account"], record["opening"]
                if first <= int(account) <= last:
                    opening[account] = cents_of(account, text)
        ctx.state["opening"] = opening

    return read_accounts


def cents_of(account: str, text: str) -> int:
    """Read an opening balance."""
    try:
        return int(text)
    except ValueError:
        reason = f"account {account}: the opening balance {text!r} is no number"
        raise ValueError(reason) from None


def book(cursor: Cursor, ctx: StepContext) -> None:
    """Book the balances of a range, in the transaction that completes its partition."""
    opening = cast(dict[str, int], ctx.state["opening"])
    cursor.execute(
        "SELECT account, sum(cents) FROM ("
        "SELECT account, cents FROM postings UNION ALL "
        "SELECT account, cents FROM fees UNION ALL "
        "SELECT account, cents FROM revaluation"
        ") WHERE account BETWEEN ? AND ? GROUP BY account",
        range_of(ctx),
    )
    moved = dict(cursor.fetchall())
    balances = [
        (int(account), cents + moved.get(int(account), 0))
        for account, cents in opening.items()
    ]
    cursor.executemany("INSERT INTO balances VALUES (?, ?)", balances)


def check_zero(cursor: Cursor, ctx: StepContext) -> None:
    """Fail unless every account has a balance and all of them sum up to zero."""
    cursor.execute("SELECT count(*), coalesce(sum(cents), 0) FROM balances")
    accounts, total = cursor.fetchone()
    expected = ctx.state_of("receive")["accounts"]
    if accounts != expected:
        raise ValueError(f"{accounts} of {expected} accounts have a balance")
    if total:
        raise ValueError(f"the balances sum up to {total} cents, not to zero")


def make_job(
    folder: Path,
    *,
    until_close: float = UNTIL_CLOSE_SECS,
    partitions: int = PARTITIONS,
    size: int = 500,
) -> Job:
    """Build the job on the files in *folder*.

    Args:
        folder: Where the files of the day are.
        until_close: Seconds for which the market is still open.
        partitions: Into how many ranges the accounts are divided.
        size: Postings per chunk.
    """
    load = Chunk(
        CsvReader(folder / POSTINGS),
        TableWriter("postings", {"account": int, "currency": str, "cents": int}),
        size=size,
    )
    kinds = {"CLOSED": "work", "HOLIDAY": COMPLETE, "CUT_OFF": FAIL}
    currencies = [
        Step("close", wait_for_close(until_close)),
        Step("revalue", take_rates(folder), write=revalue),
    ]
    fees = Step("fees", announce, write=charge_fees)
    report = Step("reconcile", announce, write=reconcile)
    worker = Step("book-range", take_opening(folder), write=book)
    return Job(
        "settlement",
        parameters=[Parameter("day", str)],
        steps=[
            Step("receive", receive(folder), write=begin_tables),
            Step("load", load),
            Decision("kind", kind_of_day, then=kinds),
            Split("work", [currencies, fees, report], max_parallel=3),
            PartitionedStep("book", worker, ranges, partitions, max_workers=2),
            Step("check", announce, write=check_zero),
        ],
    )
