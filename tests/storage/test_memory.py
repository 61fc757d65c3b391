"""What only the memory store has: a window on the business rows, a stricter port."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.storage.backends import Clock
from tests.storage.client import FACTS, LEASE, Client, next_step
from triolet.storage.backend import NotCommitted, drive
from triolet.storage.commands import Cursor, Enlist, RegisterOwner
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.errors import InternalError


def create(cursor: Cursor) -> None:
    cursor.execute("CREATE TABLE trade AS SELECT 7 AS id")


@pytest.fixture
def memory() -> Iterator[MemoryBackend]:
    memory = MemoryBackend(Clock())
    yield memory
    memory.close()


def test_a_test_may_look_at_the_business_rows(memory: MemoryBackend) -> None:
    client = Client(memory, Clock())
    opened = client.open(first=next_step())

    client.ask(Enlist(opened.execution_id, 1, create))

    assert memory.business.execute("SELECT id FROM trade").fetchall() == [(7,)]


def test_an_enlisted_write_in_company_is_our_own_mistake(memory: MemoryBackend) -> None:
    client = Client(memory, Clock())
    opened = client.open()
    before = client.dump()
    batch = (RegisterOwner(FACTS, LEASE), Enlist(opened.execution_id, 1, create))

    with pytest.raises(InternalError):
        client.apply(*batch)

    assert client.dump() == before
    assert drive(memory.settle(UUID(int=99), batch)) == NotCommitted()


def test_a_closed_store_may_be_closed_again(memory: MemoryBackend) -> None:
    memory.close()
    memory.close()
