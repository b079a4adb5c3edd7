"""Attempts to get through a tunnel's port by those who must not, each with the reason it is to be refused for."""

import os
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from barnabas.tunnel import keys
from barnabas.tunnel.frames import HEADER, decode, encode
from barnabas.tunnel.keys import Role
from barnabas.tunnel.refusals import Reason
from tests.tunnel_ends import Ends
from tests.tunnel_targets import everything

AT_ONCE = 8


@dataclass(frozen=True)
class Door:
    """What an attempt needs: serve's port, its key file, another tunnel's, and an address that is not on the list.

    Text and numbers only: it travels as JSON into another network.
    """

    host: str
    port: int
    key: str
    stranger: str
    elsewhere: str

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


Attempt = Callable[[Door], None]


def door_of(ends: Ends) -> Door:
    stranger = ends.directory / "stranger.key"
    if not stranger.exists():
        keys.create(stranger)
    return Door(*ends.port, str(ends.key), str(stranger), f"127.0.0.1:{ends.metrics_ports[0]}")


def attempt_often(door: Door, count: int) -> int:
    """So many attempts of every kind in turn, a few at once; how many were made, which is all unless one got in."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return len(list(pool.map(lambda attempt: attempt(door), islice(cycle(ATTEMPTS), count))))


def as_client(key: str, role: Role = Role.CONNECT) -> ssl.SSLContext:
    """A client that checks nothing and shows the certificate of one role in a key file."""
    identity = keys.load(Path(key), role)
    context = without_certificate()
    with keys._as_file(identity.certificate + identity.private_key) as file:
        context.load_cert_chain(file)
    return context


def without_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def ask(door: Door, context: ssl.SSLContext, message: bytes) -> bytes:
    """What serve answers; empty if it hangs up. In TLS 1.3 a client hears of its refusal only when it reads."""
    try:
        with (
            socket.create_connection(door.address, timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="serve") as secure,
        ):
            secure.sendall(message)
            head = secure.recv(HEADER.size)
            return secure.recv(HEADER.unpack(head)[0]) if head else b""
    except (ssl.SSLError, ConnectionError):
        return b""


LIST = encode({"ask": "list"})


def wrong_certificate(door: Door) -> None:
    assert ask(door, as_client(door.stranger), LIST) == b""


def certificate_of_the_other_role(door: Door) -> None:
    assert ask(door, as_client(door.key, Role.SERVE), LIST) == b""


def no_certificate(door: Door) -> None:
    assert ask(door, without_certificate(), LIST) == b""


def tls_1_2(door: Door) -> None:
    context = as_client(door.key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert ask(door, context, LIST) == b""


def garbage(door: Door) -> None:
    with socket.create_connection(door.address, timeout=30) as client:
        try:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n" + os.urandom(2000))
            everything(client)
        except ConnectionError:
            pass


def hang_up(door: Door) -> None:
    socket.create_connection(door.address, timeout=30).close()


def target_not_listed(door: Door) -> None:
    answer = decode(ask(door, as_client(door.key), encode({"ask": "open", "target": door.elsewhere})))
    assert not answer["ok"]
    assert answer["reason"] == Reason.TARGET


def bad_request(door: Door) -> None:
    answer = decode(ask(door, as_client(door.key), HEADER.pack(5) + b"hello"))
    assert answer["reason"] == Reason.REQUEST


def too_long_request(door: Door) -> None:
    answer = decode(ask(door, as_client(door.key), HEADER.pack(1 << 30) + b"hello"))
    assert answer["reason"] == Reason.REQUEST


def say_nothing(door: Door) -> None:
    with socket.create_connection(door.address, timeout=30) as client:
        assert everything(client) == b""


ATTEMPTS: dict[Attempt, Reason] = {
    wrong_certificate: Reason.CERTIFICATE,
    certificate_of_the_other_role: Reason.CERTIFICATE,
    no_certificate: Reason.NO_CERTIFICATE,
    tls_1_2: Reason.TLS_VERSION,
    garbage: Reason.NOT_TLS,
    hang_up: Reason.HUNG_UP,
    target_not_listed: Reason.TARGET,
    bad_request: Reason.REQUEST,
    too_long_request: Reason.REQUEST,
}
