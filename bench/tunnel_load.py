"""Bytes for a tunnel to carry, in both directions, and how fast they went; none of them touches a disk."""

import math
import socket
import struct
import threading
import time
from enum import StrEnum

MEGABYTES = 400
BLOCK = bytes(256 * 1024)
BLOCKS = struct.Struct(">Q")
SOCKET_SECONDS = 60.0
START_SECONDS = 60.0


class Direction(StrEnum):
    """Which way the bytes go; a mirror reads, so most of its bytes come from behind the tunnel."""

    FROM = "from the far side"
    TO = "to the far side"


class Peer:
    """Sends as many blocks as a connection asks for, takes all that comes, and answers with how many bytes came."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def _accept(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with connection:
            asked = connection.recv(BLOCKS.size, socket.MSG_WAITALL)
            if len(asked) == BLOCKS.size:
                _send(connection, *BLOCKS.unpack(asked))
                connection.sendall(BLOCKS.pack(_drain(connection)))


def measured(address: tuple[str, int], connections: int, direction: Direction) -> float:
    """Megabytes a second between here and the peer behind the address, over that many connections at once."""
    blocks = MEGABYTES * 1_000_000 // len(BLOCK) // connections
    moved: list[int] = []

    def move() -> None:
        with socket.create_connection(address, timeout=SOCKET_SECONDS) as client:
            moved.append(_exchanged(client, blocks, direction))

    threads = [threading.Thread(target=move) for _ in range(connections)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    expected = blocks * len(BLOCK)
    if moved != [expected] * connections:
        raise SystemExit(f"bench: {moved} bytes arrived of {expected} on each of {connections} connections")
    return expected * connections / seconds / 1e6


def wait_for(address: tuple[str, int]) -> None:
    """Return when the peer answers through the address."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(address, timeout=5) as client:
                if _exchanged(client, 1, Direction.TO) == len(BLOCK):
                    return
        except (OSError, struct.error):
            pass
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: nothing answers through {address[0]}:{address[1]} in {START_SECONDS:g} s")
        time.sleep(0.1)


def _exchanged(client: socket.socket, blocks: int, direction: Direction) -> int:
    """Bytes that arrived where they were to go."""
    client.sendall(BLOCKS.pack(blocks if direction is Direction.FROM else 0))
    if direction is Direction.TO:
        _send(client, blocks)
        client.shutdown(socket.SHUT_WR)
        [count] = BLOCKS.unpack(client.recv(BLOCKS.size, socket.MSG_WAITALL))
        return int(count)
    # Our own direction ends after the other's: stunnel loses bytes now and then when it ends before.
    return _drain(client, blocks * len(BLOCK))


def _send(connection: socket.socket, blocks: int) -> None:
    for _ in range(blocks):
        connection.sendall(BLOCK)


def _drain(connection: socket.socket, most: float = math.inf) -> int:
    buffer, count = bytearray(1 << 20), 0
    while count < most and (received := connection.recv_into(buffer)):
        count += received
    return count
