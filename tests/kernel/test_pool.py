"""The storage actors of one store: which carry jobs, and which one is for control."""

from collections import Counter

import pytest
import trio
import trio.testing

from tests.kernel.fakes import Asker, Note, ScriptedBackend, make_actor
from triolet.actors.kernel.pool import StoragePool
from triolet.actors.kernel.storage_actor import StorageActor
from triolet.storage.backend import Pause


def pool_of(count: int) -> tuple[StoragePool, list[ScriptedBackend]]:
    backends = [ScriptedBackend() for _ in range(count)]
    return StoragePool(backends, make_actor), backends


def test_one_connection_carries_everything() -> None:
    pool, _ = pool_of(1)
    assert pool.capacity == 1
    assert pool.workers == (pool.control,)
    assert pool.take() is pool.control


@pytest.mark.parametrize("connections", [1, 3])
def test_with_several_connections_one_carries_nothing_but_control(
    connections: int,
) -> None:
    pool, _ = pool_of(connections + 1)
    assert pool.capacity == connections + 1
    assert pool.control not in pool.workers
    taken = Counter(map(id, (pool.take() for _ in range(4 * connections))))
    assert taken == {id(worker): 4 for worker in pool.workers}


async def ask(actor: StorageActor, note: Note) -> object:
    with trio.fail_after(5):
        return await actor.ask(note)


async def test_what_is_for_control_waits_for_no_job(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pool, backends = pool_of(2)
    backends[1].script.append(Pause(20))
    async with trio.open_nursery() as nursery:
        pool.start(nursery)
        slow = Asker(pool.take(), Note("a long write"))
        nursery.start_soon(slow)
        await trio.sleep(1)
        assert await ask(pool.control, Note("the heartbeat")) == "re: the heartbeat"
        assert slow.answers == []
        pool.end()
    assert slow.answers == ["re: a long write"]
    assert [backend.committed for backend in backends] == [
        ["the heartbeat"],
        ["a long write"],
    ]
