"""DBOS Transact.

What was chosen, as the fastest that its documentation offers for each workload:

* Synchronous workflows and steps with ``@DBOS.workflow`` and ``@DBOS.step``: called
  directly one after another, started by ``DBOS.start_workflow`` side by side. Its
  handles wait for the thread and do not poll; a queue would be claimed by polling.
* The pool of connections as large as the pool of threads.
* The CSV file by a `SQLAlchemyDatasource`, whose transactions hold the rows and the
  checkpoint; READ COMMITTED instead of SERIALIZABLE, and COPY by the driver's own
  connection below the session.
* Logs of errors only, no telemetry.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from dbos import DBOS, SetWorkflowID, SQLAlchemyDatasource

from . import workload

LONG_ID = "long"
POLL_SECS = 0.002
THREADS = 20
dying = False
data: SQLAlchemyDatasource


@DBOS.step()
def step() -> None:
    workload.no_op()


@DBOS.step()
def last_step() -> None:
    if dying:
        workload.die()


@DBOS.workflow()
def short_workflow() -> None:
    for _ in range(workload.STEPS):
        step()


@DBOS.workflow()
def long_workflow(steps: int) -> None:
    for _ in range(steps - 1):
        step()
    last_step()


@DBOS.workflow()
def load_file(source: Path) -> int:
    return sum(
        data.run_tx_step({"isolation_level": "READ COMMITTED"}, write, rows)
        for rows in workload.chunks(source)
    )


def write(rows: list[list[str]]) -> int:
    pooled = data.sql_session().connection().connection
    driver: psycopg.Connection[tuple[object, ...]] = pooled.driver_connection
    return workload.copy(driver.cursor(), rows)


class Peer:
    """DBOS with its system tables in the database that is loaded."""

    def __init__(self, url: str) -> None:
        global data
        data = SQLAlchemyDatasource.create(url)
        DBOS(
            config={
                "name": "peer",
                "system_database_url": url,
                "application_version": "1",
                "executor_id": "peer",
                "log_level": "ERROR",
                "sys_db_pool_size": THREADS,
                "max_executor_threads": THREADS,
            }
        )

    def start(self) -> None:
        DBOS.launch()

    def sequential(self, workflows: int) -> Sequence[float]:
        times = []
        for _ in range(workflows):
            began = time.perf_counter()
            short_workflow()
            times.append(time.perf_counter() - began)
        return times

    def concurrent(self, workflows: int) -> None:
        handles = [DBOS.start_workflow(short_workflow) for _ in range(workflows)]
        for handle in handles:
            handle.get_result()

    def die(self, steps: int) -> None:
        global dying
        dying = True
        with SetWorkflowID(LONG_ID):
            long_workflow(steps)

    def restart(self, steps: int) -> float:
        began = time.perf_counter()
        DBOS.launch()
        DBOS.retrieve_workflow(LONG_ID).get_result(polling_interval_sec=POLL_SECS)
        return time.perf_counter() - began

    def load(self, source: Path) -> None:
        load_file(source)


if __name__ == "__main__":
    workload.main("benchmarks.peers.dbos", Peer)
