"""Where in the user's own code an exception was raised."""

import os
import sysconfig
from collections.abc import Iterator
from types import TracebackType

from attrs import frozen

_MACHINERY = ("triolet.", "trio.", "trio_asyncio.", "outcome.")
"""Modules that stand between the user's code and whoever catches."""


def _folders(*kinds: str) -> tuple[str, ...]:
    return tuple(os.path.join(sysconfig.get_path(kind), "") for kind in kinds)


_PYTHON = _folders("stdlib", "platstdlib")
_INSTALLED = _folders("purelib", "platlib")


@frozen
class Place:
    """A line of a source file."""

    file: str
    """As Python knows it, with its folder."""
    line: int

    def __str__(self) -> str:
        """Write it without the folder: ``orders.py, line 12``."""
        return f"{os.path.basename(self.file)}, line {self.line}"


def place_of(exc: BaseException) -> Place | None:
    """Find the innermost line of the user's code that *exc* came through.

    Code of a library that the user's code called does not count, unless nothing else is
    there; then its first line does. Of a group the first exception counts.

    Returns:
        None when it came through no code but ours.
    """
    if isinstance(exc, BaseExceptionGroup):
        found = place_of(exc.exceptions[0])
        if found is not None:
            return found
    installed = None
    own = None
    for place in _places(exc.__traceback__):
        if not place.file.startswith(_INSTALLED):
            own = place
        elif installed is None:
            installed = place
    return own or installed


def _places(trace: TracebackType | None) -> Iterator[Place]:
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        module = str(trace.tb_frame.f_globals.get("__name__"))
        foreign = file.startswith("<frozen") or (
            file.startswith(_PYTHON) and not file.startswith(_INSTALLED)
        )
        if not foreign and not module.startswith(_MACHINERY):
            yield Place(file, trace.tb_lineno)
        trace = trace.tb_next
