"""Writing to standard output and standard error.

Whatever is written may hold text that came from elsewhere, so control characters are
shown, not obeyed. Output that cannot be written is an error with its own exit code.
"""

import os
import re
import sys
from collections.abc import Iterable

from ...storage.model.errors import TrioletError, error

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029]")


@error
class OutputFailed(TrioletError):
    """Standard output could not be written: it was closed, or its disk is full."""

    code = "output_failed"
    reason: str

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        return f"the output could not be written: {self.reason}"


def plain(text: str) -> str:
    """Make one harmless line of *text*: control characters become escapes."""
    return _CONTROL.sub(lambda found: ascii(found.group())[1:-1], text)


def _encodable(line: str) -> str:
    encoding = sys.stdout.encoding or "utf-8"
    return line.encode(encoding, "backslashreplace").decode(encoding)


def emit(lines: Iterable[str]) -> None:
    """Write lines to standard output, and make sure that they have left.

    Raises:
        OutputFailed: They could not be written.
    """
    if sys.stdout is None:
        raise OutputFailed("standard output is closed")
    try:
        for line in lines:
            print(_encodable(plain(line)))
        sys.stdout.flush()
    except OSError as exc:
        raise given_up(exc) from exc


def written(line: str) -> None:
    """Write a last line past all buffers, which a signal may have found in use."""
    if sys.stdout is None:
        return
    rest = f"{_encodable(plain(line))}\n".encode(sys.stdout.encoding or "utf-8")
    try:
        while rest:
            rest = rest[os.write(sys.stdout.fileno(), rest) :]
    except OSError:
        return


def given_up(exc: OSError) -> OutputFailed:
    """Say that standard output failed, and throw away what it still holds.

    Otherwise the interpreter would stumble over the rest of it at its end.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OutputFailed(exc.strerror or type(exc).__name__)


def complain(sentence: str, *details: str) -> None:
    """Say something on standard error, if anybody can still hear it."""
    if sys.stderr is None:
        return
    lines = [f"triolet: {plain(sentence)}", *(f"  - {plain(one)}" for one in details)]
    try:
        print("\n".join(lines), file=sys.stderr, flush=True)
    except OSError:
        return
