"""The heartbeat: a lease renewed at a third of its length, whatever goes wrong."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing
from attrs import define, field

from tests.kernel.fakes import make_actor
from triolet.actors.kernel.heartbeat import Heartbeat
from triolet.storage.backend import Backend, Waits
from triolet.storage.commands import (
    Command,
    OwnerFacts,
    OwnerRegistered,
    RegisterOwner,
    RenewLease,
)
from triolet.storage.memory import MemoryBackend
from triolet.storage.model.errors import StoreError, StoreUnusable

FACTS = OwnerFacts(host="mill", pid=42)
LEASE = 30.0


def micros() -> int:
    """The store's clock, which follows the virtual one of trio."""
    return round(trio.current_time() * 1_000_000)


@define(eq=False)
class Watched(MemoryBackend):
    """A memory store that notes renewals and can be made to refuse them."""

    renewals: list[float] = field(factory=list)
    expirations: list[float] = field(factory=list)
    """When the heartbeat told that the lease had run out."""
    lapses: int = 0
    """How often it told that somebody may have taken over."""
    fault: StoreError | None = None

    def __attrs_pre_init__(self) -> None:
        super().__init__(micros)

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        if any(isinstance(command, RenewLease) for command in batch):
            self.renewals.append(trio.current_time())
            if self.fault is not None:
                raise self.fault
        return (yield from super().apply(batch_id, batch))

    @property
    def lease_until(self) -> int:
        return self.dump().owners[0].lease_until


@asynccontextmanager
async def beating(backend: Backend) -> AsyncIterator[Heartbeat]:
    """Run a store and a heartbeat on it; both end with the block."""
    actor = make_actor(backend)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        since = trio.current_time()
        owner = await actor.ask(RegisterOwner(FACTS, round(LEASE * 1e6)))

        def expired() -> None:
            if isinstance(backend, Watched):
                backend.expirations.append(trio.current_time() - since)

        def lapsed() -> None:
            if isinstance(backend, Watched):
                backend.lapses += 1

        heartbeat = Heartbeat(actor, owner, LEASE, since, expired, lapsed)
        nursery.start_soon(heartbeat.run)
        try:
            yield heartbeat
        finally:
            heartbeat.life.cancel()
            actor.life.cancel()


@pytest.fixture
def backend() -> Watched:
    return Watched()


async def test_the_lease_is_renewed_at_a_third_of_its_length(
    backend: Watched, autojump_clock: trio.testing.MockClock
) -> None:
    async with beating(backend):
        began = trio.current_time()
        await trio.sleep(35)
        assert [beat - began for beat in backend.renewals] == [10, 20, 30]
        assert backend.lease_until == round((began + 30 + LEASE) * 1e6)


async def test_a_renewal_that_fails_is_repeated_at_the_next_beat(
    backend: Watched, autojump_clock: trio.testing.MockClock
) -> None:
    async with beating(backend):
        backend.fault = StoreUnusable("the disk is read-only")
        await trio.sleep(15)
        backend.fault = None
        await trio.sleep(10)
        assert len(backend.renewals) == 2
        assert backend.lease_until == round(backend.renewals[-1] * 1e6) + 30_000_000


async def test_a_lease_that_ran_out_and_that_nobody_took_is_renewed(
    backend: Watched, autojump_clock: trio.testing.MockClock
) -> None:
    async with beating(backend):
        backend.fault = StoreUnusable("the disk is read-only")
        await trio.sleep(65)
        assert backend.lease_until < micros()
        backend.fault = None
        await trio.sleep(10)
        assert backend.lease_until > micros()


async def test_it_tells_when_the_lease_runs_out_as_long_as_renewals_fail(
    backend: Watched, autojump_clock: trio.testing.MockClock
) -> None:
    async with beating(backend):
        await trio.sleep(15)
        backend.fault = StoreUnusable("the disk is read-only")
        await trio.sleep(24)
        assert backend.expirations == []
        await trio.sleep(2)
        # The last good renewal was asked for at the tenth second.
        assert backend.expirations[0] == 10 + LEASE
        backend.fault = None
        await trio.sleep(15)
        told = len(backend.expirations)
        await trio.sleep(100)
        assert len(backend.expirations) == told


async def test_it_tells_when_a_renewal_does_not_come_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """C175: the renewer itself is stuck."""
    told: list[float] = []

    class Silent:
        async def ask(self, command: object) -> object:
            if isinstance(command, RenewLease):
                await trio.sleep(100)
            return registered

    since = trio.current_time()
    registered = OwnerRegistered(1, 0)
    silent: Any = Silent()
    heartbeat = Heartbeat(
        silent,
        registered,
        LEASE,
        since,
        lambda: told.append(trio.current_time() - since),
        lambda: None,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(heartbeat.run)
        await trio.sleep(105)
        assert told == [LEASE]
        heartbeat.life.cancel()


async def test_a_process_that_was_suspended_has_its_renewal_first(
    backend: Watched, mock_clock: trio.testing.MockClock
) -> None:
    async with beating(backend):
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(10 * LEASE)
        await trio.testing.wait_all_tasks_blocked()
        assert len(backend.renewals) == 1
        assert backend.lease_until > micros()
        assert backend.expirations == []
        assert backend.lapses == 1


async def test_the_heartbeat_outlives_the_cancellation_of_the_scope_around_it(
    backend: Watched, autojump_clock: trio.testing.MockClock
) -> None:
    with trio.CancelScope() as scope:
        async with beating(backend):
            scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.sleep(25)
            assert len(backend.renewals) == 2
    assert len(backend.renewals) == 2


async def test_the_heartbeat_ends_with_its_life(
    backend: Watched, autojump_clock: trio.testing.MockClock
) -> None:
    async with beating(backend) as heartbeat:
        await trio.sleep(15)
        heartbeat.life.cancel()
        await trio.sleep(100)
        assert len(backend.renewals) == 1
