"""A server that speaks TLS with a certificate made for the occasion, and nothing after the handshake."""

import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from barnabas.lab.certificates import make_certificates


@dataclass(frozen=True)
class TlsServer:
    address: str
    ca: Path


@contextmanager
def tls_server(directory: Path, names: Sequence[str], days: int = 30, *, mutual: bool = False) -> Iterator[TlsServer]:
    """Listens on localhost; its certificate is good for the names and for so many days from now.

    `mutual`: clients must show a certificate of the same authority.
    """
    files = make_certificates(directory, names, timedelta(days=days))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server)
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(files.ca)
    with socket.create_server(("localhost", 0)) as listening:

        def attend(plain: socket.socket) -> None:
            with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(1)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=attend, args=(listening.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield TlsServer(f"localhost:{listening.getsockname()[1]}", files.ca)
        listening.shutdown(socket.SHUT_RDWR)
