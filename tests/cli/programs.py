"""Small job modules, and the ways to run the command on them."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

STORE = "triolet.db"
PATIENCE_SECS = 60.0
_HEAD = """
import os, sys, time
from pathlib import Path
import trio
from triolet.actors import *
from triolet.actors import Parameter
"""

ROUTES = (
    _HEAD
    + """
async def first(ctx): pass
def choose(ctx): return "GO"
def last(ctx):
    if not Path("mended").exists():
        raise RuntimeError("not mended")
job = Job("routes", [Step("first", first), Decision("choose", choose, then={"GO": "last"}),
                     Step("last", last)])
"""
)
"""Fails in its last step until the file ``mended`` is there."""

PLAIN = (
    _HEAD
    + """
async def work(ctx):
    with open("runs", "a") as file:
        file.write("x")
job = Job("plain", [Step("work", work)])
"""
)
"""Completes and leaves an ``x`` in the file ``runs``."""

TYPED = (
    _HEAD
    + """
def work(ctx):
    raise RuntimeError("cannot log in with " + ctx.parameters["key"])
job = Job("typed", [Step("work", work)], parameters=[
    Parameter("day", str), Parameter("count", int, default=1),
    Parameter("note", str, default="", identifying=False),
    Parameter("key", str, default="none", secret=True)])
"""
)
"""Declares parameters and fails with a secret one in its message."""

FAULTY = (
    _HEAD
    + """
async def work(ctx): pass
job = Job("faulty", [
    Step("a", work, then={"*": "nowhere"}), Step("a", work),
    Step("b", work, start_limit=0), Decision("d", work, then={})])
"""
)
"""Has several mistakes."""

CSV = (
    _HEAD
    + """
job = Job("csv", [Step("load", Chunk(
    CsvReader("in.csv", columns=["id", "name"]),
    TableWriter("people", {"id": int, "name": str}), size=2))])
"""
)
"""Loads ``in.csv``, two records at a time."""

SLOW = (
    _HEAD
    + """
def slowly(row):
    time.sleep(0.005)
    return row
job = Job("slow", [Step("load", Chunk(
    CsvReader("in.csv"), TableWriter("people", {"id": int, "name": str}),
    processor=slowly, size=10))])
"""
)
"""Loads ``in.csv`` in 5 ms for each record, ten at a time."""

WAITS = (
    _HEAD
    + """
async def work(ctx):
    with open("began", "a") as file:
        file.write("x")
    if not Path("go").exists():
        await trio.sleep_forever()
job = Job("waits", [Step("work", work)])
"""
)
"""Says that it began, and waits for ever unless the file ``go`` is there."""

BLOCKS = (
    _HEAD
    + """
def work(ctx):
    with open("began", "a") as file:
        file.write("x")
    while not Path("go").exists():
        time.sleep(0.01)
job = Job("blocks", [Step("work", work)])
"""
)
"""Like `WAITS`, but in a thread that nothing can cancel."""

ENDS = (
    _HEAD
    + """
def raises(ctx): raise ValueError("no such ledger")
def returns(ctx): return "DONE"
def leaves(ctx): sys.exit(3)
def unsure(ctx): raise OutcomeUnknown("the bank did not answer")
def gives(ctx): return 7
raising = Job("raising", [Step("work", raises)])
returning = Job("returning", [Step("work", returns)])
leaving = Job("leaving", [Step("work", leaves)])
unknowing = Job("unknowing", [Step("work", unsure)])
deciding = Job("deciding", [Decision("choose", gives, then={"*": COMPLETE})])
def make(): return raising
number = 7
def makes_number(): return 7
def breaks(): raise KeyError("nothing")
async def waits(): return raising
"""
)
"""Several jobs that end in all the wrong ways."""

MISTAKES = (
    _HEAD
    + """
class Odd(BaseException): pass
async def odd(ctx): raise Odd("strange")
def logs(ctx): ctx.log.info("%d items", "x")
def counts(ctx): ctx.progress("x")
def ends(ctx): return Exit("ODD")
bare = Job("bare", [Step("work", odd)])
logging = Job("logging", [Step("work", logs)])
counting = Job("counting", [Step("work", counts)])
"""
)
"""Makes mistakes that are not those of a job."""

PARTS = (
    _HEAD
    + """
def plan(ctx): return [(f"account {at:04}", {}) for at in range(ctx.partitions)]
async def book(ctx):
    if ctx.partition.ordinal == 3 and not Path("mended").exists():
        raise ValueError("it is broken")
def parts(count):
    return Job("parts", [
        Step("first", lambda ctx: None),
        Split("both", [Step("fx", lambda ctx: None), Step("fees", lambda ctx: None)]),
        PartitionedStep("book", book, plan, count, on_failure="drain_siblings"),
    ])
few = parts(4)
many = parts(1024)
"""
)
"""Books accounts; the third one is broken until the file ``mended`` is there."""

PROGRAMS = {
    "routes": ROUTES,
    "plain": PLAIN,
    "typed": TYPED,
    "faulty": FAULTY,
    "csv": CSV,
    "slow": SLOW,
    "waits": WAITS,
    "blocks": BLOCKS,
    "ends": ENDS,
    "mistakes": MISTAKES,
    "parts": PARTS,
}


def put(folder: Path, name: str) -> str:
    """Write a program into *folder* and give its target without a job name."""
    (folder / f"{name}_jobs.py").write_text(PROGRAMS[name], encoding="utf-8")
    return f"{name}_jobs.py"


def put_people(folder: Path, count: int) -> None:
    """Write the input of `CSV` and `SLOW`."""
    lines = ["id,name", *(f"{number},name {number}" for number in range(count))]
    (folder / "in.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "triolet.actors.cli", *words]


def environment(**extra: str) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if key != "TRIOLET_STORE"}
    return {**clean, **extra}


def triolet(*words: str, cwd: Path, **extra: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own, to its end."""
    return subprocess.run(
        command(*words),
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECS,
        check=False,
    )


def spawn(*words: str, cwd: Path, **extra: str) -> "subprocess.Popen[str]":
    """Start the command in a process of its own."""
    return subprocess.Popen(
        command(*words),
        cwd=cwd,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(condition: Callable[[], bool]) -> None:
    """Wait until another process has done something."""
    deadline = time.monotonic() + PATIENCE_SECS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def ended(child: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Wait for the end of a child: exit code, output, errors."""
    try:
        out, err = child.communicate(timeout=PATIENCE_SECS)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.communicate()
        raise
    return child.returncode, out, err


def rows(folder: Path, query: str, store: str = STORE) -> list[tuple[object, ...]]:
    """Look into a store from outside."""
    look = sqlite3.connect(folder / store)
    try:
        return look.execute(query).fetchall()
    finally:
        look.close()


def statuses(folder: Path) -> list[object]:
    """Give the statuses of all executions, oldest first."""
    found = rows(folder, "SELECT status FROM triolet_execution ORDER BY id")
    return [status for (status,) in found]
