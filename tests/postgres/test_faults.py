"""What becomes of a batch when the connection fails in any phase, on a real server."""

import time
from collections.abc import Callable, Iterator
from uuid import UUID

import psycopg
import pytest
from attrs import define, field

from tests.postgres.commands import REGISTER, finishing, opening
from tests.postgres.proxy import Phase, Proxy
from tests.postgres.server import Server
from triolet.storage.backend import (
    AnswerLost,
    Committed,
    NotCommitted,
    drive,
)
from triolet.storage.commands import (
    Advanced,
    AlreadyRunning,
    Command,
    CommitChunk,
    Cursor,
    Enlist,
    Opened,
    OwnerRegistered,
    ShowExecution,
)
from triolet.storage.model.errors import StoreUnavailable
from triolet.storage.model.execution import Counts
from triolet.storage.postgres import PostgresBackend, open_postgres

PATIENCE = 1.0


@define
class Store:
    """A backend behind the proxy, and a look at the server past it."""

    backend: PostgresBackend
    proxy: Proxy
    admin: psycopg.Connection
    batches: Iterator[int] = field(factory=lambda: iter(range(1, 1000)))
    batch_id: UUID = field(factory=lambda: UUID(int=0))

    def apply(self, *batch: Command[object]) -> list[object]:
        self.batch_id = UUID(int=next(self.batches))
        return list(drive(self.backend.apply(self.batch_id, batch), timeout=PATIENCE))

    def settle(
        self, *batch: Command[object], timeout: float = 10
    ) -> Committed | NotCommitted:
        return drive(self.backend.settle(self.batch_id, batch), timeout=timeout)

    def count(self, table: str) -> int:
        row = self.admin.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with Proxy(postgres_url) as proxy:
        backend = open_postgres(proxy.url, writer=bytes(16))
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            yield Store(backend, proxy, admin)
        backend.close()


def prepared(store: Store) -> Opened:
    """Register, and open twice: the first opening registers the definition."""
    store.apply(REGISTER)
    store.apply(opening("first"))
    (opened,) = store.apply(opening("second"))
    assert isinstance(opened, Opened)
    return opened


def mixed(opened: Opened) -> tuple[Command[object], ...]:
    """Make a batch of every kind of path: noted, refused, by parts, limited."""
    return (
        finishing(opened),
        opening("third"),
        opening("second"),
        REGISTER,
        ShowExecution(opened.execution_id),
    )


@pytest.mark.parametrize("phase", ["before_commit", "cut_now"])
def test_a_batch_cut_off_before_commit_had_no_effect_and_is_sent_again(
    store: Store, phase: Phase
) -> None:
    batch = mixed(prepared(store))
    store.proxy.arm(phase)

    with pytest.raises((AnswerLost, StoreUnavailable)):
        store.apply(*batch)

    store.proxy.heal()
    assert store.settle(*batch) == NotCommitted()
    assert store.count("triolet.owner") == 1
    advanced, third, second, registered, _ = store.apply(*batch)
    assert isinstance(advanced, Advanced)
    assert isinstance(third, Opened)
    assert isinstance(second, AlreadyRunning)
    assert isinstance(registered, OwnerRegistered)


def test_the_replies_of_a_committed_batch_are_recalled(store: Store) -> None:
    opened = prepared(store)
    batch = mixed(opened)
    store.proxy.arm("after_commit_before_answer")

    with pytest.raises(AnswerLost):
        store.apply(*batch)

    settled = store.settle(*batch)
    assert isinstance(settled, Committed)
    advanced, third, second, registered, _ = settled.replies
    assert isinstance(advanced, Advanced)
    assert isinstance(third, Opened)
    assert isinstance(second, AlreadyRunning)
    assert registered == OwnerRegistered(2, registered.lease_until)  # type: ignore[attr-defined]
    steps = store.admin.execute(
        "SELECT id, node, status, started_at FROM triolet.step "
        "WHERE execution_id = %s ORDER BY id",
        [opened.execution_id],
    ).fetchall()
    assert advanced.start is not None
    assert opened.first is not None
    assert [row[:3] for row in steps] == [
        (opened.first.step_id, "load", "COMPLETED"),
        (advanced.start.step_id, "report", "STARTED"),  # type: ignore[union-attr]
    ]
    assert steps[1][3] == advanced.at
    assert store.count("triolet.owner") == 2


def test_a_connection_that_falls_silent_is_given_up_and_fenced_out(
    store: Store,
) -> None:
    batch = mixed(prepared(store))
    store.proxy.arm("hold")

    with pytest.raises(AnswerLost):
        store.apply(*batch)

    with pytest.raises(StoreUnavailable):
        store.settle(*batch, timeout=PATIENCE)
    # What was held now arrives, or finds itself fenced out: settling says which.
    store.proxy.heal()
    settled = store.settle(*batch)
    assert store.count("triolet.owner") == 1 + isinstance(settled, Committed)
    assert isinstance(store.apply(REGISTER)[0], OwnerRegistered)


def test_a_batch_that_the_server_still_works_on_is_ended_and_settled(
    store: Store, postgres_url: str
) -> None:
    opened = prepared(store)
    batch = (finishing(opened),)
    with psycopg.connect(postgres_url) as other:
        other.execute(
            "SELECT 1 FROM triolet.execution WHERE id = %s FOR UPDATE",
            [opened.execution_id],
        )
        lost = store.backend._link.name
        with pytest.raises(AnswerLost):
            store.apply(*batch)
        assert store.settle(*batch) == NotCommitted()
        # At once, long before its lock timeout.
        sessions = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
        deadline = time.monotonic() + 2
        while store.admin.execute(sessions, [lost]).fetchall():
            assert time.monotonic() < deadline, "the lost session works on"
    assert isinstance(store.apply(*batch)[0], Advanced)


def test_a_backend_that_an_administrator_ends_loses_nothing(store: Store) -> None:
    opened = prepared(store)
    store.admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name LIKE 'triolet %'"
    )
    batch = (finishing(opened),)

    with pytest.raises((AnswerLost, StoreUnavailable)) as caught:
        store.apply(*batch)

    if caught.type is AnswerLost:
        assert store.settle(*batch) == NotCommitted()
    assert isinstance(store.apply(*batch)[0], Advanced)


def test_a_lock_that_stays_is_a_fault_that_may_pass(
    store: Store, postgres_url: str
) -> None:
    opened = prepared(store)
    wire = drive(store.backend._link.connected())
    drive(wire.exchange([("SELECT set_config('lock_timeout', '50ms', false)", ())]))
    with psycopg.connect(postgres_url) as other:
        other.execute(
            "SELECT 1 FROM triolet.execution WHERE id = %s FOR UPDATE",
            [opened.execution_id],
        )
        with pytest.raises(StoreUnavailable, match=r"lock timeout \(55P03\)"):
            store.apply(finishing(opened))
    assert isinstance(store.apply(finishing(opened))[0], Advanced)


def test_a_statement_that_takes_too_long_is_a_fault_that_may_pass(
    store: Store, postgres_url: str
) -> None:
    opened = prepared(store)
    wire = drive(store.backend._link.connected())
    drive(
        wire.exchange([("SELECT set_config('statement_timeout', '50ms', false)", ())])
    )
    with psycopg.connect(postgres_url) as other:
        other.execute(
            "SELECT 1 FROM triolet.execution WHERE id = %s FOR UPDATE",
            [opened.execution_id],
        )
        with pytest.raises(StoreUnavailable, match=r"statement timeout \(57014\)"):
            store.apply(finishing(opened))
    assert isinstance(store.apply(finishing(opened))[0], Advanced)


def test_a_server_that_is_read_only_is_a_fault_that_may_pass(store: Store) -> None:
    opened = prepared(store)
    wire = drive(store.backend._link.connected())
    setting = "SELECT set_config('default_transaction_read_only', $1, false)"
    drive(wire.exchange([(setting, ("on",))]))
    with pytest.raises(StoreUnavailable, match=r"the server is read-only \(25006\)"):
        store.apply(finishing(opened))
    drive(store.backend._link.connected())
    drive(wire.exchange([(setting, ("off",))]))
    assert isinstance(store.apply(finishing(opened))[0], Advanced)


def chunk_of(opened: Opened, write: Callable[[Cursor], None]) -> CommitChunk:
    assert opened.first is not None
    return CommitChunk(
        execution_id=opened.execution_id,
        owner_id=1,
        step_id=opened.first.step_id,
        version=1,
        counts=Counts(read=1, written=1, committed=1),
        checkpoint='{"position":1}',
        write=write,
    )


def insert(cursor: Cursor) -> None:
    cursor.execute("INSERT INTO trade VALUES (1)")


@pytest.mark.parametrize("phase", ["before_commit", "after_commit_before_answer"])
def test_rows_and_checkpoint_of_a_lost_chunk_are_there_together_or_not_at_all(
    store: Store, phase: Phase
) -> None:
    opened = prepared(store)
    store.admin.execute("CREATE TABLE trade (id bigint)")
    chunk = chunk_of(opened, insert)
    store.proxy.arm(phase)

    with pytest.raises(AnswerLost):
        store.apply(chunk)

    settled = store.settle(chunk)
    committed = isinstance(settled, Committed)
    assert committed == (phase == "after_commit_before_answer")
    checkpoint = store.admin.execute(
        "SELECT checkpoint FROM triolet.step WHERE execution_id = %s",
        [opened.execution_id],
    ).fetchone()
    assert (store.count("trade"), checkpoint) == (
        (1, ('{"position":1}',)) if committed else (0, (None,))
    )


def test_a_connection_lost_in_the_middle_of_a_write_is_not_the_users_fault(
    store: Store,
) -> None:
    opened = prepared(store)
    store.admin.execute("CREATE TABLE trade (id bigint)")

    def cut(cursor: Cursor) -> None:
        insert(cursor)
        store.proxy.arm("cut_now")
        insert(cursor)

    with pytest.raises(StoreUnavailable):
        store.apply(chunk_of(opened, cut))

    assert store.count("trade") == 0
    store.proxy.heal()
    store.apply(chunk_of(opened, insert))
    assert store.count("trade") == 1


def test_a_deadlock_in_a_write_is_a_fault_that_may_pass(
    store: Store, postgres_url: str
) -> None:
    opened = prepared(store)
    store.admin.execute("CREATE TABLE trade (id bigint)")

    def deadlock(cursor: Cursor) -> None:
        raise psycopg.errors.DeadlockDetected

    def serialised(cursor: Cursor) -> None:
        cursor.execute(
            "DO $$ BEGIN RAISE EXCEPTION 'no order' USING ERRCODE = '40001'; END $$"
        )

    for write in (deadlock, serialised):
        with pytest.raises(StoreUnavailable, match="transactions"):
            store.apply(chunk_of(opened, write))


def test_a_lost_answer_to_the_settlers_own_question_changes_nothing(
    store: Store,
) -> None:
    opened = prepared(store)
    batch = (finishing(opened),)
    store.proxy.arm("before_commit")
    with pytest.raises(AnswerLost):
        store.apply(*batch)
    assert store.settle(*batch) == NotCommitted()

    assert store.settle(*batch) == NotCommitted()


def test_a_server_that_restarts_loses_nothing_that_was_committed(
    store: Store, postgres: Server
) -> None:
    opened = prepared(store)
    postgres.restart("immediate")
    store.admin.close()

    batch = (finishing(opened),)
    try:
        store.apply(*batch)
    except (AnswerLost, StoreUnavailable) as exc:
        if isinstance(exc, AnswerLost):
            assert store.settle(*batch) == NotCommitted()
        (advanced,) = store.apply(*batch)
        assert isinstance(advanced, Advanced)
    else:
        raise AssertionError("the lost connection was not noticed")


def test_a_lost_question_is_asked_again(store: Store) -> None:
    opened = prepared(store)
    store.proxy.arm("cut_now")
    with pytest.raises(StoreUnavailable):
        store.apply(ShowExecution(opened.execution_id))
    store.proxy.heal()
    assert store.apply(ShowExecution(opened.execution_id))


def test_an_enlisted_write_alone_is_lost_and_settled_like_any_other(
    store: Store,
) -> None:
    opened = prepared(store)
    store.admin.execute("CREATE TABLE trade (id bigint)")
    enlist = Enlist(opened.execution_id, 1, insert)
    store.proxy.arm("after_commit_before_answer")
    with pytest.raises(AnswerLost):
        store.apply(enlist)
    settled = store.settle(enlist)
    assert isinstance(settled, Committed)
    assert settled.replies
    assert store.count("trade") == 1
