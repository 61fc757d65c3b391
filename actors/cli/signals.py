"""What Ctrl-C and SIGTERM do: stop the job, then end the process.

Ordinary signal handlers, because they also run while the event loop is kept busy. The
second signal ends the process at once and loses nothing: what is durable stays, and the
next launch takes over.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from attrs import define, field

from .exit_codes import SECOND_SIGNAL
from .output import complain

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@define(eq=False)
class Interruptions:
    """Obeys signals for one command.

    Args:
        stopping: What the first signal does, for people.
    """

    stopping: str = "stopping the job"
    _request: Callable[[], None] | None = field(default=None, init=False)
    _running: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    def about_to_begin(self, stop: Callable[[], None]) -> None:
        """Learn how a job is stopped: by *stop*, called on this event loop."""
        token = trio.lowlevel.current_trio_token()
        self._request = lambda: token.run_sync_soon(stop, idempotent=True)

    def job_began(self) -> None:
        """From now on there is something to stop."""
        self._running = True

    def job_ended(self) -> None:
        """From now on signals change nothing: the outcome stands and is reported."""
        self._ended = True

    def obey(self, signum: int, frame: object) -> None:
        """Take in one signal."""
        if self._ended:
            return
        request, self._request = self._request, None
        if self._running and request is not None:
            request()
            complain(f"{self.stopping}; a second Ctrl-C ends the process at once")
            return
        if self._running:
            complain("ended at once; the next launch continues from the last commit")
        else:
            complain("ended before the job began; nothing was started")
        os._exit(SECOND_SIGNAL)


@contextmanager
def obeyed(stopping: str = "stopping the job") -> Iterator[Interruptions]:
    """Obey signals inside; the handlers that were there come back."""
    interruptions = Interruptions(stopping)
    before = {one: signal.signal(one, interruptions.obey) for one in SIGNALS}
    try:
        yield interruptions
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
