"""The command line: ``triolet run``, ``list``, ``show``, ``migrate``, ``version``.

Where the command is not on the path, ``python -m triolet.actors.cli`` is the same.
Everything heavy is imported by the command that needs it, so that help is quick.
"""

import sys

from .interrupts import EndedByInterrupts

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Carry out one command line and give the exit code.

    Args:
        arguments: The words after ``triolet``; None: those of this process.
    """
    words = sys.argv[1:] if arguments is None else arguments
    with EndedByInterrupts(words):
        from .app import carry_out

        return carry_out(words)
