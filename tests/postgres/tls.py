"""A front that speaks TLS for a server, whatever the server itself was built with."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

CERTIFICATE = Path(__file__).with_name("tls.pem")
"""For 127.0.0.1, signed by itself; the key in it is a secret of nobody's."""
_SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")
"""PostgreSQL manual, "SSLRequest (F)": the first eight bytes of who wants TLS."""


class TlsFront:
    """Takes TLS connections on a port of its own and passes on what they hold.

    Args:
        upstream: The port of the server on 127.0.0.1.
    """

    def __init__(self, upstream: int) -> None:
        self.encrypted = self.plain = 0
        """How many connections came, with TLS and without; those are not served."""
        self._upstream = upstream
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(CERTIFICATE)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()

    def _accept(self) -> None:
        with contextlib.ExitStack() as stack:
            while True:
                try:
                    client, _ = self._listener.accept()
                except OSError:
                    return
                serving = threading.Thread(target=self._serve, args=[client])
                serving.start()
                stack.callback(serving.join)

    def _serve(self, client: socket.socket) -> None:
        # Whoever goes away, in the handshake or later, ends only this connection.
        with contextlib.suppress(OSError), client:
            if client.recv(len(_SSL_REQUEST), socket.MSG_WAITALL) != _SSL_REQUEST:
                self.plain += 1
                return
            client.sendall(b"S")
            with (
                self._context.wrap_socket(client, server_side=True) as secure,
                socket.create_connection(("127.0.0.1", self._upstream)) as server,
            ):
                self.encrypted += 1
                back = threading.Thread(target=_pass_on, args=[server, secure])
                back.start()
                _pass_on(secure, server)
                back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
