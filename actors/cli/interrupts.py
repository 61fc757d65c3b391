"""Ctrl-C while nobody has a better answer to it: the process ends, without a word.

A traceback would come out of whatever is being imported or printed at that moment. A
launch has an answer of its own (`signals`); here, ending at once loses nothing. What
this module imports is imported before Ctrl-C is answered at all, so it is little.
"""

import os
import signal

INTERRUPTED = 130


class EndedByInterrupts:
    """Inside, Ctrl-C ends the process, unless somebody has a handler already."""

    def __enter__(self) -> None:
        self._ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            if self._ours:
                signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
        except ValueError:
            # Only the main thread takes signals, and this is another one.
            self._ours = False

    def __exit__(self, *_: object) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
