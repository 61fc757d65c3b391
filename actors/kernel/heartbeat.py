"""The heartbeat: one actor that keeps its runtime's lease alive."""

import logging
from collections.abc import Callable
from math import inf

import trio

from ...storage.commands import OwnerRegistered, RenewLease
from ...storage.model.errors import StoreError
from .nursery import open_flat_nursery
from .storage_actor import StorageActor

log = logging.getLogger("triolet.heartbeat")

RENEWALS_PER_LEASE = 3


class Heartbeat:
    """Renews an owner's lease three times within its length.

    A renewal that fails is repeated at the next beat: a lease that has run out and that
    nobody took is renewed like any other. But until then somebody else may take over
    what runs here, so it is told when the lease has run out by our own clock.

    Args:
        store: Carries the renewals out.
        owner: Whose lease.
        lease: Its length in seconds.
        since: When it was asked for, by trio's clock: it runs out no earlier than its
            length after that.
        expired: Called when it has run out while renewals fail, or do not come back; a
            process that was suspended has its renewal first.
        lapsed: Called when it was renewed after it had run out by the store's clock,
            which no clock of a suspended machine tells: somebody may have taken over.
    """

    def __init__(
        self,
        store: StorageActor,
        owner: OwnerRegistered,
        lease: float,
        since: float,
        expired: Callable[[], None],
        lapsed: Callable[[], None],
    ) -> None:
        self.life = trio.CancelScope(shield=True)
        """Ends the heartbeat; it beats on while jobs write their last word."""
        self._store = store
        self._command = RenewLease(owner.owner_id, round(lease * 1_000_000))
        self._stored_until = owner.lease_until
        self._lease = lease
        self._period = lease / RENEWALS_PER_LEASE
        self._until = since + lease
        """When the lease runs out, if no renewal succeeds before."""
        self._failing = False
        self._told = False
        self._expired = expired
        self._lapsed = lapsed

    async def run(self) -> None:
        """Beat until `life` is cancelled."""
        with self.life:
            await self._sleep()
            while True:
                async with open_flat_nursery() as nursery:
                    renewed = trio.Event()
                    nursery.start_soon(self._renew, renewed)
                    await self._outwait(renewed)
                await self._sleep()

    async def _sleep(self) -> None:
        """Sleep until the next beat; tell on the way when the lease runs out."""
        next_beat = trio.current_time() + self._period
        if self._failing and not self._told and self._until < next_beat:
            await trio.sleep_until(self._until)
            self._tell()
        await trio.sleep_until(next_beat)

    async def _outwait(self, renewed: trio.Event) -> None:
        """Wait for a renewal; tell when the lease runs out before it comes back."""
        until = inf if self._told else self._until
        if not self._failing:
            until = max(until, trio.current_time() + self._period)
        with trio.move_on_at(until):
            await renewed.wait()
        if not renewed.is_set():
            self._tell()

    async def _renew(self, renewed: trio.Event) -> None:
        asked = trio.current_time()
        try:
            renewal = await self._store.ask(self._command)
        except StoreError as exc:
            log.warning("the lease could not be renewed: %s", exc)
            self._failing = True
            if self._told:
                self._tell()  # for what has begun since
        else:
            self._until = asked + self._lease
            self._failing = self._told = False
            self._take_in(renewal)
        renewed.set()

    def _take_in(self, renewal: OwnerRegistered) -> None:
        renewed_at = renewal.lease_until - self._command.lease
        lapsed = renewed_at > self._stored_until
        self._stored_until = renewal.lease_until
        if lapsed:
            log.warning("the lease had run out before it was renewed")
            self._lapsed()

    def _tell(self) -> None:
        self._told = True
        log.error("the lease has run out: what runs here is brought to its end")
        self._expired()
