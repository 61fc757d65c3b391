"""The stop watch: how a runtime sees the stops that operators ask for."""

import logging
from collections.abc import Callable, Collection

import trio

from ...storage.commands import BeginStopping, FindStops, LeaseLost
from ...storage.model.errors import StoreError
from .storage_actor import StorageActor

log = logging.getLogger("triolet.stop")


class StopWatch:
    """Asks the store for pending stops, once for all that runs; nothing while it rests.

    A stop that is found becomes durable first: the execution is STOPPING, and from then
    on it never completes. Then its job is told.

    Args:
        store: Knows of the stops.
        owner_id: Whose executions.
        period: Seconds between two looks.
        running: Gives the executions that run here and have not been told yet.
        stop: Tells one of them.
    """

    def __init__(
        self,
        store: StorageActor,
        owner_id: int,
        period: float,
        running: Callable[[], Collection[int]],
        stop: Callable[[int], object],
    ) -> None:
        self.life = trio.CancelScope()
        """Ends the watch."""
        self._store = store
        self._question = FindStops(owner_id)
        self._period = period
        self._running = running
        self._stop = stop
        self._began = trio.Event()
        self._woken = trio.Event()

    def job_began(self) -> None:
        """Take in that there is something to watch."""
        self._began.set()

    def wake(self) -> None:
        """Look at once instead of at the end of the period."""
        self._woken.set()

    async def run(self) -> None:
        """Watch until `life` is cancelled."""
        with self.life:
            while True:
                if not self._running():
                    self._began = trio.Event()
                    await self._began.wait()
                with trio.move_on_after(self._period):
                    await self._woken.wait()
                self._woken = trio.Event()
                if self._running():
                    await self._look()

    async def _look(self) -> None:
        try:
            found = await self._store.ask(self._question)
            for execution_id in found.executions:
                if execution_id in self._running():
                    await self._begin(execution_id)
        except StoreError as exc:
            log.warning("pending stops could not be looked for: %s", exc)

    async def _begin(self, execution_id: int) -> None:
        try:
            await self._store.ask(BeginStopping(execution_id, self._question.owner_id))
        except LeaseLost:
            log.debug("execution %d has ended before its stop", execution_id)
        else:
            self._stop(execution_id)
