"""One PostgreSQL connection, below the cursors.

Statements are prepared once per connection and sent in libpq's pipeline: whatever is
sent together costs one round trip. Waiting is yielded, so that an event loop can await
the socket.
"""

from collections.abc import Sequence
from itertools import count
from typing import TypeAlias

import psycopg
from attrs import frozen
from psycopg import OperationalError, pq
from psycopg.adapt import Transformer

from ..backend import Readable, Waits, Writable
from ..model.errors import InternalError
from ..sql.session import Row, Value

Statement: TypeAlias = tuple[str, Sequence[Value]]

_TUPLES_OK = int(pq.ExecStatus.TUPLES_OK)
_OK = (int(pq.ExecStatus.COMMAND_OK), _TUPLES_OK)


class ConnectionLost(Exception):
    """The connection broke; what it was about to do may or may not have happened."""


class Refusal(Exception):
    """The server refused a statement.

    Args:
        index: Of the statement among those that were sent together.
        sqlstate: The five characters of the SQL standard that say why.
    """

    def __init__(self, index: int, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.index = index
        self.sqlstate = sqlstate


@frozen
class Result:
    """What one statement gave."""

    rows: list[Row]
    changed: int
    tag: bytes
    """The command's name, as the server calls it."""


def _encoded(value: Value) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if value is None:
        return None
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    return str(value).encode()


def open_wire(conninfo: bytes) -> Waits["Wire"]:
    """Connect.

    Raises:
        ConnectionLost: The connection could not be made; the text is libpq's.
    """
    raw = pq.PGconn.connect_start(conninfo)
    try:
        yield from _polled(raw)
        raw.nonblocking = 1
    except BaseException:
        raw.finish()
        raise
    return Wire(raw)


def _polled(raw: pq.abc.PGconn) -> Waits[None]:
    while raw.status != pq.ConnStatus.BAD:
        match raw.connect_poll():
            case pq.PollingStatus.OK:
                return
            case pq.PollingStatus.READING:
                yield Readable(raw.socket)
            case pq.PollingStatus.WRITING:
                yield Writable(raw.socket)
            case _:
                break
    raise ConnectionLost(raw.get_error_message("utf-8"))


class Wire:
    """An open connection; one exchange at a time."""

    def __init__(self, raw: pq.abc.PGconn) -> None:
        self.raw = raw
        self.connection = psycopg.Connection[Row](raw)
        """The same connection, for user code that needs a cursor."""
        self.connection.autocommit = True  # transactions are ours
        self._transformer = Transformer(self.connection)
        self._prepared: dict[str, bytes] = {}
        self._names = count()

    @property
    def broken(self) -> bool:
        """Whether the connection is known to be lost."""
        return self.raw.status == pq.ConnStatus.BAD

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open and still good."""
        return self.raw.transaction_status == pq.TransactionStatus.INTRANS

    def close(self) -> None:
        """Close the socket; the server rolls back what was open."""
        self.raw.finish()

    def exchange(self, statements: Sequence[Statement]) -> Waits[list[Result]]:
        """Send all *statements* at once and give their results.

        Raises:
            Refusal: The first one that failed; those after it were not carried out.
            ConnectionLost: The connection broke before all answers had come.
        """
        try:
            return (yield from self._exchange(statements))
        except OperationalError as exc:
            raise ConnectionLost(str(exc)) from exc

    def _exchange(self, statements: Sequence[Statement]) -> Waits[list[Result]]:
        raw = self.raw
        raw.enter_pipeline_mode()
        awaited: list[tuple[int, str | None]] = []
        for index, (sql, values) in enumerate(statements):
            name = self._prepared.get(sql)
            if name is None:
                name = self._prepared[sql] = b"t%d" % next(self._names)
                raw.send_prepare(name, sql.encode())
                awaited.append((index, sql))
            raw.send_query_prepared(name, [_encoded(value) for value in values])
            awaited.append((index, None))
        raw.pipeline_sync()
        while raw.flush():
            yield Writable(raw.socket)
        results: list[Result] = []
        refusal: Refusal | None = None
        for index, preparing in awaited:
            while raw.is_busy():
                yield Readable(raw.socket)
                raw.consume_input()
            answer = self._answer()
            raw.get_result()  # the end of a statement's results, which came with it
            status = answer.status
            if status in _OK:
                if preparing is None:
                    results.append(self._decoded(answer, status))
                continue
            if status == pq.ExecStatus.FATAL_ERROR:
                refusal = refusal or _refusal(index, answer)
            if preparing is not None:
                del self._prepared[preparing]
        while raw.is_busy():
            yield Readable(raw.socket)
            raw.consume_input()
        self._answer()  # to the Sync
        raw.exit_pipeline_mode()
        if refusal is not None:
            raise refusal
        return results

    def _decoded(self, result: pq.abc.PGresult, status: int) -> Result:
        rows: list[Row] = []
        if status == _TUPLES_OK:
            transformer = self._transformer
            transformer.set_pgresult(result, set_loaders=True)
            rows = transformer.load_rows(0, result.ntuples, tuple)
        return Result(rows, result.command_tuples or 0, result.command_status or b"")

    def notices(self) -> list[str]:
        """Take the notifications that have arrived; give their channels.

        Raises:
            ConnectionLost: The connection broke.
        """
        try:
            self.raw.consume_input()
        except OperationalError as exc:
            raise ConnectionLost(str(exc)) from exc
        heard = []
        while (notice := self.raw.notifies()) is not None:
            heard.append(notice.relname.decode())
        return heard

    def script(self, sql: str) -> Waits[None]:
        """Carry out many statements that bind nothing, as one.

        Raises:
            Refusal: One of them failed.
            ConnectionLost: The connection broke.
        """
        raw = self.raw
        try:
            raw.send_query(sql.encode())
            while raw.flush():
                yield Writable(raw.socket)
            refusal = None
            while True:
                while raw.is_busy():
                    yield Readable(raw.socket)
                    raw.consume_input()
                result = raw.get_result()
                if result is None:
                    break
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    refusal = _refusal(0, result)
        except OperationalError as exc:
            raise ConnectionLost(str(exc)) from exc
        if refusal is not None:
            raise refusal

    def _answer(self) -> pq.abc.PGresult:
        """Take a result that has arrived."""
        raw = self.raw
        result = raw.get_result()
        if raw.status == pq.ConnStatus.BAD:
            raise ConnectionLost(raw.get_error_message("utf-8"))
        if result is None:
            raise InternalError("PostgreSQL gave fewer answers than it was asked for")
        return result


def _refusal(index: int, result: pq.abc.PGresult) -> Refusal:
    state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
    return Refusal(index, state.decode())
