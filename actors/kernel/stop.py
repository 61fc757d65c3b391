"""The stop token: how user code learns that it should come to an end."""

import threading

import trio

from .asyncio_calls import in_trio


class StopToken:
    """Set once, never cleared. Reading it is safe from any thread.

    A function in a thread cannot be cancelled. So, if the task that waits for it is
    cancelled, the token is set as soon as the function looks at it.

    Args:
        above: Another token: this one is set as soon as that one is.
    """

    def __init__(self, above: "StopToken | None" = None) -> None:
        self._above = above
        self._flag = False
        self._event: trio.Event | None = None
        self._loop = threading.get_ident()

    def is_set(self) -> bool:
        """Tell whether a stop was requested."""
        if self._flag or (self._above is not None and self._above.is_set()):
            return True
        if threading.get_ident() != self._loop and _is_cancelled_in_its_thread():
            self._flag = True
        return self._flag

    def set(self) -> None:
        """Request the stop; only from the event loop's thread."""
        self._flag = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until a stop is requested; in asyncio code inside of trio, too."""
        if self._event is None:
            self._event = trio.Event()
            if self.is_set():
                self._event.set()
        await in_trio(self._event.wait)


def _is_cancelled_in_its_thread() -> bool:
    try:
        trio.from_thread.check_cancelled()
    except trio.Cancelled:
        return True
    except RuntimeError:
        # No thread of trio's: whoever started it can be asked in some other way.
        return False
    return False
