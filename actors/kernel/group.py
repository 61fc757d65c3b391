"""Actors whose ends are messages: a failing child does not tear its siblings down.

The parent decides what a child's end means. Structured concurrency still holds: leaving
the group waits for every child.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import outcome
import trio
from attrs import frozen

from .actor import Actor
from .mailbox import Mailbox
from .nursery import open_flat_nursery

M = TypeVar("M")


@frozen
class Exited:
    """A child has ended: its name, and what it returned or raised."""

    name: str
    outcome: outcome.Outcome[object]


class ActorGroup(Generic[M]):
    """Children of one parent; made by `open_group`.

    A child that is cancelled together with the group sends no message: the parent is
    being cancelled too.
    """

    def __init__(
        self, nursery: trio.Nursery, parent: Mailbox[M], wrap: Callable[[Exited], M]
    ) -> None:
        self._nursery = nursery
        self._parent = parent
        self._wrap = wrap
        self._scopes: dict[str, trio.CancelScope] = {}

    def start(self, name: str, actor: Actor[Any], mailbox: Mailbox[Any]) -> None:
        """Run *actor* as a child; *name* must not be in use.

        Raises:
            ValueError: A child of that name is running.
        """
        if name in self._scopes:
            raise ValueError(f"a child named {name!r} is running")
        self._scopes[name] = trio.CancelScope()
        self._nursery.start_soon(self._run, name, actor, mailbox, name=name)

    def cancel(self, name: str | None = None) -> None:
        """Cancel one child, or all of them; ended ones are left alone."""
        for known, scope in self._scopes.items():
            if name is None or known == name:
                scope.cancel()

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the children that have not ended, in the order of their start."""
        return tuple(self._scopes)

    async def _run(self, name: str, actor: Actor[Any], mailbox: Mailbox[Any]) -> None:
        result: outcome.Outcome[object] = outcome.Error(
            RuntimeError(f"{name} was cancelled")
        )
        try:
            with self._scopes[name]:
                result = outcome.Value(await actor.run(mailbox.inbox))
        except Exception as exc:
            result = outcome.Error(exc)
        finally:
            mailbox.inbox.close()
            del self._scopes[name]
        await self._parent.tell(self._wrap(Exited(name, result)))


@asynccontextmanager
async def open_group(
    parent: Mailbox[M], wrap: Callable[[Exited], M]
) -> AsyncIterator[ActorGroup[M]]:
    """Open a group whose children's ends are told to *parent*.

    Args:
        parent: The parent's own mailbox. It must be read until every child has ended,
            because a full mailbox makes an ending child wait.
        wrap: Makes a message of the parent's type out of an `Exited`.
    """
    async with open_flat_nursery() as nursery:
        yield ActorGroup(nursery, parent, wrap)
