"""A proxy before a PostgreSQL server that breaks connections at a chosen COMMIT."""

import contextlib
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

from attrs import define, field

from tests.postgres.requests import SYNC, Message, Requests, query

Phase: TypeAlias = Literal[
    "before_commit", "after_commit_before_answer", "hold", "cut_now", "refuse"
]

HOST = "127.0.0.1"
JOIN_SECS = 5.0


@define
class _Fault:
    """The armed fault and the state it leads to; shared by all connections."""

    refuse: Callable[[], None]
    fired: threading.Event = field(factory=threading.Event, init=False)
    flowing: threading.Event = field(factory=threading.Event, init=False)
    count: int = field(default=0, init=False)
    _phase: Phase | None = field(default=None, init=False)
    _commits: int = field(default=0, init=False)
    _then_refuse: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def arm(self, phase: Phase | None, nth: int, then_refuse: bool) -> None:
        with self._lock:
            self.fired.clear()
            self._phase, self._commits = phase, nth
            self._then_refuse = then_refuse

    def at(self, message: Message) -> Phase | None:
        """Say what happens to a client's message."""
        with self._lock:
            if self._phase is None or not message.commits:
                return None
            self._commits -= 1
            if self._commits > 0:
                return None
            phase, self._phase = self._phase, None
            return phase

    def strike(self, act: Callable[[], None]) -> None:
        """Do what the fault does, and tell of it when it is complete."""
        if self._then_refuse:
            self.refuse()
        act()
        self.count += 1
        self.fired.set()


class _Link:
    """One client's connection, and ours to the server on its behalf."""

    def __init__(
        self, client: socket.socket, server: socket.socket, fault: _Fault
    ) -> None:
        self._client, self._server, self._fault = client, server, fault
        self._token = b""
        """Withhold what the server sends, and cut when this is in it."""
        self._pumps = [_started(self._to_server), _started(self._to_client)]

    def cut(self) -> None:
        """End both connections; the server rolls back what is open."""
        for end in self._client, self._server:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut, and wait for the threads."""
        self.cut()
        for pump in self._pumps:
            pump.join(JOIN_SECS)
        self._client.close()
        self._server.close()

    def _to_server(self) -> None:
        requests = Requests()
        with contextlib.suppress(OSError):
            for data in _received(self._client):
                for message in requests.feed(data):
                    if not self._forwarded(message):
                        return
        self.cut()

    def _forwarded(self, message: Message) -> bool:
        """Pass a message on; say whether more may follow."""
        if message.asks_encryption:
            self._client.sendall(b"N")
            return True
        phase = self._fault.at(message)
        if phase == "before_commit":
            self._fault.strike(self.cut)
            return False
        if phase == "after_commit_before_answer":
            self._withhold_from(message)
            return False
        if phase == "hold":
            self._fault.strike(self._fault.flowing.clear)
        self._fault.flowing.wait()
        self._server.sendall(message.data)
        return True

    def _withhold_from(self, commit: Message) -> None:
        """Send COMMIT and a query of ours; its answer proves that COMMIT is through.

        The ROLLBACK is for a COMMIT that the server skipped because of an error.
        """
        token = uuid.uuid4().hex
        self._token = token.encode()
        end = b"" if commit.simple else SYNC
        probe = query(f"ROLLBACK; SELECT '{token}'")
        self._server.sendall(commit.data + end + probe)

    def _to_client(self) -> None:
        withheld = b""
        with contextlib.suppress(OSError):
            for data in _received(self._server):
                if not self._token:
                    self._fault.flowing.wait()
                    self._client.sendall(data)
                    continue
                withheld += data
                if self._token in withheld:
                    self._fault.strike(self.cut)
                    return
        self.cut()


class Proxy:
    """Forwards connections to a server until the fault that it is armed with.

    Clients are told that there is no TLS. Use it in a ``with`` block.

    Args:
        url: A database of the server, reached by TCP.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        self._server = (parts.hostname or HOST, parts.port or 5432)
        self._fault = _Fault(self._refuse)
        self._fault.flowing.set()
        self._links: list[_Link] = []
        self._listen(0)
        netloc = f"{user}{at}{HOST}:{self._port}"
        self.url = parts._replace(netloc=netloc).geturl()
        """The same database, by way of the proxy."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._refuse()
        self._acceptor.join(JOIN_SECS)
        self._cut_all()
        self._fault.flowing.set()
        for link in self._links:
            link.close()

    @property
    def fired(self) -> threading.Event:
        """Set when the armed fault has happened; after a COMMIT, when it is durable."""
        return self._fault.fired

    @property
    def count(self) -> int:
        """How many faults have happened."""
        return self._fault.count

    def arm(self, phase: Phase, nth: int = 1, *, then_refuse: bool = False) -> None:
        """Choose the next fault; it happens once.

        Args:
            phase: "before_commit" cuts the connection instead of forwarding COMMIT.
                "after_commit_before_answer" forwards it, waits until the server has
                acted on it and cuts without having delivered the answer. "hold"
                forwards nothing more, neither way on any connection, from before the
                COMMIT until `heal`; new connections are taken and held, too.
                "cut_now" cuts every connection; "refuse" refuses new ones until `heal`.
            nth: At which COMMIT from now on, all connections counted together; 0 for a
                "hold" at once. "cut_now" and "refuse" happen at once in any case.
            then_refuse: Whether new connections are refused, too, until `heal`.
        """
        at_once = {"cut_now": self._cut_all, "refuse": self._refuse}
        if nth == 0:
            at_once["hold"] = self._fault.flowing.clear
        act = at_once.get(phase)
        self._fault.arm(None if act else phase, nth, then_refuse)
        if act:
            self._fault.strike(act)

    def heal(self) -> None:
        """Disarm, take connections again, and forward what was held."""
        self._fault.arm(None, 0, then_refuse=False)
        self._fault.flowing.set()
        if not self._acceptor.is_alive():
            self._listen(self._port)

    def _listen(self, port: int) -> None:
        self._listener = socket.create_server((HOST, port))
        self._port: int = self._listener.getsockname()[1]
        self._acceptor = _started(self._accept)

    def _refuse(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(JOIN_SECS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            for end in client, server:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links.append(_Link(client, server, self._fault))

    def _cut_all(self) -> None:
        for link in list(self._links):
            link.cut()


def _started(run: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def _received(end: socket.socket) -> Iterator[bytes]:
    while data := end.recv(1 << 16):
        yield data
