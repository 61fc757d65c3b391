"""The listener: one actor that turns the store's notices into calls.

Push is for speed only: whoever is called also looks by himself now and then, because
what was notified while the connection was down is not heard.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import trio

from ...storage.backend import Listener
from ...storage.model.errors import StoreError
from .driving import driven

log = logging.getLogger("triolet.listener")

QUIET_SECS = 60.0
CONNECT_SECS = 10.0
RETRY_SECS = 1.0


class ListeningActor:
    """Calls a function for each notice on its channel.

    Args:
        listener: Connected and closed by this actor.
        calls: By channel: called for each notice, and whenever some may have been
            missed; must return at once.
    """

    def __init__(
        self, listener: Listener, calls: Mapping[str, Callable[[], None]]
    ) -> None:
        self.life = trio.CancelScope()
        """Ends the actor."""
        self._listener = listener
        self._calls = calls

    async def run(self) -> None:
        """Listen until `life` is cancelled; connect again whenever it is lost."""
        try:
            with self.life:
                while True:
                    try:
                        await self._listen()
                    except StoreError as exc:
                        log.debug("notices are not heard for now: %s", exc)
                    await trio.sleep(RETRY_SECS)
        finally:
            self._listener.close()

    async def _listen(self) -> None:
        await driven(self._listener.connect(), CONNECT_SECS)
        for call in self._calls.values():
            call()  # what was notified until now was not heard
        while True:
            for notice in await driven(self._listener.notices(), QUIET_SECS):
                self._calls[notice.channel]()


@contextmanager
def hearing(
    nursery: trio.Nursery,
    listener: Listener | None,
    calls: Mapping[str, Callable[[], None]],
) -> Iterator[None]:
    """Let an actor listen for as long as the block lasts; without a listener, none."""
    if listener is None:
        yield
        return
    actor = ListeningActor(listener, calls)
    nursery.start_soon(actor.run)
    try:
        yield
    finally:
        actor.life.cancel()
