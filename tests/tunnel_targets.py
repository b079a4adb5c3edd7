"""What a tunnel leads to in tests: a server that does as it is told."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

Behaviour = Callable[[socket.socket], None]


class Target:
    """A TCP server in the source network; each connection is handed to `behaviour` in a thread of its own."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionResetError):
            self.behaviour(connection)


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data)


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))
