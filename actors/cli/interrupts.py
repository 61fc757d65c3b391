"""Ctrl-C while nobody has a better answer to it: the process ends, without a word.

A traceback would come out of whatever is being imported or printed at that moment. A
launch has an answer of its own (`signals`); here, ending at once loses nothing. With
``--json`` the one object is printed. What this module imports is imported before Ctrl-C
is answered at all, so it is little.
"""

import os
import signal
from collections.abc import Sequence

INTERRUPTED = 130
_OBJECT = (
    '{"command": "%s", "data": null, "diagnostics": [{"code": "interrupted", "message": '
    '"interrupted"}], "exit_code": 130, "outcome": "error", "schema_version": 1}\n'
)
_STDOUT = 1
_unsaid = ""
"""What is still to be printed when the process is interrupted."""


def answering() -> None:
    """From now on, the command prints what it came to: an interrupt says no more."""
    global _unsaid  # a signal handler is global, too
    _unsaid = ""


def _end(*_: object) -> None:
    try:
        os.write(_STDOUT, _unsaid.encode())
    finally:
        os._exit(INTERRUPTED)


class EndedByInterrupts:
    """Inside, Ctrl-C ends the process, unless somebody has a handler already.

    Args:
        words: Of the command line.
    """

    def __init__(self, words: Sequence[str] = ()) -> None:
        self._words = words

    def __enter__(self) -> None:
        global _unsaid  # a signal handler is global, too
        if "--json" in self._words:
            name = self._words[0]
            _unsaid = _OBJECT % (name if name.isalpha() else "")
        self._ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        try:
            if self._ours:
                signal.signal(signal.SIGINT, _end)
        except ValueError:
            # Only the main thread takes signals, and this is another one.
            self._ours = False

    def __exit__(self, *_: object) -> None:
        answering()
        if self._ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
