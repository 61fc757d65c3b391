"""What a client sends to PostgreSQL, message by message, and which message commits."""

import re
import struct
from collections.abc import Iterator

from attrs import define, field, frozen

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104

_COMMIT = re.compile(
    rb"(?:^|;)\s*(?:COMMIT|END)(?:\s+(?:WORK|TRANSACTION))?(?:\s+AND\s+NO\s+CHAIN)?"
    rb"[\s;]*$",
    re.IGNORECASE,
)


@frozen
class Message:
    """One message, whole."""

    data: bytes
    commits: bool = False
    """Whether the server ends a transaction by COMMIT when it gets this message."""
    asks_encryption: bool = False
    """Whether it asks for TLS or GSS, which is answered by one byte."""

    @property
    def simple(self) -> bool:
        """Whether it is a query that needs no Sync."""
        return self.data[:1] == b"Q"


def query(text: str) -> bytes:
    """Write a simple query."""
    body = text.encode() + b"\0"
    return b"Q" + struct.pack("!I", len(body) + 4) + body


SYNC = b"S" + struct.pack("!I", 4)


@define
class Requests:
    """Takes the bytes of one connection as they come, and gives whole messages."""

    _pending: bytearray = field(factory=bytearray, init=False)
    _started: bool = field(default=False, init=False)
    _commits: dict[bytes, bool] = field(factory=dict, init=False)
    """By the name of a prepared statement: whether it is a COMMIT."""
    _portals: dict[bytes, bool] = field(factory=dict, init=False)
    """By the name of a portal: whether its statement is a COMMIT."""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Add bytes; give the messages that are complete now."""
        self._pending += data
        while True:
            tag = 1 if self._started else 0
            if len(self._pending) < tag + 4:
                return
            (length,) = struct.unpack_from("!I", self._pending, tag)
            if len(self._pending) < tag + length:
                return
            message = bytes(self._pending[: tag + length])
            del self._pending[: tag + length]
            yield self._typed(message) if self._started else self._first(message)

    def _first(self, data: bytes) -> Message:
        (code,) = struct.unpack_from("!I", data, 4)
        asks = code in {SSL_REQUEST, GSS_REQUEST}
        self._started = not asks
        return Message(data, asks_encryption=asks)

    def _typed(self, data: bytes) -> Message:
        kind, body = data[:1], data[5:]
        if kind == b"Q":
            return Message(data, _is_commit(body[:-1]))
        if kind == b"E":
            return Message(data, self._portals.get(body.partition(b"\0")[0], False))
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._commits[name] = _is_commit(text)
        elif kind == b"B":
            portal, statement, _ = body.split(b"\0", 2)
            self._portals[portal] = self._commits.get(statement, False)
        return Message(data)


def _is_commit(text: bytes) -> bool:
    return _COMMIT.search(text) is not None
