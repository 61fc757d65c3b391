"""Load one file in a process of its own: ``python -m benchmarks.load_once CSV STORE``.

Prints the job's status, the rows in the table and the peak memory as one JSON object.
"""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import trio

from triolet.actors import LaunchReport, open_runtime

from . import flights
from .benchmark import url_of
from .peak import peak_mib


async def load(source: Path, store: Path) -> LaunchReport:
    """Launch the job."""
    async with open_runtime(url_of(store)) as runtime:
        return await runtime.launch(flights.load_job(source, flights.COLUMNS))


def main() -> None:
    """Load, look and print."""
    source, store = map(Path, sys.argv[1:])
    report = trio.run(load, source, store)
    peak = peak_mib()
    with closing(sqlite3.connect(store)) as db:
        (rows,) = db.execute(f"SELECT count(*) FROM {flights.TABLE}").fetchone()
    found = {"status": report.status, "rows": rows, "peak_mib": peak}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
