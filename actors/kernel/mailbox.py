"""A mailbox: the bounded queue of one actor's messages.

A full mailbox makes senders wait. That is the back-pressure of the whole system, so
there is no unbounded variant.
"""

from typing import Generic, TypeVar, cast

import trio

M = TypeVar("M")
R = TypeVar("R")


class Mailbox(Generic[M]):
    """Where messages for one actor are put; the actor holds the `Inbox` end.

    Args:
        capacity: Messages that may wait, at least 1.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("a mailbox needs a capacity of at least 1")
        self._send: trio.MemorySendChannel[M]
        receive: trio.MemoryReceiveChannel[M]
        self._send, receive = trio.open_memory_channel(capacity)
        self.inbox = Inbox(receive)

    async def tell(self, message: M) -> None:
        """Put *message* in, waiting while the mailbox is full.

        Raises:
            trio.BrokenResourceError: The actor has ended and takes no more.

        Cancellation: The message was not put in.
        """
        await self._send.send(message)

    def tell_nowait(self, message: M) -> None:
        """Put *message* in at once.

        Raises:
            trio.WouldBlock: The mailbox is full.
            trio.BrokenResourceError: The actor has ended and takes no more.
        """
        self._send.send_nowait(message)

    def offer(self, message: M) -> bool:
        """Put *message* in at once if there is room and somebody to read it.

        For what is said more than once, or to an actor that may have ended.
        """
        try:
            self._send.send_nowait(message)
        except (trio.WouldBlock, trio.BrokenResourceError):
            return False
        return True

    @property
    def depth(self) -> int:
        """Messages that wait now."""
        return self._send.statistics().current_buffer_used


class Inbox(Generic[M]):
    """The end of a mailbox that its actor reads."""

    def __init__(self, receive: "trio.MemoryReceiveChannel[M]") -> None:
        self._receive = receive

    async def receive(self) -> M:
        """Wait for the next message."""
        return await self._receive.receive()

    def take(self, limit: int) -> list[M]:
        """Give what waits now, oldest first, at most *limit* messages."""
        taken: list[M] = []
        while len(taken) < limit:
            try:
                taken.append(self._receive.receive_nowait())
            except (trio.WouldBlock, trio.ClosedResourceError):
                break
        return taken

    def close(self) -> None:
        """Take no more: from now on senders get `trio.BrokenResourceError`."""
        self._receive.close()


class Slot(Generic[R]):
    """Where the answer to one question arrives, exactly once.

    The asker waits for it whatever happens: a cancellation is delivered after the
    answer, at the asker's next checkpoint. So whoever took the question must answer,
    also while dying.
    """

    __slots__ = ("_asker", "_error", "_reply", "is_answered")

    def __init__(self) -> None:
        self.is_answered = False
        """Whether the answer is there."""
        self._asker: trio.lowlevel.Task | None = None
        self._error: Exception | None = None
        self._reply: R | None = None

    def answer(self, reply: R) -> None:
        """Deliver what was asked for."""
        self._reply = reply
        self._answered()

    def fail(self, error: Exception) -> None:
        """Deliver the reason why there is no reply."""
        self._error = error
        self._answered()

    def _answered(self) -> None:
        assert not self.is_answered, "a question was answered twice"
        self.is_answered = True
        if self._asker is not None:
            trio.lowlevel.reschedule(self._asker)

    async def wait(self) -> R:
        """Wait for the answer and give it, or raise what it carries.

        Never raises `trio.Cancelled`; costs no cancel scope.
        """
        if not self.is_answered:
            self._asker = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(_not_now)
        if self._error is not None:
            raise self._error
        return cast("R", self._reply)


def _not_now(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
