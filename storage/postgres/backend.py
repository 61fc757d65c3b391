"""The PostgreSQL backend: one connection, one physical transaction for each batch.

Common commands are one statement each; whatever of them stands together in a batch goes
out in one pipeline, with BEGIN and COMMIT around it. A command that is refused ends the
transaction, and the batch is sent again with that command carried out part by part,
which finds the reason. A marker row written by the batch itself tells afterwards
whether a batch whose COMMIT was not answered took effect, and what it replied.
"""

from collections.abc import Container, Sequence
from typing import Any
from uuid import UUID

from attrs import define, evolve, field

from ..backend import (
    AnswerLost,
    Committed,
    Descriptor,
    NotCommitted,
    Settlement,
    WaitedTooLong,
    Waits,
)
from ..commands import Advance, Command, CommitChunk, OpenExecution, Question
from ..model.errors import InternalError, StoreUnavailable, TrioletError
from ..sql import HANDLERS
from ..sql.advancing import write_first
from ..sql.session import UniqueViolation
from . import schema
from .arrays import array_of
from .chain import Compact, fields_of
from .faults import explained, is_passing
from .grouping import Packet, packed
from .link import BROKEN, Link
from .session import PostgresSession
from .statements import chunk_check, compact
from .wire import ConnectionLost, Refusal, Result, Statement, Wire

BEGIN = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
BEGIN_QUESTION = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
COMMIT = ("COMMIT", ())
ROLLBACK = ("ROLLBACK", ())
NOW = ("SELECT triolet.now()", ())
ENLISTED_LIMIT = ("SET LOCAL statement_timeout = '60s'", ())
_MARK = (
    "INSERT INTO triolet.commit_marker VALUES ($1, 'committed', "
    "current_setting('triolet.replies', true), triolet.now())"
)
_FENCE = (
    "INSERT INTO triolet.commit_marker VALUES ($1, 'fenced', NULL, triolet.now()) "
    "ON CONFLICT DO NOTHING RETURNING outcome"
)
_OUTCOME = "SELECT outcome, replies FROM triolet.commit_marker WHERE batch_id = $1"
_FORGET = "DELETE FROM triolet.commit_marker WHERE batch_id = ANY ($1::uuid[])"
_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = $1 AND usename = current_user "
    "AND pid <> pg_backend_pid()"
)
MARKERS_KEPT = 100
CAPACITY = 64
"""More connections of one process would only wait for each other."""


class _Again(Exception):
    """The batch has to be sent again.

    Args:
        by_parts: Commands that are carried out part by part then.
        singly: Commands that are not taken together with others.
    """

    def __init__(self, by_parts: set[int], singly: set[int]) -> None:
        super().__init__(by_parts, singly)
        self.by_parts = by_parts
        self.singly = singly


@define
class _Transaction:
    """A batch on its way: what is known of its outcomes, and what is still to be sent."""

    batch_id: UUID
    batch: Sequence[Command[Any]]
    outcomes: list[object]
    ahead: list[Statement]
    """Sent together with what comes next."""
    singly: Container[int]
    """Commands that are not taken together with others."""
    ready: list[tuple[int, Compact[Any]]] = field(factory=list)
    """Commands that are sent next."""
    noted: list[tuple[int, Compact[Any]]] = field(factory=list)
    """Commands whose replies the server notes, in that order."""
    answered: int = 0
    """How many of those have been answered."""
    committing: bool = False


class PostgresBackend:
    """A store in a PostgreSQL database.

    Args:
        url: As libpq has it.
        writer: 16 random bytes that name this connection.
        create: Whether our schema may be made where there is none.
        migrate: Whether an older schema may be raised.
        read_only: Whether only questions are asked, so that the role need not be
            allowed to write.
    """

    def __init__(
        self,
        url: str,
        *,
        writer: bytes,
        create: bool = True,
        migrate: bool = False,
        read_only: bool = False,
    ) -> None:
        self._link = Link(
            url,
            writer=writer.hex()[:16],
            create=create and not read_only,
            migrate=migrate and not read_only,
            read_only=read_only,
        )
        self._sent: _Transaction | None = None
        self._markers: list[UUID] = []

    @property
    def descriptor(self) -> Descriptor:
        """Say what this backend is."""
        return Descriptor("postgres", schema.NEWEST, capacity=CAPACITY, inline=True)

    def connect(self) -> None:
        """Connect for the first time, blocking; see `Link.open`."""
        self._link.connect()

    def close(self) -> None:
        """Close the connection; the server rolls back what was open."""
        self._link.drop()

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Carry out *batch* in one transaction; see `Backend.apply`."""
        by_parts: set[int] = set()
        singly: set[int] = set()
        asking = all(isinstance(command, Question) for command in batch)
        first: Sequence[Statement] = [BEGIN]
        while True:
            outcomes: list[object] = [None] * len(batch)
            sent = self._sent = _Transaction(
                batch_id, batch, outcomes, [*first], singly
            )
            try:
                wire = yield from self._link.connected()
                if asking:
                    yield from self._answer(wire, sent)
                else:
                    yield from self._carry_out(wire, sent, by_parts)
            except _Again as again:
                by_parts |= again.by_parts
                singly |= again.singly
                first = [ROLLBACK, BEGIN]
            except (ConnectionLost, WaitedTooLong) as exc:
                self._link.drop()
                if sent.committing:
                    raise AnswerLost(BROKEN) from exc
                raise StoreUnavailable(BROKEN) from exc
            except Refusal as refusal:
                yield from self._rolled_back()
                raise explained(refusal.sqlstate) from refusal
            except BaseException:
                # Its state is unknown; the server rolls back when it is gone.
                self._link.drop()
                raise
            else:
                return sent.outcomes

    def _rolled_back(self) -> Waits[None]:
        """Leave a failed transaction; a connection that cannot is given up."""
        try:
            if self._link.wire is not None:
                yield from self._link.wire.exchange([ROLLBACK])
        except (ConnectionLost, Refusal, WaitedTooLong):
            self._link.drop()

    def _answer(self, wire: Wire, sent: _Transaction) -> Waits[None]:
        sent.ahead = [BEGIN_QUESTION]
        for index, command in enumerate(sent.batch):
            yield from self._by_parts(wire, sent, index, command)
        yield from wire.exchange([ROLLBACK])

    def _carry_out(
        self, wire: Wire, sent: _Transaction, by_parts: set[int]
    ) -> Waits[None]:
        for index, command in enumerate(sent.batch):
            try:
                one = None if index in by_parts else compact(command)
            except TrioletError as rejection:
                sent.outcomes[index] = rejection
                continue
            if one is not None:
                sent.ready.append((index, one))
            elif command.enlisted:
                yield from self._enlisted(wire, sent, index, command)
                if isinstance(sent.outcomes[index], TrioletError):
                    # It stands alone in its batch: there is nothing to commit.
                    yield from self._rolled_back()
                    return
            else:
                yield from self._flush(wire, sent)
                yield from self._by_parts(wire, sent, index, command)
        closing: list[Statement] = [(_MARK, (str(sent.batch_id),))]
        if len(self._markers) >= MARKERS_KEPT:
            forgotten = array_of("text", [str(one) for one in self._markers])
            closing.append((_FORGET, (forgotten,)))
            self._markers.clear()
        sent.committing = True
        yield from self._flush(wire, sent, [*closing, COMMIT])
        self._markers.append(sent.batch_id)

    def _flush(
        self, wire: Wire, sent: _Transaction, closing: Sequence[Statement] = ()
    ) -> Waits[None]:
        """Send what is ready, and read the replies that come back."""
        ahead, sent.ahead = sent.ahead, []
        packets = packed(sent.ready, sent.singly)
        sent.ready = []
        statements = [*ahead, *(one.statement for one in packets), *closing]
        if not statements:
            return
        for packet in packets:
            sent.noted += packet.commands
        try:
            results = yield from wire.exchange(statements)
        except Refusal as refusal:
            sent.committing = False
            at = refusal.index - len(ahead)
            if not 0 <= at < len(packets) or is_passing(refusal.sqlstate):
                raise
            raise _after_refusal(sent.batch, packets[at]) from refusal
        if sent.committing and results[-1].tag != b"COMMIT":
            raise InternalError("PostgreSQL rolled a transaction back at COMMIT")
        noted = results[len(ahead) : len(ahead) + len(packets)]
        self._read(sent, [one for result in noted for one in _replies(result)])

    def _read(self, sent: _Transaction, replies: Sequence[str]) -> None:
        waiting = sent.noted[sent.answered :]
        for (index, one), reply in zip(waiting, replies, strict=True):
            sent.outcomes[index] = one.read(fields_of(reply))
        sent.answered = len(sent.noted)

    def _by_parts(
        self, wire: Wire, sent: _Transaction, index: int, command: Command[Any]
    ) -> Waits[None]:
        """Carry out one command in a savepoint; its refusal is its outcome."""
        session = PostgresSession(wire)
        opening = [*sent.ahead, ("SAVEPOINT command", ()), NOW]
        *_, clock = yield from wire.exchange(opening)
        sent.ahead = []
        now = int(clock.rows[0][0])
        refused: TrioletError
        try:
            handler = HANDLERS[type(command)]
            sent.outcomes[index] = yield from handler(session, command, now)
        except UniqueViolation as exc:
            # Somebody else made the same row at the same moment; it is there now.
            raise StoreUnavailable("two processes made the same row") from exc
        except StoreUnavailable:
            raise
        except TrioletError as rejection:
            refused = rejection
        except Refusal as refusal:
            if is_passing(refusal.sqlstate):
                raise
            refused = explained(refusal.sqlstate)
        else:
            return
        yield from wire.exchange([("ROLLBACK TO SAVEPOINT command", ())])
        sent.outcomes[index] = refused

    def _enlisted(
        self, wire: Wire, sent: _Transaction, index: int, command: Command[Any]
    ) -> Waits[None]:
        """Carry out a command with user code inside; it is alone in its batch."""
        session = PostgresSession(wire)
        sent.ahead.append(ENLISTED_LIMIT)
        chunk = (
            compact(evolve(command, write=None))
            if isinstance(command, CommitChunk)
            else None
        )
        try:
            if isinstance(command, CommitChunk) and chunk is not None and command.write:
                opening = [*sent.ahead, chunk_check(command)]
                *_, checked = yield from wire.exchange(opening)
                if checked.rows:
                    yield from session.write(command.write)
                    sent.ahead = []
                    sent.ready.append((index, chunk))
                    return
            else:
                yield from wire.exchange(sent.ahead)
            sent.ahead = []
            now = yield from session.clock()
            if isinstance(command, Advance):
                command = yield from write_first(session, command, now)
                now = yield from session.clock()
            handler = HANDLERS[type(command)]
            sent.outcomes[index] = yield from handler(session, command, now)
        except StoreUnavailable:
            raise
        except TrioletError as rejection:
            sent.outcomes[index] = rejection

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        """Fence the batch out, or find that it was committed and recall its replies."""
        lost = self._link.name
        self._link.drop()
        try:
            wire = yield from self._link.connected()
            yield from wire.exchange([(_TERMINATE, (lost,))])
            key = (str(batch_id),)
            (fenced,) = yield from wire.exchange([(_FENCE, key)])
            if fenced.rows:
                return NotCommitted()
            (found,) = yield from wire.exchange([(_OUTCOME, key)])
        except (ConnectionLost, WaitedTooLong) as exc:
            self._link.drop()
            raise StoreUnavailable(BROKEN) from exc
        except Refusal as refusal:
            yield from self._rolled_back()
            raise explained(refusal.sqlstate) from refusal
        outcome, replies = found.rows[0]
        if outcome != "committed":
            return NotCommitted()
        sent = self._sent
        if sent is None or sent.batch_id != batch_id:
            raise InternalError("a batch is settled that was not the last one sent")
        every = [part for part in (replies or "").split(";") if part]
        self._read(sent, every[sent.answered :])
        return Committed(tuple(sent.outcomes))


def _replies(result: Result) -> list[str]:
    text: str = result.rows[0][0]
    return text.split(";")


def _after_refusal(batch: Sequence[Command[Any]], packet: Packet) -> _Again:
    """Say how to go on: find the culprit first, then why it is refused.

    Of refused launches all are carried out by parts: those of known instances come in
    herds.
    """
    places = {place for place, _ in packet.commands}
    if len(places) > 1:
        return _Again(set(), places)
    if any(isinstance(batch[place], OpenExecution) for place in places):
        places = {at for at, one in enumerate(batch) if isinstance(one, OpenExecution)}
    return _Again(places, set())
