"""Install the peers below ``.bench/``, run every workload, print one table.

``python -m benchmarks.peers URL``: the URL names a server and a database on it from
which new ones may be created; each workload gets one of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from .workload import ROWS, WORKLOADS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = ("dbos", "absurd")
OURS = "ours"
FIGURES = (
    "steps_per_s",
    "rows_per_s",
    "seconds",
    "p50_ms_per_workflow",
    "p99_ms_per_workflow",
    "cpu_us_per_step",
    "peak_mib",
)


def installed(peer: str) -> Path:
    """Give the folder of a peer's pinned packages, and fill it unless it is current."""
    wanted = HERE / f"{peer}.txt"
    folder = ROOT / ".bench" / peer
    mark = folder / wanted.name
    if not mark.exists() or mark.read_bytes() != wanted.read_bytes():
        print(f"Installing {peer} ...", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
        subprocess.run([*pip, "--target", folder, "-r", wanted], check=True)
        mark.write_bytes(wanted.read_bytes())
    return folder


@contextmanager
def new_database(url: str) -> Iterator[str]:
    """Create a database on the server, and drop it afterwards."""
    name = f"peer_{uuid.uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def measured(peer: str, workload: str, url: str, rows: int) -> dict[str, float]:
    """Run one workload in a process of its own, on a database of its own."""
    print(f"{peer} {workload} ...", file=sys.stderr, flush=True)
    with new_database(url) as place:
        module = f"benchmarks.peers.{peer}"
        done = subprocess.run(
            [sys.executable, "-m", module, workload, place, "--rows", str(rows)],
            cwd=ROOT,
            env=_environment(peer),
            stdout=subprocess.PIPE,
            check=True,
        )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _environment(peer: str) -> dict[str, str]:
    if peer == OURS:
        return dict(os.environ)
    return os.environ | {"PYTHONPATH": str(installed(peer))}


def line(name: str, figures: dict[str, float]) -> str:
    """Align one line of the table."""
    values = (figures.get(figure) for figure in FIGURES)
    cells = ("" if value is None else f"{value:,.4g}" for value in values)
    return name.ljust(20) + "".join(
        cell.rjust(len(figure) + 2) for cell, figure in zip(cells, FIGURES, strict=True)
    )


def main() -> None:
    """Measure the peers in turns, so that a busy machine harms both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("url", help="a PostgreSQL database of a superuser")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the CSV file")
    args = parser.parse_args()
    print(" " * 20 + "".join(f"  {figure}" for figure in FIGURES))
    for workload in WORKLOADS:
        for peer in (*PEERS, OURS):
            figures = measured(peer, workload, args.url, args.rows)
            print(line(f"{workload} {peer}", figures), flush=True)


if __name__ == "__main__":
    main()
