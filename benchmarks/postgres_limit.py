"""What PostgreSQL and psycopg do at best for the rows that Triolet writes.

`bare_steps` and `bare_copy` are limits to measure in turns with Triolet. By themselves:
``python -m benchmarks.postgres_limit [URL]`` prints them, on an empty database of the
URL or on a server of its own.

A step is one UPDATE that ends its row under the fence of its execution, one INSERT of
the next step's row, and, once per transaction, one UPDATE of the marker row: prepared
statements in libpq's pipeline, BEGIN and COMMIT among them, one Sync and one wait for
each transaction. This is below psycopg's cursors, in the same synchronous thread.
"""

import csv
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psycopg
from attrs import define
from psycopg import pq

from tests.postgres.server import Server

from . import flights
from .flights import CHUNK
from .rounds import ROUNDS
from .rows import WrongResult, check

TRANSACTIONS = 2_000
GROUP = 100
"""Steps of one transaction when many jobs are in flight."""
ROWS = 200_000

_COUNTS = ("read", "process", "write", "filter", "commit", "rollback")
_COUNT_COLUMNS = ", ".join(
    f"{name}_count bigint NOT NULL DEFAULT 0" for name in _COUNTS
)
_SET_COUNTS = ", ".join(
    f"{name}_count = ${number}" for number, name in enumerate(_COUNTS, start=5)
)
_ACTIVE = "status IN ('STARTING', 'STARTED', 'STOPPING')"

SCHEMA = f"""
CREATE TABLE limit_execution (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id bigint NOT NULL,
    status text NOT NULL
);
CREATE TABLE limit_step (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    execution_id bigint NOT NULL REFERENCES limit_execution (id),
    node text NOT NULL,
    visit integer NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    exit_code text NOT NULL DEFAULT 'UNKNOWN',
    {_COUNT_COLUMNS},
    checkpoint text,
    context text,
    failure text,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    ended_at timestamptz,
    version bigint NOT NULL CHECK (version >= 0),
    decision_sequence integer,
    decision_target text,
    UNIQUE (execution_id, node, visit)
);
CREATE TABLE limit_marker (
    writer uuid PRIMARY KEY,
    batch_id uuid NOT NULL,
    committed_at timestamptz NOT NULL
);
INSERT INTO limit_marker VALUES (gen_random_uuid(), gen_random_uuid(), now());
"""

STATEMENTS = {
    "begin": "BEGIN",
    "mark": "UPDATE limit_marker SET batch_id = gen_random_uuid(), "
    "committed_at = clock_timestamp()",
    "finish": f"""
UPDATE limit_step SET status = 'COMPLETED', exit_code = $4, {_SET_COUNTS},
    ended_at = clock_timestamp(), version = version + 2,
    decision_sequence = $11, decision_target = $12
WHERE id = $1 AND execution_id = $2 AND version = 1 AND {_ACTIVE} AND EXISTS (
    SELECT 1 FROM limit_execution WHERE id = $2 AND owner_id = $3 AND {_ACTIVE})
""",
    "start": """
INSERT INTO limit_step (execution_id, node, visit, name, status, created_at, started_at,
    version)
VALUES ($1, $2, $3, $4, 'STARTED', clock_timestamp(), clock_timestamp(), 1)
RETURNING id
""",
    "commit": "COMMIT",
}

_OK = {pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK}
_OWNER = b"1"
_ENDED = [b"COMPLETED", b"0", b"0", b"0", b"0", b"1", b"0"]


@define
class _Job:
    """An execution and its current step."""

    id: bytes
    step: bytes = b""
    visit: int = 0


@define
class _Wire:
    """One connection in libpq's pipeline mode."""

    link: pq.abc.PGconn
    sent: int = 0

    def send(self, name: str, values: Sequence[bytes] = ()) -> None:
        self.link.send_query_prepared(name.encode(), values)
        self.sent += 1

    def sync(self) -> list[pq.abc.PGresult]:
        """Wait for the answers to everything sent, in order."""
        self.link.pipeline_sync()
        results = []
        for _ in range(self.sent):
            result = self.link.get_result()
            if result is None or result.status not in _OK:
                raise WrongResult(f"statement failed: {self.link.error_message!r}")
            results.append(result)
            self.link.get_result()  # the end of one statement's results
        self.link.get_result()  # the answer to the Sync
        self.sent = 0
        return results


def _start(wire: _Wire, job: _Job) -> None:
    job.visit += 1
    wire.send("start", [job.id, b"step", b"%d" % job.visit, b"step"])


def _transaction(wire: _Wire, jobs: Sequence[_Job]) -> None:
    """End the current step of every job and start its next one."""
    wire.send("begin")
    wire.send("mark")
    for job in jobs:
        decision = [b"%d" % job.visit, b"step"]
        wire.send("finish", [job.step, job.id, _OWNER, *_ENDED, *decision])
        _start(wire, job)
    wire.send("commit")
    results = wire.sync()
    for job, (ended, started) in zip(jobs, _pairs(results[2:-1]), strict=True):
        check(ended.command_tuples, 1, "steps ended")
        job.step = started.get_value(0, 0) or b""


def _pairs(
    results: Sequence[pq.abc.PGresult],
) -> Iterator[tuple[pq.abc.PGresult, pq.abc.PGresult]]:
    return zip(results[::2], results[1::2], strict=True)


def bare_steps(url: str, transactions: int = TRANSACTIONS, group: int = 1) -> float:
    """Give steps per second on one connection.

    Args:
        url: A database; its tables are created anew.
        transactions: How many are committed.
        group: How many jobs advance by one step in each of them.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS limit_step, limit_execution CASCADE")
        connection.execute("DROP TABLE IF EXISTS limit_marker")
        connection.execute(SCHEMA)
        rows = connection.execute(
            "INSERT INTO limit_execution (owner_id, status) "
            "SELECT 1, 'STARTED' FROM generate_series(1, %s) RETURNING id",
            [group],
        ).fetchall()
        jobs = [_Job(b"%d" % number) for (number,) in rows]
        took = _timed_steps(connection.pgconn, jobs, transactions)
        found = connection.execute(
            "SELECT count(*) FROM limit_step WHERE status = 'COMPLETED'"
        ).fetchone()
    check(found, (transactions * group,), "completed steps")
    return transactions * group / took


def _timed_steps(link: pq.abc.PGconn, jobs: Sequence[_Job], transactions: int) -> float:
    for name, text in STATEMENTS.items():
        prepared = link.prepare(name.encode(), text.encode())
        check(prepared.status, pq.ExecStatus.COMMAND_OK, f"preparing {name}")
    link.enter_pipeline_mode()
    wire = _Wire(link)
    for job in jobs:
        _start(wire, job)
    for job, started in zip(jobs, wire.sync(), strict=True):
        job.step = started.get_value(0, 0) or b""
    began = time.perf_counter()
    for _ in range(transactions):
        _transaction(wire, jobs)
    took = time.perf_counter() - began
    link.exit_pipeline_mode()
    return took


def bare_copy(url: str, source: Path, columns: dict[str, type]) -> float:
    """Give rows per second of csv, COPY and a commit for each chunk.

    Args:
        url: A database; its table is created anew.
        source: A CSV file with a header.
        columns: Its columns, ``int`` or ``str`` each.
    """
    kinds = {int: "bigint", str: "text"}
    body = ", ".join(f'"{name}" {kinds[kind]}' for name, kind in columns.items())
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {flights.TABLE}")
        connection.execute(f"CREATE TABLE {flights.TABLE} ({body})")
        connection.commit()
        began = time.perf_counter()
        rows = _copied(connection, source)
        took = time.perf_counter() - began
        found = connection.execute(f"SELECT count(*) FROM {flights.TABLE}").fetchone()
    check(found, (rows,), "rows in the table")
    return rows / took


def _copied(connection: psycopg.Connection, source: Path) -> int:
    written = 0
    with source.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        next(reader)
        while rows := list(islice(reader, CHUNK)):
            with connection.cursor().copy(f"COPY {flights.TABLE} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            connection.commit()
            written += len(rows)
    return written


@contextmanager
def _place(arguments: Sequence[str]) -> Iterator[str]:
    if arguments:
        yield arguments[0]
        return
    with Server() as server:
        yield server.url()


def main() -> None:
    """Measure the limits in turns and print the medians."""
    with _place(sys.argv[1:]) as url, TemporaryDirectory() as folder:
        wide, narrow = Path(folder) / "wide.csv", Path(folder) / "narrow.csv"
        flights.write_csv(wide, flights.generated_lines(ROWS), ROWS)
        flights.write_narrow(narrow, wide)
        limits: dict[str, Callable[[], float]] = {
            "steps/s, one at a time": partial(bare_steps, url),
            f"steps/s, groups of {GROUP}": partial(
                bare_steps, url, TRANSACTIONS // 10, GROUP
            ),
            "rows/s, 3 columns": partial(bare_copy, url, narrow, flights.NARROW),
            "rows/s, 19 columns": partial(bare_copy, url, wide, flights.COLUMNS),
        }
        rounds = [[measure() for measure in limits.values()] for _ in range(ROUNDS)]
    for name, values in zip(limits, zip(*rounds, strict=True), strict=True):
        low, middle, high = min(values), median(values), max(values)
        print(f"{name:26}{middle:12,.0f}   {low:,.0f} to {high:,.0f}")


if __name__ == "__main__":
    main()
