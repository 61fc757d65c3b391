"""Driving a backend's operations on the event loop: each wait is awaited."""

from typing import Generic, TypeAlias, TypeVar

import trio
from attrs import frozen

from ...storage.backend import Pause, Readable, Wait, WaitedTooLong, Waits

T = TypeVar("T")


@frozen
class Done(Generic[T]):
    """The operation's result."""

    result: T


Step: TypeAlias = Wait | Done[T]


def resume(waits: Waits[T]) -> Step[T]:
    """Go on to the next wait or to the end; StopIteration cannot leave a coroutine."""
    try:
        return next(waits)
    except StopIteration as end:
        return Done(end.value)


def give_up(waits: Waits[T]) -> Step[T]:
    """Tell the operation that it has waited too long, and go on."""
    try:
        return waits.throw(WaitedTooLong())
    except StopIteration as end:
        return Done(end.value)


async def waited(wait: Wait, silence: float, *, shield: bool = False) -> bool:
    """Wait; False when a socket was silent for *silence* seconds.

    Cancellation: It ends the wait, unless *shield* is set.
    """
    if isinstance(wait, Pause):
        if wait.seconds:
            with trio.CancelScope(shield=shield):
                await trio.sleep(wait.seconds)
        return True
    with trio.move_on_after(silence, shield=shield) as scope:
        if isinstance(wait, Readable):
            await trio.lowlevel.wait_readable(wait.fd)
        else:
            await trio.lowlevel.wait_writable(wait.fd)
    return not scope.cancelled_caught


async def driven(waits: Waits[T], silence: float) -> T:
    """Run an operation to its end.

    Cancellation: The operation is left where it waits.
    """
    step = resume(waits)
    while not isinstance(step, Done):
        step = resume(waits) if await waited(step, silence) else give_up(waits)
    return step.result
