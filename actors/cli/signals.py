"""What Ctrl-C and SIGTERM do: stop the job, then end the process.

Ordinary signal handlers, because they also run while the event loop is kept busy. The
second signal ends the process at once and loses nothing: what is durable stays, and the
next launch takes over. With ``--json`` it is answered by the one object, too.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from attrs import define, field

from ...storage.model.errors import TrioletError, error
from .documents import error_document
from .exit_codes import SECOND_SIGNAL
from .failing import Form
from .output import complain, written

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NOTHING_STARTED = "ended before the job began; nothing was started"


@error
class EndedAtOnce(TrioletError):
    """A signal has ended the process; shown as JSON only."""

    code = "interrupted"
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return self.reason


@define(eq=False)
class Interruptions:
    """Obeys signals for one command.

    Args:
        form: Of the command.
        stopping: What the first signal does, for people.
    """

    form: Form
    stopping: str
    _outlook: Callable[[], str] = field(init=False)
    _left: Callable[[], object] = field(init=False)
    _request: Callable[[], None] | None = field(default=None, init=False)
    _running: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    def about(self, outlook: Callable[[], str], left: Callable[[], object]) -> None:
        """Learn what to say when the process is ended at once, while something runs.

        Args:
            outlook: Says what becomes of it, for people.
            left: Gives it, for programs.
        """
        self._outlook, self._left = outlook, left

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
        self._end()

    def _end(self) -> None:
        sentence = NOTHING_STARTED
        if self._running:
            sentence = f"ended at once; {self._outlook()}"
        complain(sentence)
        if self.form.json:
            code, left = SECOND_SIGNAL, self._left() if self._running else None
            ended = EndedAtOnce(sentence)
            written(error_document(self.form.command, code, ended, sentence, left))
        os._exit(SECOND_SIGNAL)


@contextmanager
def obeyed(interruptions: Interruptions) -> Iterator[Interruptions]:
    """Obey signals inside; the handlers that were there come back."""
    before = {one: signal.signal(one, interruptions.obey) for one in SIGNALS}
    try:
        yield interruptions
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
