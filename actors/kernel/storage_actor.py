"""The storage actor: the one task that talks to a backend's connection.

It takes whatever waits in its mailbox and commits it as one transaction: while a commit
is under way the next batch gathers by itself. Every accepted question is answered
exactly once, also while the actor is dying. The actor, which alone knows whether a
commit is in flight, owns the deadline.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import tenacity
import trio

from ...storage.backend import (
    AnswerLost,
    Backend,
    Committed,
    Pause,
    Waits,
    drive,
)
from ...storage.commands import Command
from ...storage.model.errors import (
    CommitOutcomeUnknown,
    StoreError,
    StoreGone,
    StoreLocked,
    StoreUnavailable,
    TrioletError,
)
from .driving import Done, Step, give_up, resume, waited
from .inspecting import Activity, ActorKind, ActorState
from .mailbox import Mailbox, Slot
from .offload import PATIENCE_SECS, Offload

log = logging.getLogger("triolet.storage")

R = TypeVar("R")
T = TypeVar("T")

BATCH_MAX = 100
"""With more, clients idle while the store works; the queue is the next batch."""
MAILBOX_CAPACITY = 1024
DEADLINE_SECS = 30.0
SILENCE_SHARE = 1 / 3
"""Of the deadline. A store that is silent for so long leaves time to settle."""


class _Ask:
    __slots__ = ("command", "deadline", "slot")

    def __init__(self, command: Command[Any], deadline: float) -> None:
        self.command = command
        self.deadline = deadline
        self.slot: Slot[Any] = Slot()


@contextmanager
def _shielded() -> Iterator[None]:
    with trio.CancelScope(shield=True):
        yield


class StorageActor:
    """Serialises the commands of a store.

    Args:
        backend: The connection; the actor is its only user, and does not close it.
        new_id: Draws batch ids.
        adaptive: Whether commits may move to a thread while they are slow.
        apart: Whether enlisted writes always run in a thread, so that one which takes
            long holds up nothing but its own connection.
        patience: Seconds for which a commit may keep the event loop, on average.
        deadline: Seconds within which an accepted command is carried out, refused, or
            reported as of unknown outcome.
        on_retry: Called with the reason whenever a batch is sent again.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        new_id: Callable[[], UUID],
        adaptive: bool = True,
        apart: bool = False,
        patience: float = PATIENCE_SECS,
        deadline: float = DEADLINE_SECS,
        on_retry: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self.life = trio.CancelScope(shield=True)
        """Ends the actor. It outlives the cancellation of the scope around it, so that
        whoever is cancelled there can still write the last word."""
        self._backend = backend
        self._new_id = new_id
        self._deadline = deadline
        self._on_retry = on_retry
        self._silence = deadline * SILENCE_SHARE
        self._offload = Offload(adaptive=adaptive, patience=patience)
        self._apart = apart
        self._mailbox: Mailbox[_Ask] = Mailbox(MAILBOX_CAPACITY)
        self._committing = False

    def inspect(self, name: str) -> ActorState:
        """Show the actor as it is now."""
        return ActorState(
            kind=ActorKind.STORAGE,
            name=name,
            activity=Activity.RUNNING if self._committing else Activity.IDLE,
            waiting=self.depth,
        )

    @property
    def depth(self) -> int:
        """Commands that wait now."""
        return self._mailbox.depth

    async def ask(self, command: Command[R]) -> R:
        """Have *command* carried out and give its reply.

        Never raises `trio.Cancelled`: what was asked is answered, and the caller looks
        for cancellation afterwards.

        Raises:
            Rejection: The store refused the command and changed nothing.
            StoreUnavailable: It was not carried out within the deadline.
            CommitOutcomeUnknown: Whether it was carried out could not be found out.
            StoreGone: The actor has ended.
        """
        ask = _Ask(command, trio.current_time() + self._deadline)
        try:
            await self._put(ask)
        except trio.BrokenResourceError:
            raise StoreGone from None
        reply: R = await ask.slot.wait()
        return reply

    async def _put(self, ask: _Ask) -> None:
        try:
            self._mailbox.tell_nowait(ask)
        except trio.WouldBlock:
            with _shielded():
                await self._mailbox.tell(ask)

    async def run(self) -> None:
        """Serve until `life` is cancelled; what was accepted by then is carried out."""
        inbox = self._mailbox.inbox
        with self.life:
            try:
                while True:
                    first = await inbox.receive()
                    await self._commit_all([first, *inbox.take(BATCH_MAX - 1)])
            except trio.Cancelled:
                while waiting := inbox.take(BATCH_MAX):
                    await self._commit_all(waiting)
                raise
            finally:
                # Taking lets blocked askers move up, so one round may not be all.
                while waiting := inbox.take(BATCH_MAX):
                    _answer_all(waiting, StoreGone())
                inbox.close()

    async def _commit_all(self, asks: Sequence[_Ask]) -> None:
        self._committing = True
        try:
            for group in _transactions(asks):
                await self._commit(group)
        finally:
            self._committing = False
            _answer_all(asks, StoreGone())

    async def _commit(self, group: Sequence[_Ask]) -> None:
        now = trio.current_time()
        # Those that waited longest have the nearest deadline.
        if group[0].deadline <= now:
            expired = [ask for ask in group if ask.deadline <= now]
            _answer_all(expired, StoreUnavailable("the store was busy for too long"))
            group = group[len(expired) :]
        if not group:
            return
        deadline = group[0].deadline
        if len(group) > 1:
            group = sorted(group, key=lambda ask: ask.command.place)
        batch = [ask.command for ask in group]
        try:
            outcomes = await self._carry_out(batch, deadline)
        except StoreError as exc:
            _answer_all(group, exc)
            return
        for ask, result in zip(group, outcomes, strict=True):
            if isinstance(result, TrioletError):
                ask.slot.fail(result)
            else:
                ask.slot.answer(result)

    async def _carry_out(
        self, batch: Sequence[Command[Any]], deadline: float
    ) -> Sequence[object]:
        """Send a batch, and again while it is known to have had no effect."""
        try:
            return await self._once(batch, deadline)
        except StoreLocked:
            raise
        except StoreUnavailable as exc:
            log.warning("a batch had no effect and is sent again: %s", exc)
            self._on_retry(str(exc))
        return await self._again(batch, deadline)

    async def _again(
        self, batch: Sequence[Command[Any]], deadline: float
    ) -> Sequence[object]:
        def told(state: tenacity.RetryCallState) -> None:
            if state.outcome is not None:
                reason = str(state.outcome.exception())
                log.debug("a batch had no effect again: %s", reason)
                self._on_retry(reason)

        with _shielded():
            return await tenacity.AsyncRetrying(
                sleep=trio.sleep,
                retry=tenacity.retry_if_exception(_is_transient),
                wait=tenacity.wait_exponential(0.05, max=2),
                stop=partial(_given_up, deadline),
                before_sleep=told,
                reraise=True,
            )(self._once, batch, deadline)

    async def _once(
        self, batch: Sequence[Command[Any]], deadline: float
    ) -> Sequence[object]:
        batch_id = self._new_id()
        applying = self._backend.apply(batch_id, batch)
        try:
            if self._apart and batch[0].enlisted:  # which then is alone
                return await self._driven_apart(applying)
            return await self._drive(applying)
        except AnswerLost as exc:
            reason = str(exc)
        with _shielded():
            return await self._settle(batch_id, batch, deadline, reason)

    async def _settle(
        self,
        batch_id: UUID,
        batch: Sequence[Command[Any]],
        deadline: float,
        reason: str,
    ) -> Sequence[object]:
        while True:
            try:
                settled = await self._drive(self._backend.settle(batch_id, batch))
            except StoreError as exc:
                if trio.current_time() >= deadline:
                    raise CommitOutcomeUnknown from exc
                await trio.sleep(0.5)
            else:
                if isinstance(settled, Committed):
                    return settled.replies
                raise StoreUnavailable(reason or "a commit failed")

    async def _drive(self, waits: Waits[T]) -> T:
        """Run an operation to its end: a commit under way is never cancelled."""
        step: Step[T] = Pause(0.0)
        if not self._offload.threaded:
            step = self._offload.inline(resume, waits)
            if isinstance(step, Done):
                return step.result
        while not isinstance(step, Done):
            if await waited(step, self._silence, shield=True):
                step = await self._resumed(waits)
            else:
                step = give_up(waits)
        return step.result

    async def _driven_apart(self, waits: Waits[T]) -> T:
        """Run an operation with user code inside, which may block, in the thread."""
        with _shielded():
            return await self._offload.apart(
                partial(drive, silence=self._silence), waits
            )

    async def _resumed(self, waits: Waits[T]) -> Step[T]:
        if not self._offload.threaded:
            return self._offload.inline(resume, waits)
        with _shielded():
            return await self._offload.in_thread(resume, waits)


def _is_transient(exc: BaseException) -> bool:
    return isinstance(exc, StoreUnavailable) and not isinstance(exc, StoreLocked)


def _given_up(deadline: float, state: tenacity.RetryCallState) -> bool:
    return trio.current_time() >= deadline


def _transactions(asks: Sequence[_Ask]) -> Sequence[Sequence[_Ask]]:
    """Split asks into transactions: some commands stand alone in theirs."""
    if len(asks) == 1 or not any(ask.command.alone for ask in asks):
        return [asks]
    groups: list[list[_Ask]] = [[]]
    for ask in asks:
        if ask.command.alone:
            groups += [[ask], []]
        else:
            groups[-1].append(ask)
    return [group for group in groups if group]


def _answer_all(asks: Sequence[_Ask], error: TrioletError) -> None:
    for ask in asks:
        if not ask.slot.is_answered:
            ask.slot.fail(error)
