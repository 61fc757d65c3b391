"""What is asked of every peer, and how the answer is measured.

* ``sequential``: workflows of 10 no-op durable steps, one after another.
* ``concurrent``: 500 such workflows at once, from the first launch to the last end.
* ``restart``: a workflow of 1,000 steps died in its last one; from the launch of the
  next process' engine (or the claim) to the workflow's end, imports left out.
* ``csv``: rows of a file into a table in chunks of 1,000, rows and checkpoint in one
  transaction.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import quantiles
from typing import Protocol, TypeAlias

import psycopg

from ..peak import peak_mib
from ..rows import check

STEPS = 10
SEQUENTIAL = 200
CONCURRENT = 500
LONG = 1000
CHUNK = 1000
ROWS = 200_000
DIED = 17
"""Exit code of a process that was told to die in the last step."""

COLUMNS = "carrier text, flight integer, origin text"

Figures: TypeAlias = dict[str, float]


class Peer(Protocol):
    """One system, set up on an empty database, but not running."""

    def start(self) -> None:
        """Make ready for workflows; `restart` does so itself."""
        ...

    def sequential(self, workflows: int) -> Sequence[float]:
        """Run them one after another; give the seconds of each."""
        ...

    def concurrent(self, workflows: int) -> None:
        """Run them side by side."""
        ...

    def die(self, steps: int) -> None:
        """Run a workflow that calls `die` in its last step."""
        ...

    def restart(self, steps: int) -> float:
        """End that workflow; give the seconds it took."""
        ...

    def load(self, source: Path) -> None:
        """Copy the file into the table ``flights``."""
        ...


def die() -> None:
    """End this process as a crash does."""
    os._exit(DIED)


def no_op() -> None:
    """Do the work of a step."""


def chunks(source: Path) -> Iterator[list[list[str]]]:
    """Read a file, 1,000 rows at a time."""
    with source.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        while rows := list(islice(reader, CHUNK)):
            yield rows


def copy(cursor: psycopg.Cursor[tuple[object, ...]], rows: list[list[str]]) -> int:
    """Write rows in the fastest way that PostgreSQL has; give their number."""
    with cursor.copy("COPY flights (carrier, flight, origin) FROM STDIN") as copied:
        for row in rows:
            copied.write_row(row)
    return len(rows)


@contextmanager
def generated_file(rows: int) -> Iterator[Path]:
    """Write a CSV file of three columns for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flights.csv"
        with path.open("w", encoding="utf-8") as file:
            file.write("carrier,flight,origin\n")
            file.writelines(f"UA,{number % 9000},EWR\n" for number in range(rows))
        yield path


def _measured(steps: int, run: Callable[[], object]) -> Figures:
    cpu, began = time.process_time(), time.perf_counter()
    run()
    took = time.perf_counter() - began
    return {
        "seconds": took,
        "steps_per_s": steps / took,
        "cpu_us_per_step": (time.process_time() - cpu) / steps * 1e6,
    }


def _sequential(peer: Peer, url: str, rows: int) -> Figures:
    peer.start()
    peer.sequential(SEQUENTIAL // 10)
    times: list[float] = []
    figures = _measured(
        SEQUENTIAL * STEPS, lambda: times.extend(peer.sequential(SEQUENTIAL))
    )
    percentiles = quantiles(times, n=100)
    return figures | {
        "p50_ms_per_workflow": percentiles[49] * 1e3,
        "p99_ms_per_workflow": percentiles[98] * 1e3,
    }


def _concurrent(peer: Peer, url: str, rows: int) -> Figures:
    peer.start()
    peer.concurrent(CONCURRENT // 10)
    return _measured(CONCURRENT * STEPS, lambda: peer.concurrent(CONCURRENT))


def _die(peer: Peer, url: str, rows: int) -> Figures:
    peer.start()
    peer.die(LONG)
    return {}


def _restart(peer: Peer, url: str, rows: int) -> Figures:
    cpu = time.process_time()
    seconds = peer.restart(LONG)
    took = time.process_time() - cpu
    return {"seconds": seconds, "cpu_us_per_step": took / LONG * 1e6}


def _load(peer: Peer, url: str, rows: int) -> Figures:
    with psycopg.connect(url) as connection, generated_file(rows) as path:
        connection.execute(f"CREATE TABLE flights ({COLUMNS})")
        connection.commit()
        peer.start()
        figures = _measured(-(-rows // CHUNK), lambda: peer.load(path))
        found = connection.execute("SELECT count(*) FROM flights").fetchone()
        check(found, (rows,), "rows in the table")
    return figures | {"rows_per_s": rows / figures["seconds"]}


WORKLOADS: dict[str, Callable[[Peer, str, int], Figures]] = {
    "sequential": _sequential,
    "concurrent": _concurrent,
    "restart": _restart,
    "csv": _load,
}


def main(module: str, connect: Callable[[str], Peer]) -> None:
    """Run the workload that the command line names, and print its figures.

    Args:
        module: The peer's own name, to run it once more in a process that dies.
        connect: Sets a peer up on the database of a URL.
    """
    parser = argparse.ArgumentParser(prog=module)
    parser.add_argument("workload", choices=[*WORKLOADS, "die"])
    parser.add_argument("url", help="an empty PostgreSQL database")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the CSV file")
    args = parser.parse_args()
    if args.workload == "restart":
        died = subprocess.run([sys.executable, "-m", module, "die", args.url])
        check(died.returncode, DIED, "exit code of the process that dies")
    workload = WORKLOADS.get(args.workload, _die)
    figures = workload(connect(args.url), args.url, args.rows)
    figures["peak_mib"] = peak_mib()
    print(json.dumps({"workload": args.workload, **figures}), flush=True)
    os._exit(0)  # a peer's threads may outlive its work
