"""The command line: ``triolet run``, ``list``, ``show``, ``migrate``, ``version``.

Everything heavy is imported by the command that needs it, so that help is quick.
"""

from .app import main

__all__ = ["main"]
