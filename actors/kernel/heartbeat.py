"""The heartbeat: one actor that keeps its runtime's lease alive."""

import logging

import trio

from ...storage.commands import RenewLease
from ...storage.model.errors import StoreError
from .storage_actor import StorageActor

log = logging.getLogger("triolet.heartbeat")

RENEWALS_PER_LEASE = 3


class Heartbeat:
    """Renews an owner's lease three times within its length.

    A renewal that fails is repeated at the next beat: a lease that has run out and that
    nobody took is renewed like any other, and if somebody took an execution over, the
    fence of its commands says so.

    Args:
        store: Carries the renewals out.
        owner_id: Whose lease.
        lease: Its length in seconds.
    """

    def __init__(self, store: StorageActor, owner_id: int, lease: float) -> None:
        self.life = trio.CancelScope(shield=True)
        """Ends the heartbeat; it beats on while jobs write their last word."""
        self._store = store
        self._command = RenewLease(owner_id, round(lease * 1_000_000))
        self._period = lease / RENEWALS_PER_LEASE

    async def run(self) -> None:
        """Beat until `life` is cancelled."""
        with self.life:
            while True:
                await trio.sleep(self._period)
                try:
                    await self._store.ask(self._command)
                except StoreError as exc:
                    log.warning("the lease could not be renewed: %s", exc)
