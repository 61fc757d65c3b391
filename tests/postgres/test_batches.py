"""What a batch costs a real server: round trips, statements, transactions, threads."""

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from uuid import UUID

import psycopg
import pytest
import trio
from attrs import define, evolve, field

from tests.postgres.commands import MINUTE, REGISTER, finishing, opening
from triolet.actors.kernel.storage_actor import StorageActor
from triolet.storage.backend import AnswerLost, Committed, Waits, drive
from triolet.storage.commands import (
    Advanced,
    ChunkCommitted,
    Command,
    CommitChunk,
    Cursor,
    ExecutionDetail,
    LeaseLost,
    Opened,
    OwnerRegistered,
    RenewLease,
    ShowExecution,
    StaleVersion,
    StepStarted,
)
from triolet.storage.model.execution import Counts
from triolet.storage.model.status import BatchStatus
from triolet.storage.postgres import PostgresBackend, open_postgres
from triolet.storage.postgres.backend import MARKERS_KEPT
from triolet.storage.postgres.wire import ConnectionLost, Result, Statement, Wire


@define
class Watched:
    """A backend, and the statements of every exchange with its server."""

    backend: PostgresBackend
    exchanges: list[list[str]] = field(factory=list)
    between: Callable[[], None] | None = None
    """Called once, when the next exchange but one is to be sent."""
    batches: Iterator[int] = field(factory=lambda: count(1))

    def apply(self, *batch: Command[object]) -> list[object]:
        self.exchanges.clear()
        return list(drive(self.backend.apply(UUID(int=next(self.batches)), batch)))

    @property
    def statements(self) -> list[str]:
        return [text for exchange in self.exchanges for text in exchange]

    def opened(self, day: str) -> Opened:
        (opened,) = self.apply(opening(day))
        assert isinstance(opened, Opened)
        return opened


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Give a store with an owner and a definition."""
    store = Watched(open_postgres(postgres_url, writer=bytes(16)))
    plain = Wire.exchange

    def exchange(self: Wire, statements: Sequence[Statement]) -> Waits[list[Result]]:
        store.exchanges.append([text for text, _ in statements])
        if store.between is not None and len(store.exchanges) > 1:
            between, store.between = store.between, None
            between()
        return (yield from plain(self, statements))

    monkeypatch.setattr(Wire, "exchange", exchange)
    store.apply(REGISTER)
    store.opened("first")
    yield store
    store.backend.close()


def chunk_of(opened: Opened) -> CommitChunk:
    assert opened.first is not None
    return CommitChunk(
        execution_id=opened.execution_id,
        owner_id=1,
        step_id=opened.first.step_id,
        version=1,
        counts=Counts(read=1, written=1, committed=1),
        checkpoint='{"position":1}',
    )


def common(store: Watched, day: str) -> list[Command[object]]:
    """Make a batch of all commands that are frequent."""
    return [
        finishing(store.opened(f"{day}, steps")),
        chunk_of(store.opened(f"{day}, chunks")),
        opening(f"{day}, opened"),
        RenewLease(1, MINUTE),
    ]


KINDS = [Advanced, ChunkCommitted, Opened, OwnerRegistered]


def test_common_commands_are_one_round_trip_and_one_commit(store: Watched) -> None:
    batch = common(store, "monday")

    assert [type(reply) for reply in store.apply(*batch)] == KINDS

    assert len(store.exchanges) == 1
    begin, *work, mark, commit = store.statements
    assert begin.startswith("BEGIN")
    assert len(work) == len(batch)
    assert mark.startswith("INSERT INTO triolet.commit_marker")
    assert commit == "COMMIT"


def test_a_statement_that_fails_costs_its_neighbours_nothing(store: Watched) -> None:
    batch = common(store, "monday")
    stale = finishing(store.opened("stale"), version=9)

    *replies, refused = store.apply(*batch, stale)

    assert [type(reply) for reply in replies] == KINDS
    assert refused == StaleVersion(expected=9, actual=1)
    wire = drive(store.backend._link.connected())
    query = "SELECT count(*) FROM triolet.commit_marker"
    (markers,) = drive(wire.exchange([(query, ())]))
    assert markers.rows == [(next(store.batches) - 1,)]


def test_a_connection_is_set_up_once_and_its_statements_are_prepared_once(
    store: Watched,
) -> None:
    def prepared() -> list[str]:
        wire = drive(store.backend._link.connected())
        query = "SELECT statement FROM pg_prepared_statements ORDER BY statement"
        (result,) = drive(wire.exchange([(query, ())]))
        return [text for (text,) in result.rows]

    store.apply(*common(store, "monday"))
    prepared()
    before = prepared()
    for day in ("tuesday", "wednesday"):
        store.apply(*common(store, day))
        assert not any(text.startswith("SET ") for text in store.statements)
        assert "set_config" not in "".join(store.statements)
        assert set(store.statements) <= set(before)
    assert prepared() == before


def test_an_enlisted_write_has_a_limit_of_its_own_time(store: Watched) -> None:
    """A setting of the transaction: the next one has the connection's again."""
    limits: list[str] = []

    def write(cursor: Cursor) -> None:
        cursor.execute("SHOW statement_timeout")
        limits.append(cursor.fetchone()[0])

    opened = store.opened("enlisted")
    assert opened.first is not None
    enlisted = CommitChunk(
        execution_id=opened.execution_id,
        owner_id=1,
        step_id=opened.first.step_id,
        version=1,
        counts=Counts(),
        checkpoint='{"position":1}',
        write=write,
    )
    store.apply(enlisted)
    wire = drive(store.backend._link.connected())
    (shown,) = drive(wire.exchange([("SHOW statement_timeout", ())]))
    assert (limits, shown.rows) == (["1min"], [("30s",)])


async def test_while_the_server_works_the_loop_goes_on_and_no_thread_waits(
    store: Watched, postgres_url: str
) -> None:
    """A statement that waits for a lock is awaited by trio itself."""
    opened = store.opened("locked")
    actor = StorageActor(
        store.backend, new_id=lambda: UUID(int=next(store.batches)), adaptive=True
    )
    replies: list[object] = []
    answered = trio.Event()

    async def ask() -> None:
        replies.append(await actor.ask(finishing(opened)))
        answered.set()

    with psycopg.connect(postgres_url) as other:
        lock = "SELECT 1 FROM triolet.execution WHERE id = %s FOR UPDATE"
        other.execute(lock, [opened.execution_id])
        before = threading.enumerate()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            nursery.start_soon(ask)
            for _ in range(20):
                await trio.sleep(0.01)
            assert replies == []
            assert threading.enumerate() == before
            other.rollback()
            with trio.fail_after(10):
                await answered.wait()
            actor.life.cancel()
    assert [type(reply) for reply in replies] == [Advanced]


def test_an_answer_is_of_one_instant(store: Watched, postgres_url: str) -> None:
    """However many statements it takes: what is committed meanwhile is not half seen."""
    opened = store.opened("asked about")

    def end() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            for table in ("step", "execution"):
                other.execute(
                    f"UPDATE triolet.{table} SET status = 'COMPLETED', "
                    "ended_at = triolet.now()".encode()
                )

    store.between = end
    (detail,) = store.apply(ShowExecution(opened.execution_id))
    assert isinstance(detail, ExecutionDetail)
    assert len(store.exchanges) > 2
    statuses = {detail.execution.status, *(step.status for step in detail.steps)}
    assert statuses == {BatchStatus.STARTED}
    (later,) = store.apply(ShowExecution(opened.execution_id))
    assert isinstance(later, ExecutionDetail)
    assert later.execution.status is BatchStatus.COMPLETED


def test_markers_do_not_pile_up(store: Watched, postgres_url: str) -> None:
    """A connection forgets its own in time, and those that the dead left after a day."""
    day = 86_400_000_000
    old, young = UUID(int=1 << 100), UUID(int=1 << 101)
    count = "SELECT count(*) FROM triolet.commit_marker"
    with psycopg.connect(postgres_url, autocommit=True) as look:
        for batch_id, age in ((old, day + MINUTE), (young, day - MINUTE)):
            look.execute(
                "INSERT INTO triolet.commit_marker "
                "VALUES (%s, 'committed', NULL, triolet.now() - %s)",
                [batch_id, age],
            )
        for _ in range(3 * MARKERS_KEPT):
            store.apply(RenewLease(1, MINUTE))
        ((kept,),) = look.execute(count).fetchall()
        open_postgres(postgres_url, writer=bytes(16)).close()
        left = look.execute(
            "SELECT batch_id FROM triolet.commit_marker WHERE batch_id = ANY (%s)",
            [[old, young]],
        ).fetchall()
    assert kept <= MARKERS_KEPT + 2
    assert left == [(young,)]


def test_a_server_that_might_lose_commits_is_told_to_keep_ours(
    store: Watched, postgres_url: str
) -> None:
    """Also on the connection that takes the place of a lost one."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        name = admin.info.dbname
        admin.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())
    again = open_postgres(postgres_url, writer=bytes(16))
    shown = []
    for backend in (again, store.backend):
        backend._link.drop()
        wire = drive(backend._link.connected())
        (result,) = drive(wire.exchange([("SHOW synchronous_commit", ())]))
        shown += result.rows
    again.close()
    assert shown == [("on",), ("on",)]


def test_like_commands_are_one_statement(store: Watched) -> None:
    batch = [finishing(store.opened(f"day {day}")) for day in range(40)]

    replies = store.apply(*batch)

    assert [type(reply) for reply in replies] == [Advanced] * 40
    assert len(store.exchanges) == 1
    _, *work, _, _ = store.statements
    assert len(work) == 2  # of 32 and of 8


def test_one_refused_command_among_like_ones_is_found_in_three_rounds(
    store: Watched,
) -> None:
    batch = [finishing(store.opened(f"day {day}")) for day in range(5)]
    batch[3] = evolve(batch[3], owner_id=2)

    replies = store.apply(*batch)

    assert [type(reply) for reply in replies] == [*[Advanced] * 3, LeaseLost, Advanced]
    together, singly, *_ = store.exchanges
    assert len(together) == len(["BEGIN", "all five", "marker", "COMMIT"])
    assert len(singly) == len(["ROLLBACK", "BEGIN", *batch, "marker", "COMMIT"])


def test_the_replies_of_like_commands_are_recalled_when_the_answer_was_lost(
    store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = [finishing(store.opened(f"day {day}")) for day in range(5)]
    plain = Wire.exchange

    def cut(self: Wire, statements: Sequence[Statement]) -> Waits[list[Result]]:
        yield from plain(self, statements)
        monkeypatch.setattr(Wire, "exchange", plain)
        raise ConnectionLost("cut after COMMIT")

    monkeypatch.setattr(Wire, "exchange", cut)
    batch_id = UUID(int=999)
    with pytest.raises(AnswerLost):
        drive(store.backend.apply(batch_id, batch))

    settled = drive(store.backend.settle(batch_id, batch))

    assert isinstance(settled, Committed)
    for command, reply in zip(batch, settled.replies, strict=True):
        assert isinstance(reply, Advanced)
        assert isinstance(reply.start, StepStarted)
        (shown,) = store.apply(ShowExecution(command.execution_id))
        assert isinstance(shown, ExecutionDetail)
        assert shown.steps[-1].id == reply.start.step_id
