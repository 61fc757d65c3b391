"""The port between the actors and a store.

A backend knows nothing of trio. Its operations are generators that *yield what they
wait for* and return their result, so that one source serves an event loop, which
awaits each wait, and a synchronous caller, which blocks on it (`drive`).
"""

import select
import time
from collections.abc import Generator, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from attrs import frozen

from .commands import Command
from .model.errors import TrioletError

T = TypeVar("T")


@frozen
class Pause:
    """Wait this many seconds, then try again: somebody else holds a lock."""

    seconds: float


@frozen
class Readable:
    """Wait until this socket can be read."""

    fd: int


@frozen
class Writable:
    """Wait until this socket can be written."""

    fd: int


class WaitedTooLong(Exception):
    """Thrown into an operation instead of resuming it: it has to give up."""


Wait: TypeAlias = Pause | Readable | Writable
Waits: TypeAlias = Generator[Wait, None, T]
"""An operation under way: it yields waits and returns its result."""


class Capability(StrEnum):
    """What a store may be able to do beside keeping what it is told.

    What a store does not declare it is never asked for: nothing is emulated.
    """

    ENLISTED_WRITES = "enlisted writes"
    EXECUTION_OWNERSHIP = "execution ownership"
    STOP_REQUESTS = "stop requests"
    OPERATOR_REQUESTS = "operator requests"


EVERYTHING = frozenset(Capability)


@frozen
class Descriptor:
    """What a backend is and can do."""

    kind: str
    schema_version: int
    capacity: int
    """Connections of one runtime that may work at the same time."""
    inline: bool
    """Whether `apply` is fast enough to run on an event loop while commits are."""
    capabilities: frozenset[Capability] = EVERYTHING
    stands_for: int = 1
    """How many connections it is worth: in memory nobody waits for another one."""


@frozen
class Committed:
    """The batch took effect; these are its replies."""

    replies: tuple[object, ...]


@frozen
class NotCommitted:
    """The batch had no effect, and never will have: it may be sent again."""


Settlement: TypeAlias = Committed | NotCommitted


class AnswerLost(Exception):
    """The answer to COMMIT did not arrive: only `settle` knows what became of it."""


class Backend(Protocol):
    """One connection to a store; its owner calls one operation at a time."""

    @property
    def descriptor(self) -> Descriptor:
        """Say what this backend is."""

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Carry out *batch* in one physical transaction, in the given order.

        Returns one outcome for each command, in order: its reply, or the
        `TrioletError` that refused it. A rejection is a value among the others: the
        command that it answers changed nothing, its neighbours took effect. So is a
        command that raised: the rest is carried out without it. A command with an
        enlisted write must be alone in its batch.

        Raises:
            StoreUnavailable: Nothing was written; the batch may be sent again.
            StoreError: Nothing was written; sending it again is pointless.
            AnswerLost: The outcome is open until `settle` is asked.
        """

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        """Find out what became of a batch whose answer was lost, for good."""

    def close(self) -> None:
        """Give up the connection; what was not committed is rolled back."""


@frozen
class Notice:
    """Something that another process has committed: a reason to look."""

    channel: str


class Listener(Protocol):
    """Hears notices from the store; they are lost while it is not connected."""

    def connect(self) -> Waits[None]:
        """Begin to listen, or begin again.

        Raises:
            StoreError: The store cannot be reached.
        """

    def notices(self) -> Waits[Sequence[Notice]]:
        """Wait for notices; none when it was told to give up waiting.

        Raises:
            StoreError: The connection broke.
        """

    def close(self) -> None:
        """Stop listening."""


def drive(
    waits: Waits[T], *, timeout: float | None = None, silence: float | None = None
) -> T:
    """Run an operation to its end in a synchronous caller, blocking when it waits.

    Args:
        waits: The operation.
        timeout: Seconds within which it has to end; None for ever.
        silence: Seconds for which one wait may last, where there is no *timeout*.

    Raises:
        WaitedTooLong: The operation waited for longer, unless it turns this into an
            error of its own.
    """
    until = None if timeout is None else time.monotonic() + timeout
    try:
        wait = next(waits)
        while True:
            left = silence if until is None else until - time.monotonic()
            wait = next(waits) if _waited(wait, left) else waits.throw(WaitedTooLong())
    except StopIteration as done:
        result: T = done.value
        return result


def _waited(wait: Wait, left: float | None) -> bool:
    """Block until *wait* is over; False when *left* seconds pass before."""
    if left is not None and left <= 0:
        return False
    match wait:
        case Pause(seconds):
            time.sleep(seconds if left is None else min(seconds, left))
            return left is None or seconds < left
        case Readable(fd):
            return bool(select.select([fd], [], [], left)[0])
        case Writable(fd):
            return bool(select.select([], [fd], [], left)[1])


def run(backend: Backend, batch_id: UUID, command: "Command[T]") -> T:
    """Carry out one command synchronously and give its typed reply.

    Raises:
        TrioletError: The rejection, or what is wrong with the store.
    """
    (outcome,) = drive(backend.apply(batch_id, [command]))
    return reply_of(outcome, command)


def reply_of(outcome: object, command: "Command[T]") -> T:
    """Give a command's typed reply out of what a batch came to.

    Raises:
        TrioletError: The command was refused.
    """
    if isinstance(outcome, TrioletError):
        raise outcome
    reply: T = outcome  # type: ignore[assignment]  # the port promises the pairing
    return reply
