"""The contract of enlisted writes: user rows and command are one atom.

A test reads the user's rows back with a write of its own, as any user could.
"""

import sqlite3

import psycopg
import pytest

from tests.storage.client import Client, job_end, next_step, step_end
from triolet.storage.commands import (
    Advanced,
    ChunkCommitted,
    CommitChunk,
    Cursor,
    Enlist,
    Enlisted,
    EnlistedWrite,
    LeaseLost,
    Opened,
    StaleVersion,
    WriteFailed,
)
from triolet.storage.model.errors import TrioletError
from triolet.storage.model.execution import Counts
from triolet.storage.model.status import BatchStatus, IllegalTransition

CHECKPOINT = '{"position":6}'


@pytest.fixture
def opened(client: Client) -> Opened:
    """An execution with an open step 1 and an empty table of the user's."""
    opened = client.open(first=next_step())
    client.ask(enlisting(opened, create))
    return opened


def create(cursor: Cursor) -> None:
    cursor.execute("CREATE TABLE trade (id INTEGER NOT NULL)")


def insert(cursor: Cursor) -> None:
    cursor.execute("INSERT INTO trade VALUES (1), (2)")


def failing_with(exc: BaseException) -> EnlistedWrite:
    def write(cursor: Cursor) -> None:
        insert(cursor)
        raise exc

    return write


def never(cursor: Cursor) -> None:
    raise AssertionError("user code ran in a refused command")


def enlisting(opened: Opened, write: EnlistedWrite) -> Enlist:
    return Enlist(opened.execution_id, 1, write)


def chunk(opened: Opened, write: EnlistedWrite, version: int = 1) -> CommitChunk:
    return CommitChunk(
        execution_id=opened.execution_id,
        owner_id=1,
        step_id=1,
        version=version,
        counts=Counts(read=2, written=2, committed=1),
        checkpoint=CHECKPOINT,
        write=write,
    )


def trades(client: Client, opened: Opened) -> list[int]:
    found: list[int] = []

    def read(cursor: Cursor) -> None:
        cursor.execute("SELECT id FROM trade ORDER BY id")
        found.extend(row[0] for row in cursor.fetchall())

    client.ask(enlisting(opened, read))
    return found


def test_rows_and_checkpoint_are_committed_together(
    client: Client, opened: Opened
) -> None:
    reply = client.ask(chunk(opened, insert))

    assert reply == ChunkCommitted(client.clock.now)
    assert client.step(1).checkpoint == CHECKPOINT
    assert trades(client, opened) == [1, 2]


def test_rows_and_result_are_committed_together(client: Client, opened: Opened) -> None:
    reply = client.advance(
        opened, finish=step_end(1), start=next_step("report"), write=insert
    )

    assert isinstance(reply, Advanced)
    assert client.step(1).status is BatchStatus.COMPLETED
    assert trades(client, opened) == [1, 2]


def test_rows_may_be_committed_alone(client: Client, opened: Opened) -> None:
    assert client.ask(enlisting(opened, insert)) == Enlisted()
    assert trades(client, opened) == [1, 2]


class Bare(BaseException):
    """An exception that is no Exception."""


@pytest.mark.parametrize("exc", [ValueError("bad row"), SystemExit(2), Bare("odd")])
def test_a_write_that_raises_takes_rows_and_checkpoint_back(
    client: Client, opened: Opened, exc: BaseException
) -> None:
    refusal = client.refusal(chunk(opened, failing_with(exc)))

    assert refusal == WriteFailed(exc)
    assert trades(client, opened) == []


def test_a_write_that_raises_takes_the_whole_advance_back(
    client: Client, opened: Opened
) -> None:
    exc = ValueError("bad row")
    advancing = client.advancing(
        opened, finish=step_end(1), end=job_end(), write=failing_with(exc)
    )

    assert client.refusal(advancing) == WriteFailed(exc)
    assert trades(client, opened) == []


def test_a_statement_that_the_database_refuses_fails_the_write(
    client: Client, opened: Opened
) -> None:
    def write(cursor: Cursor) -> None:
        cursor.execute("INSERT INTO trade VALUES (NULL)")

    refusal = client.refusal(chunk(opened, write))

    assert isinstance(refusal, WriteFailed)
    assert isinstance(refusal.cause, sqlite3.IntegrityError | psycopg.IntegrityError)


def test_one_of_our_own_errors_fails_the_write_too(
    client: Client, opened: Opened
) -> None:
    exc = TrioletError("from user code")

    assert client.refusal(chunk(opened, failing_with(exc))) == WriteFailed(exc)


def test_an_interrupt_goes_on_up_and_nothing_was_written(
    client: Client, opened: Opened
) -> None:
    before = client.dump()

    with pytest.raises(KeyboardInterrupt):
        client.apply(chunk(opened, failing_with(KeyboardInterrupt())))

    assert client.dump() == before
    assert trades(client, opened) == []


def test_a_write_that_ends_the_transaction_has_failed(
    client: Client, opened: Opened
) -> None:
    def write(cursor: Cursor) -> None:
        insert(cursor)
        cursor.execute("ROLLBACK")

    refusal = client.refusal(chunk(opened, write))

    assert isinstance(refusal, WriteFailed)
    assert isinstance(refusal.cause, RuntimeError)
    assert trades(client, opened) == []


def test_the_time_that_a_write_takes_belongs_to_the_step(
    client: Client, opened: Opened
) -> None:
    began = client.clock.now

    def write(cursor: Cursor) -> None:
        client.clock.now += 7

    reply = client.advance(opened, finish=step_end(1), write=write)

    assert reply.at == began + 7
    assert client.step(1).ended_at == began + 7


def test_the_cursor_ends_with_the_write(client: Client, opened: Opened) -> None:
    kept: list[Cursor] = []
    client.ask(enlisting(opened, kept.append))

    with pytest.raises((sqlite3.ProgrammingError, psycopg.InterfaceError)):
        insert(kept[0])


def test_user_code_does_not_run_for_an_owner_that_lost_its_lease(
    client: Client, opened: Opened
) -> None:
    other = client.owner()
    client.open(dead_owner=1, owner_id=other)

    lost = LeaseLost(opened.execution_id, BatchStatus.FAILED)
    assert client.refusal(enlisting(opened, never)) == lost
    assert client.refusal(chunk(opened, never)) == lost


def test_user_code_does_not_run_in_a_refused_command(
    client: Client, opened: Opened
) -> None:
    refused = client.advancing(
        opened, finish=step_end(1), end=job_end(BatchStatus.STARTED), write=never
    )

    assert client.refusal(chunk(opened, never, version=4)) == StaleVersion(4, 1)
    assert client.refusal(refused) == IllegalTransition(
        BatchStatus.STARTED, BatchStatus.STARTED
    )


def test_a_command_with_a_write_says_so(client: Client, opened: Opened) -> None:
    assert enlisting(opened, insert).enlisted
    assert chunk(opened, insert).enlisted
    assert client.advancing(opened, write=insert).enlisted
    assert not client.advancing(opened).enlisted
