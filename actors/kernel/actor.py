"""What every actor is: one task that owns its state and reads one inbox."""

from typing import Protocol, TypeVar

from .mailbox import Inbox

M = TypeVar("M")


class Actor(Protocol[M]):
    """One task with a mailbox; others reach it by messages only.

    An actor never touches another actor's attributes, and its task ends inside the
    nursery that started it.
    """

    async def run(self, inbox: Inbox[M]) -> object:
        """Work until done; the return value is the actor's result."""
