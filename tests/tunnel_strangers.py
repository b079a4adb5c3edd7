"""Strangers at a tunnel's port: so many connections at a time, each opened anew when it is cut.

A process of its own, `python -m tests.tunnel_strangers HOST PORT COUNT KINDS ADDRESSES`, until it is ended. A stranger
is silent, sends garbage, or stops halfway through its handshake; ADDRESSES are the source addresses it comes from.
"""

import selectors
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from tests.tunnel_attempts import without_certificate

KINDS = ("silent", "garbage", "halfway", "one-byte")


def hello() -> bytes:
    """The first flight of a TLS client; one who sends it and no more has stopped halfway."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = without_certificate().wrap_bio(incoming, outgoing, server_hostname="serve")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


@contextmanager
def strangers(address: tuple[str, int], count: int, kinds: str, sources: str) -> Iterator[None]:
    """They are there inside the block: each has been connected once when it begins."""
    command = [sys.executable, "-m", "tests.tunnel_strangers", *map(str, address), str(count), kinds, sources]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        assert process.stdout.readline() == "all were there\n"
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


class Crowd:
    """The connections, and what the next one does and where it comes from."""

    def __init__(self, address: tuple[str, int], kinds: list[str], sources: list[str]) -> None:
        self.address = address
        self.kinds, self.sources = cycle(kinds), cycle(sources)
        self.words = {"silent": b"", "garbage": b"GET / HTTP/1.1\r\n\r\n", "halfway": hello(), "one-byte": b"\x16"}
        self.selector = selectors.DefaultSelector()
        self.connected = 0

    def come(self) -> None:
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: the port is chosen with the connection
        one.bind((next(self.sources), 0))
        one.connect_ex(self.address)
        self.selector.register(one, selectors.EVENT_WRITE, next(self.kinds))

    def attend(self) -> None:
        for key, mask in self.selector.select(1):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            try:
                if mask & selectors.EVENT_WRITE:
                    one.send(self.words[key.data] or b"")
                    self.connected += 1
                    self.selector.modify(one, selectors.EVENT_READ, key.data)
                elif not one.recv(65536):
                    raise ConnectionResetError
            except OSError:
                self.selector.unregister(one)
                one.close()
                self.come()


def main() -> None:
    host, port, count, kinds, sources = sys.argv[1:]
    crowd = Crowd((host, int(port)), kinds.split(","), sources.split(","))
    for _ in range(int(count)):
        crowd.come()
    told = False
    while True:
        crowd.attend()
        if not told and crowd.connected >= int(count):
            told = True
            print("all were there", flush=True)


if __name__ == "__main__":
    main()
