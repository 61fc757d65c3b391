"""The storage actors of a runtime: as many as the store lets work side by side.

The commands of one job execution take one actor, so that they keep their order. Where
there are several connections one of them carries nothing but control: the heartbeat and
operators' questions never wait behind a long write.
"""

from collections.abc import Callable, Sequence

import trio

from ...storage.backend import Backend
from .inspecting import ActorState
from .storage_actor import StorageActor


class StoragePool:
    """Storage actors on the connections of one store.

    Args:
        backends: At least one; of several the first is for control.
        make: Makes the actor of a backend.
    """

    def __init__(
        self, backends: Sequence[Backend], make: Callable[[Backend], StorageActor]
    ) -> None:
        actors = [make(backend) for backend in backends]
        self.control = actors[0]
        """For heartbeats, operators and questions."""
        self._workers = actors[1:] or actors
        self._all = actors
        self._next = 0

    @property
    def capacity(self) -> int:
        """How many connections there are, the one for control included."""
        return len(self._all)

    def take(self) -> StorageActor:
        """Choose the actor of one execution; executions are dealt out in turn."""
        actor = self._workers[self._next % len(self._workers)]
        self._next += 1
        return actor

    @property
    def workers(self) -> tuple[StorageActor, ...]:
        """All actors that carry jobs."""
        return tuple(self._workers)

    def inspect(self) -> tuple[ActorState, ...]:
        """Show all actors as they are now."""
        return tuple(
            actor.inspect("control" if actor is self.control else str(number))
            for number, actor in enumerate(self._all)
        )

    def start(self, nursery: trio.Nursery) -> None:
        """Run all actors until `end`."""
        for actor in self._all:
            nursery.start_soon(actor.run)

    def end(self) -> None:
        """End all actors; what they have accepted is carried out first."""
        for actor in self._all:
            actor.life.cancel()
