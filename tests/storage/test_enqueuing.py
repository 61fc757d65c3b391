"""A launch request in the caller's own transaction on a SQLite file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from triolet.actors import (
    DefinitionError,
    InvalidParameter,
    InvalidValue,
    Job,
    Parameter,
    SchemaMissing,
    Step,
    StepContext,
    enqueue,
)
from triolet.storage.stores import migrate_store


def nothing(ctx: StepContext) -> None:
    """Do no work."""


JOB = Job(
    "settle",
    [Step("work", nothing)],
    parameters=[
        Parameter("day", str),
        Parameter("anew", bool, default=False),
        Parameter("token", str, default="d", secret=True),
    ],
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    migrate_store(f"sqlite:///{path}")
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("CREATE TABLE orders (day TEXT)")
        yield connection


def days(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as look:
        found = look.execute("SELECT parameters FROM triolet_launch_request")
        return [text for (text,) in found.fetchall()]


def test_a_request_lives_and_dies_with_the_callers_transaction(
    path: Path, connection: sqlite3.Connection
) -> None:
    """C177."""
    connection.execute("INSERT INTO orders VALUES ('mon')")
    enqueue(connection, JOB, day="mon")
    connection.rollback()
    assert days(path) == []
    assert connection.execute("SELECT count(*) FROM orders").fetchone()[0] == 0

    assert enqueue(connection, JOB, {"day": "tue", "anew": True}, anew=True) == 1
    assert days(path) == []
    connection.commit()
    (kept,) = days(path)
    assert '"tue"' in kept
    assert "token" not in kept


def test_an_autocommitting_connection_will_do(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        enqueue(connection, JOB, day="mon")
    assert len(days(path)) == 1


def test_bad_input_is_refused_and_writes_nothing(
    path: Path, connection: sqlite3.Connection, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter, match="'token' is secret"):
        enqueue(connection, JOB, day="mon", token="hush")
    with pytest.raises(InvalidParameter, match="'day' is given twice"):
        enqueue(connection, JOB, {"day": "mon"}, day="mon")
    with pytest.raises(InvalidParameter, match="'day' is required"):
        enqueue(connection, JOB)
    with pytest.raises(DefinitionError):
        enqueue(connection, Job("empty", []))
    with pytest.raises(InvalidValue, match="anew must be of type bool"):
        enqueue(connection, JOB, day="mon", anew=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="the connection must be a sqlite3"):
        enqueue(object(), JOB, day="mon")  # type: ignore[arg-type]  # on purpose
    with (
        closing(sqlite3.connect(tmp_path / "other.db")) as other,
        pytest.raises(SchemaMissing),
    ):
        enqueue(other, JOB, day="mon")
    connection.commit()
    assert days(path) == []
