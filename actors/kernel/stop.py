"""The stop token: how user code learns that it should come to an end."""

import threading

import trio


class StopToken:
    """Set once, never cleared. Reading it is safe from any thread."""

    def __init__(self) -> None:
        self._flag = threading.Event()
        self._event: trio.Event | None = None

    def is_set(self) -> bool:
        """Tell whether a stop was requested."""
        return self._flag.is_set()

    def set(self) -> None:
        """Request the stop; only from the event loop's thread."""
        self._flag.set()
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until a stop is requested."""
        if self._event is None:
            self._event = trio.Event()
            if self.is_set():
                self._event.set()
        await self._event.wait()
