"""Measure, print one table, write ``benchmarks/results.json``.

``python -m benchmarks [PREFIX]`` measures the rows whose names begin with PREFIX. The
exit code is 1 when a workload did not do its work, or, with ``--strict``, when a
target is missed.
"""

import argparse
import json
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trio

from . import (
    cli_start,
    csv_load,
    memory,
    partitions,
    postgres,
    postgres_control,
    sqlite,
)
from .benchmark import Benchmark, DataMissing, Workspace
from .rows import Row, WrongResult, table

ALL: tuple[Benchmark, ...] = (
    *memory.BENCHMARKS,
    *sqlite.BENCHMARKS,
    *csv_load.BENCHMARKS,
    *postgres.BENCHMARKS,
    *postgres_control.BENCHMARKS,
    *partitions.BENCHMARKS,
    *cli_start.BENCHMARKS,
)

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
BUILD = HERE.parent / "build" / "bench"


def selected(prefix: str, every: Sequence[Benchmark] = ALL) -> tuple[Benchmark, ...]:
    """Give the benchmarks whose names begin with *prefix*."""
    return tuple(one for one in every if one.name.startswith(prefix))


def machine() -> str:
    """Say on what the figures were measured, and how fast and busy it was before."""
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores (load {load:.1f}), Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, {time.strftime('%Y-%m-%d')}; "
        f"a trio checkpoint takes {trio.run(memory.checkpoint_cpu):.1f} us of CPU"
    )


@contextmanager
def workspace(parent: Path) -> Iterator[Workspace]:
    """Make a folder below *parent* for the time of the measurements."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(dir=parent)
    os.chmod(folder, 0o755)  # a server that root starts runs as another user
    try:
        yield Workspace(Path(folder))
    finally:
        shutil.rmtree(folder)


def measured(benchmarks: Sequence[Benchmark], place: Workspace) -> Iterator[Row]:
    """Measure one after another; what goes wrong is told and left out."""
    for one in benchmarks:
        print(f"{one.name} ...", file=sys.stderr, flush=True)
        try:
            yield one.run(place)
        except (WrongResult, DataMissing) as exc:
            print(f"{one.name} has no figure: {exc}", file=sys.stderr)
        except Exception:
            print(f"{one.name} has no figure:", file=sys.stderr)
            traceback.print_exc()


def main(
    arguments: Sequence[str] | None = None,
    *,
    every: Sequence[Benchmark] = ALL,
    results: Path = RESULTS,
    build: Path = BUILD,
) -> int:
    """Run the command line; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("prefix", nargs="?", default="", help="which rows; default all")
    parser.add_argument(
        "--strict", action="store_true", help="fail when a target is missed"
    )
    options = parser.parse_args(arguments)
    chosen = selected(options.prefix, every)
    if not chosen:
        names = ", ".join(one.name for one in every)
        parser.error(f"no row begins with {options.prefix!r}; there are {names}")
    print(machine(), flush=True)
    with workspace(build) as place:
        rows = list(measured(chosen, place))
    results.write_text(json.dumps([row.as_json() for row in rows], indent=2) + "\n")
    met = sum(row.met for row in rows)
    print(table(rows))
    print(f"{met} of {len(chosen)} targets met")
    missed = options.strict and met < len(chosen)
    return int(missed or len(rows) < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
