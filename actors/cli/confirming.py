"""Asking before something is done that cannot be undone."""

import sys

from ...storage.model.errors import TrioletError, error
from .output import plain

_YES = {"y", "yes"}


@error
class ConfirmationMissing(TrioletError):
    """Nobody said yes; nothing was done."""

    code = "confirmation_missing"
    asked: bool

    def __str__(self) -> str:
        """Say in one sentence what is wrong, where, and how to mend it."""
        if self.asked:
            return "not confirmed, so nothing was done"
        return "this has to be confirmed, and nobody can be asked here: add --yes"


def confirm(question: str, yes: bool) -> None:
    """Go on only when somebody agrees.

    Args:
        question: What would be done, without a question mark.
        yes: Whether the command line agrees already.

    Raises:
        ConfirmationMissing: The answer is no, or there is no terminal to ask at.
    """
    if yes:
        return
    if sys.stdin is None or sys.stderr is None or not sys.stdin.isatty():
        raise ConfirmationMissing(False)
    print(f"{plain(question)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in _YES:
        raise ConfirmationMissing(True)
