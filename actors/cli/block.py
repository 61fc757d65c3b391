"""Lines at the end of a terminal that are rewritten in place.

They never wrap and are never higher than the terminal, because what has scrolled away
cannot be rewritten.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

from attrs import define, field

_ERASE = "\r\x1b[K"
_ERASE_ABOVE = "\x1b[A\x1b[K"


@define(eq=False)
class Block:
    """Rewritten lines on a stream, with lines that stay above them.

    Args:
        stream: Where to.
        size: Gives columns and rows of the terminal, which may change.
    """

    stream: TextIO
    size: Callable[[], tuple[int, int]]
    _height: int = field(default=0, init=False)

    def show(self, lines: Sequence[str]) -> None:
        """Write lines instead of those that were shown before."""
        columns, rows = self.size()
        shown = [fitted(line, columns - 1) for line in lines[: max(rows - 1, 1)]]
        self._write(self._erasure() + "\n".join(shown))
        self._height = len(shown)

    def note(self, text: str) -> None:
        """Write text that stays; the block is gone until it is shown again."""
        self._write(f"{self._erasure()}{text}\n")
        self._height = 0

    def erase(self) -> None:
        """Leave nothing of the block behind."""
        if self._height:
            self._write(self._erasure())
            self._height = 0

    def _erasure(self) -> str:
        if not self._height:
            return ""
        return _ERASE + _ERASE_ABOVE * (self._height - 1)

    def _write(self, text: str) -> None:
        """Write, unless nobody can hear it: progress never ends a job."""
        # A stream that was closed raises a ValueError.
        with suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()


def fitted(line: str, cells: int) -> str:
    """Cut a line to at most so many cells of a terminal."""
    if line.isascii():
        return line[: max(cells, 0)]
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= cells else set_cell_size(line, max(cells, 0))


def terminal_size(stream: TextIO) -> tuple[int, int]:
    """Give columns and rows of the terminal behind a stream, or what is usual."""
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(stream.fileno())
        if size.columns > 0 and size.lines > 0:
            return size.columns, size.lines
    usual = shutil.get_terminal_size()
    return usual.columns, usual.lines
