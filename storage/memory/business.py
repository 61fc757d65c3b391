"""The database of the memory store's users: where their enlisted writes go."""

import sqlite3
from weakref import finalize

from ..commands.command import EnlistedWrite, WriteFailed, call_enlisted


class Business:
    """A SQLite database in memory that is made when it is first needed."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The one connection, without implicit transactions."""
        if self._connection is None:
            self._connection = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False
            )
            # It lives as long as the store, which nobody need close.
            finalize(self, self._connection.close)
        return self._connection

    def write(self, write: EnlistedWrite) -> None:
        """Call user code in a transaction of its own and commit what it wrote.

        Raises:
            WriteFailed: What the user code raised, or that it ended the transaction;
                its rows are rolled back.
        """
        self.connection.execute("BEGIN")
        try:
            self._call(write)
            self.connection.execute("COMMIT")
        except sqlite3.Error as exc:
            raise WriteFailed(exc) from exc
        finally:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def _call(self, write: EnlistedWrite) -> None:
        cursor = self.connection.cursor()
        try:
            call_enlisted(write, cursor)
        finally:
            cursor.close()
        if not self.connection.in_transaction:
            error = RuntimeError("the enlisted write ended the transaction")
            raise WriteFailed(error)

    def close(self) -> None:
        """Forget all rows."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
