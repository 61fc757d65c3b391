"""The SQLite backend: one connection, one physical transaction for each batch.

A batch takes the write lock first and waits for it by yielding, never by blocking.
The marker row of this writer, updated in place by every batch, tells afterwards
whether a batch whose COMMIT was not answered took effect.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from ..backend import (
    AnswerLost,
    Committed,
    Descriptor,
    NotCommitted,
    Pause,
    Settlement,
    Waits,
)
from ..commands import (
    Advance,
    Command,
    Question,
)
from ..model.errors import InternalError, TrioletError
from ..sql import HANDLERS
from ..sql.advancing import write_first
from . import schema
from .connection import BUSY_SECS, MEMORY, connect, explained, is_locked, locked
from .session import SqliteSession

PAUSE_SECS = 0.01
PAUSES_MAX = round(BUSY_SECS / PAUSE_SECS)
DAY_MICROS = 86_400_000_000


class _Culprit(Exception):
    """A command failed after it had changed something: its batch starts over."""

    def __init__(self, index: int, outcome: TrioletError) -> None:
        super().__init__(index)
        self.index = index
        self.outcome = outcome


class SqliteBackend:
    """A store in one SQLite file.

    Args:
        path: Of the file, or ``:memory:``.
        clock: The store's clock: microseconds since 1970.
        writer: 16 random bytes that name this connection in the marker table.
        create: Whether a missing file may be made.
        migrate: Whether an older schema may be raised; a file without our tables
            gets them whenever *create* is set.

    Raises:
        StoreUnusable: The file cannot be used; see `connect`.
        StoreLocked: Another process kept the file locked for 10 seconds.
        SchemaTooNew: A newer release wrote the store.
        SchemaMissing: The schema is older and *migrate* is not set.
    """

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], int],
        writer: bytes,
        create: bool = True,
        migrate: bool = False,
    ) -> None:
        self._path = path
        self._clock = clock
        self._writer = writer
        self._last: tuple[UUID, tuple[object, ...]] | None = None
        self._db = connect(path, create=create)
        try:
            self._prepare(create, migrate)
        except sqlite3.Error as exc:
            self._db.close()
            raise explained(path, exc) from exc
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, create: bool, migrate: bool) -> None:
        found = schema.version_of(self._db)
        if migrate or (create and found == 0):
            schema.migrate(self._db, self._clock())
        schema.require(self._db)
        self._db.execute("PRAGMA busy_timeout = 0")

    @property
    def _session(self) -> SqliteSession:
        return SqliteSession(self._db, self._clock)

    @property
    def descriptor(self) -> Descriptor:
        """Say what this backend is: one connection, fast enough to run inline."""
        return Descriptor("sqlite", schema.NEWEST, capacity=1, inline=True)

    def close(self) -> None:
        """Close the file; an open transaction is rolled back."""
        self._db.close()

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Carry out *batch* in one transaction; see `Backend.apply`."""
        if all(isinstance(command, Question) for command in batch):
            return (yield from self._answer(batch))
        refused: dict[int, TrioletError] = {}
        while True:
            yield from self._begin()
            try:
                now = self._clock()
                outcomes = yield from self._carry_out(batch, refused, now)
                self._mark(batch_id, now)
            except _Culprit as culprit:
                self._rollback()
                refused[culprit.index] = culprit.outcome
            except sqlite3.Error as exc:
                self._rollback()
                raise explained(self._path, exc) from exc
            except BaseException:
                self._rollback()
                raise
            else:
                self._last = (batch_id, tuple(outcomes))
                self._commit()
                return outcomes

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        """Read our marker row; the file's lock has ordered the writers already."""
        self._reconnect()
        yield from self._begin()
        try:
            row = self._db.execute(
                "SELECT batch_id FROM triolet_commit_marker WHERE writer = ?",
                (self._writer,),
            ).fetchone()
        finally:
            self._rollback()
        if row is None or row[0] != batch_id.bytes:
            return NotCommitted()
        if self._last is None or self._last[0] != batch_id:
            raise InternalError("a batch is settled that was not the last one sent")
        return Committed(self._last[1])

    def _reconnect(self) -> None:
        """Leave behind whatever state the failure put the connection into."""
        if self._path == MEMORY:
            # Another connection would be another database, and an empty one.
            self._rollback()
            return
        self._db.close()
        self._db = connect(self._path, create=False)
        self._db.execute("PRAGMA busy_timeout = 0")

    def _begin(self) -> Waits[None]:
        """Take the write lock, yielding while another process has it."""
        for _ in range(PAUSES_MAX):
            if self._took_lock():
                return
            yield Pause(PAUSE_SECS)
        raise locked(self._path)

    def _took_lock(self) -> bool:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as exc:
            if is_locked(exc):
                return False
            raise explained(self._path, exc) from exc
        return True

    def _carry_out(
        self,
        batch: Sequence[Command[Any]],
        refused: dict[int, TrioletError],
        now: int,
    ) -> Waits[list[object]]:
        outcomes: list[object] = []
        for index, command in enumerate(batch):
            if index in refused:
                outcomes.append(refused[index])
            else:
                outcomes.append((yield from self._one(index, command, now)))
        return outcomes

    def _one(self, index: int, command: Command[Any], now: int) -> Waits[object]:
        changes = self._db.total_changes
        enlisted = command.enlisted
        try:
            if isinstance(command, Advance) and command.write is not None:
                command = yield from write_first(self._session, command, now)
                now = self._clock()
            handler = HANDLERS[type(command)]
            return (yield from handler(self._session, command, now))
        except TrioletError as rejection:
            if self._db.total_changes == changes and not enlisted:
                return rejection
            raise _Culprit(index, rejection) from rejection
        except sqlite3.Error as exc:
            if is_locked(exc):
                raise
            raise _Culprit(index, explained(self._path, exc)) from exc

    def _mark(self, batch_id: UUID, now: int) -> None:
        marked = self._db.execute(
            "UPDATE triolet_commit_marker SET batch_id = ?, committed_at = ? "
            "WHERE writer = ?",
            (batch_id.bytes, now, self._writer),
        )
        if marked.rowcount == 0:
            self._db.execute(
                "INSERT INTO triolet_commit_marker VALUES (?, ?, ?)",
                (self._writer, batch_id.bytes, now),
            )
            self._db.execute(
                "DELETE FROM triolet_commit_marker WHERE committed_at < ?",
                (now - DAY_MICROS,),
            )

    def _commit(self) -> None:
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as exc:
            raise AnswerLost(str(explained(self._path, exc))) from exc

    def _rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _answer(self, batch: Sequence[Command[Any]]) -> Waits[list[object]]:
        try:
            self._db.execute("BEGIN")
            try:
                return (yield from self._carry_out(batch, {}, self._clock()))
            finally:
                self._rollback()
        except _Culprit as culprit:
            raise culprit.outcome from culprit
        except sqlite3.Error as exc:
            raise explained(self._path, exc) from exc


def migrate_file(path: str, clock: Callable[[], int]) -> tuple[int, int]:
    """Raise a file's schema; give the versions before and after.

    Raises:
        StoreError: The file cannot be used, or a newer release wrote it.
    """
    db = connect(path, create=True)
    try:
        return schema.migrate(db, clock())
    except sqlite3.Error as exc:
        raise explained(path, exc) from exc
    finally:
        db.close()
