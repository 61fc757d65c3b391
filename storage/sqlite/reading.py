"""Answering questions from a SQLite file without changing it or the files beside it.

A question needs no right to write. Where nothing waits in a log beside the file, the
file is the whole truth and is read without SQLite's locks, which would be files too;
afterwards we look whether somebody wrote meanwhile, and if so, read once more. A log
that holds something is read the ordinary way, with its locks.
"""

import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from ..backend import Descriptor, NotCommitted, Pause, Settlement, Waits
from ..commands import Command, Question
from ..model.errors import StoreUnusable, TrioletError
from ..sql import HANDLERS
from . import schema
from .connection import BUSY_SECS, check_path, explained, locked, open_file
from .session import SqliteSession

LOGS = ("-wal", "-journal")
PAUSE_SECS = 0.01
PAUSES_MAX = round(BUSY_SECS / PAUSE_SECS)


class SqliteReader:
    """A store in one SQLite file that is there and is only read.

    Args:
        path: Of the file.
        clock: The store's clock: microseconds since 1970.

    Raises:
        StoreUnusable: There is no such file.
    """

    def __init__(self, path: str, *, clock: Callable[[], int]) -> None:
        self._path = path
        self._clock = clock
        check_path(Path(path), create=False)

    @property
    def descriptor(self) -> Descriptor:
        """Say what this backend is: one connection, fast enough to run inline."""
        return Descriptor("sqlite", schema.NEWEST, capacity=1, inline=True)

    def close(self) -> None:
        """Do nothing: the file is open only while it answers."""

    def apply(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Sequence[object]]:
        """Answer questions; see `Backend.apply`.

        Raises:
            StoreUnusable: One of them is no question, or the file cannot be read.
            StoreLocked: Another process kept the file locked for 10 seconds.
            SchemaTooNew: A newer release wrote the store.
            SchemaMissing: The schema is older, or there is none.
        """
        if not all(isinstance(command, Question) for command in batch):
            raise StoreUnusable(f"the store {self._path!r} was opened only for reading")
        for _ in range(PAUSES_MAX):
            before = self._stamp()
            still = not self._logged()
            try:
                answers = yield from self._answer(batch, still)
            except (sqlite3.Error, TrioletError) as exc:
                if not still or self._stamp() == before:
                    raise self._explained(exc) from exc
            else:
                if not still or self._stamp() == before:
                    return answers
            yield Pause(PAUSE_SECS)
        raise locked(self._path)

    def settle(
        self, batch_id: UUID, batch: Sequence[Command[Any]]
    ) -> Waits[Settlement]:
        """Say no: nothing is ever written."""
        yield from ()
        return NotCommitted()

    def _answer(
        self, batch: Sequence[Command[Any]], still: bool
    ) -> Waits[list[object]]:
        mode = "mode=ro&immutable=1" if still else "mode=ro"
        db = open_file(f"{Path(self._path).absolute().as_uri()}?{mode}", uri=True)
        try:
            # One transaction, so that all answers are of one moment.
            db.execute("BEGIN")
            schema.require(db)
            session = SqliteSession(db, self._clock)
            outcomes: list[object] = []
            for question in batch:
                outcome = yield from self._one(session, question)
                outcomes.append(outcome)
            return outcomes
        finally:
            db.close()

    def _one(self, session: SqliteSession, question: Command[Any]) -> Waits[object]:
        handler = HANDLERS[type(question)]
        try:
            return (yield from handler(session, question, self._clock()))
        except TrioletError as rejection:
            return rejection

    def _stamp(self) -> tuple[int, int, int] | None:
        """Give what is different once somebody has written the file."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _logged(self) -> bool:
        """Tell whether a log holds what the file does not."""
        for log in LOGS:
            try:
                if os.stat(self._path + log).st_size:
                    return True
            except OSError:
                continue
        return False

    def _explained(self, exc: sqlite3.Error | TrioletError) -> TrioletError:
        if isinstance(exc, TrioletError):
            return exc
        code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
        if (
            code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            and self._logged()
        ):
            return StoreUnusable(
                f"the store {self._path!r} was not closed properly and cannot be read "
                "here: make its folder writable, or copy it with the files whose names "
                "begin with its own to another folder"
            )
        return explained(self._path, exc)
