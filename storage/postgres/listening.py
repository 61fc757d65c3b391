"""Hearing at once what another process has committed, by LISTEN and NOTIFY.

What is heard is only a reason to look: notices are lost with the connection, and
whoever listens looks into the store now and then in any case.
"""

from collections.abc import Sequence

from ..backend import Notice, Readable, WaitedTooLong, Waits
from ..model.errors import StoreUnavailable
from .connecting import address_of, connect
from .faults import explained
from .link import BROKEN
from .wire import ConnectionLost, Refusal, Wire


class PostgresListener:
    """A connection that does nothing but listen.

    Args:
        url: As libpq has it.
        channels: To listen on.
    """

    def __init__(self, url: str, channels: Sequence[str]) -> None:
        self._address = address_of(url)
        self._channels = tuple(channels)
        self._wire: Wire | None = None

    def connect(self) -> Waits[None]:
        """Connect and begin to listen; what was notified before is not heard.

        Raises:
            StoreUnavailable: The server does not answer.
            StoreUnusable: It never will in this way.
        """
        self.close()
        try:
            wire = self._wire = yield from connect(self._address, "triolet listener")
            listens = [(f'LISTEN "{channel}"', ()) for channel in self._channels]
            yield from wire.exchange(listens)
        except (ConnectionLost, WaitedTooLong) as lost:
            self.close()
            raise StoreUnavailable(BROKEN) from lost
        except Refusal as refusal:
            self.close()
            raise explained(refusal.sqlstate) from refusal

    def notices(self) -> Waits[list[Notice]]:
        """Wait for the next notices; none when the driver gave up waiting.

        Raises:
            StoreUnavailable: The connection broke: connect again.
        """
        if self._wire is None:
            raise StoreUnavailable(BROKEN)
        try:
            while not (heard := self._wire.notices()):
                yield Readable(self._wire.raw.socket)
        except WaitedTooLong:
            return []
        except ConnectionLost as lost:
            self.close()
            raise StoreUnavailable(BROKEN) from lost
        return [Notice(channel) for channel in heard]

    def close(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None
