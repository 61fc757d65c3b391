"""`QueryReader`: every row once, whatever happens around it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from triolet.actors import (
    BatchStatus,
    Chunk,
    ChunkKey,
    Cursor,
    Delivery,
    InvalidValue,
    Job,
    QueryChanged,
    QueryKeyInvalid,
    QueryReader,
    RuntimeOptions,
    Step,
    open_runtime,
)

Connect = Callable[[], Any]
ROWS = 100


@pytest.fixture(params=["sqlite", "postgres"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Give connections to a database with a table of a hundred trades."""
    make: Connect
    if request.param == "sqlite":
        path = tmp_path / "trades.db"

        def make() -> sqlite3.Connection:
            return sqlite3.connect(path, check_same_thread=False)
    else:
        url = str(request.getfixturevalue("postgres_url"))

        def make() -> psycopg.Connection:
            return psycopg.connect(url)

    execute(make, "CREATE TABLE trade (id bigint, day text, done integer)")
    for number in range(ROWS):
        values = f"({number}, 'day {number % 10}', 0)"
        execute(make, f"INSERT INTO trade VALUES {values}")
    return make


def execute(connect: Connect, statement: str) -> list[Any]:
    connection = connect()
    cursor = connection.cursor()
    cursor.execute(statement)
    rows = cursor.fetchall() if cursor.description else []
    connection.commit()
    connection.close()
    return list(rows)


def read_all(reader: QueryReader, page: int, state: Any = None) -> list[Any]:
    reader.open(state)
    rows: list[Any] = []
    try:
        while found := reader.read(page):
            rows += found
    finally:
        reader.close()
    return rows


@pytest.mark.parametrize("page", [1, 7, 100, 1000])
def test_every_row_comes_once_in_the_order_of_the_key(
    connect: Connect, page: int
) -> None:
    rows = read_all(QueryReader(connect, "trade"), page)

    assert [row[0] for row in rows] == list(range(ROWS))


@pytest.mark.parametrize("page", [7])
def test_a_key_of_several_columns_goes_over_a_query(
    connect: Connect, page: int
) -> None:
    """C058: ten values of the first column, told apart by the second."""
    query = "SELECT day, id FROM trade WHERE id >= 20;"
    rows = read_all(QueryReader(connect, query, key=("day", "id")), page)

    assert rows == sorted(rows)
    assert len(rows) == ROWS - 20


@pytest.mark.parametrize("page", [1, 7, 99])
def test_a_key_that_is_not_unique_is_refused(connect: Connect, page: int) -> None:
    """C058."""
    with pytest.raises(QueryKeyInvalid, match="two rows have the same"):
        read_all(QueryReader(connect, "trade", key=("day",)), page)


def test_a_restart_goes_on_behind_the_last_key(connect: Connect) -> None:
    reader = QueryReader(connect, "trade")
    reader.open(None)
    first = reader.read(30)
    state = reader.state()
    reader.close()
    execute(connect, "DELETE FROM trade WHERE id < 10")
    execute(connect, "INSERT INTO trade VALUES (-1, 'x', 0), (1000, 'x', 0)")

    rest = read_all(QueryReader(connect, "trade"), 30, state)

    assert [row[0] for row in first] == list(range(30))
    assert [row[0] for row in rest] == [*range(30, ROWS), 1000]


def test_no_transaction_is_left_open_between_reads(connect: Connect) -> None:
    reader = QueryReader(connect, "trade")
    reader.open(None)
    reader.read(5)
    execute(connect, "ALTER TABLE trade ADD COLUMN more text")
    assert len(reader.read(5)[0]) == 4
    reader.close()


class Marks:
    """Marks the rows that it gets, which then leave the query's result."""

    delivery = Delivery.AT_LEAST_ONCE

    def __init__(self, connect: Connect, seen: list[int], fail_after: int) -> None:
        self.connect, self.seen, self.left = connect, seen, fail_after

    def open(self, cursor: Cursor | None) -> None:
        pass

    def write(
        self, cursor: Cursor | None, rows: list[Any], chunk_key: ChunkKey
    ) -> None:
        if self.left == 0:
            raise ValueError("the middle")
        self.left -= 1
        ids = [row[0] for row in rows]
        self.seen += ids
        listed = ", ".join(map(str, ids))
        execute(self.connect, f"UPDATE trade SET done = 1 WHERE id IN ({listed})")

    def close(self) -> None:
        pass


async def test_rows_that_the_step_changes_do_not_move_the_window(
    connect: Connect,
) -> None:
    """C059, with a failure in the middle."""
    seen: list[int] = []

    def job(fail_after: int) -> Job:
        reader = QueryReader(connect, "SELECT * FROM trade WHERE done = 0")
        writer = Marks(connect, seen, fail_after)
        return Job("marks", [Step("mark", Chunk(reader, writer, size=10))])

    async with open_runtime("memory:", RuntimeOptions(inline=True)) as runtime:
        first = await runtime.launch(job(fail_after=4))
        second = await runtime.launch(job(fail_after=-1))

    assert (first.status, second.status) == (
        BatchStatus.FAILED,
        BatchStatus.COMPLETED,
    )
    assert seen == list(range(ROWS))
    assert execute(connect, "SELECT count(*) FROM trade WHERE done = 0") == [(0,)]


def test_what_cannot_be_a_key_is_said(connect: Connect) -> None:
    with pytest.raises(QueryKeyInvalid, match="is NULL, or neither a number"):
        read_all(QueryReader(connect, "SELECT id, NULL AS n FROM trade", key=["n"]), 5)
    wrong = QueryReader(connect, "SELECT id FROM trade", key=["id", "b"])
    with pytest.raises((QueryKeyInvalid, psycopg.errors.UndefinedColumn), match="b"):
        read_all(wrong, 5)


def test_a_checkpoint_of_another_key_is_refused(connect: Connect) -> None:
    with pytest.raises(QueryChanged):
        QueryReader(connect, "trade", key=("day", "id")).open({"after": [4]})


@pytest.mark.parametrize(("source", "key"), [(" ", ["id"]), ("t", []), ("t", "id")])
def test_an_empty_source_or_key_is_refused(source: str, key: Any) -> None:
    with pytest.raises(InvalidValue):
        QueryReader(lambda: sqlite3.connect(":memory:"), source, key=key)
