"""Whoever must not pass is refused and counted, and those who may do not notice."""

import hashlib
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.tunnel import keys
from barnabas.tunnel.frames import HEADER, decode, encode
from barnabas.tunnel.keys import Role
from barnabas.tunnel.refusals import Reason
from tests.integration.test_tunnel_relay import Target, echo, everything
from tests.kafka_io import wait_until
from tests.tunnel_ends import Ends, running

Attempt = Callable[[Ends], None]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    target = Target(echo)
    yield target
    target.listening.close()


@pytest.fixture(scope="module")
def tunnel(lab_directory: Path, target: Target) -> Iterator[Ends]:
    with running(Ends(lab_directory, "tunnel-refusals", [target.address], limits={"handshake_seconds": 2})) as ends:
        yield ends


def as_client(key: Path, role: Role = Role.CONNECT) -> ssl.SSLContext:
    """A client that checks nothing and shows the certificate of one role in a key file."""
    identity = keys.load(key, role)
    context = without_certificate()
    with keys._as_file(identity.certificate + identity.private_key) as file:
        context.load_cert_chain(file)
    return context


def without_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def ask(ends: Ends, context: ssl.SSLContext, message: bytes) -> bytes:
    """What serve answers; empty if it hangs up. In TLS 1.3 a client hears of its refusal only when it reads."""
    try:
        with (
            socket.create_connection(ends.port, timeout=30) as plain,
            context.wrap_socket(plain, server_hostname="serve") as secure,
        ):
            secure.sendall(message)
            head = secure.recv(HEADER.size)
            return secure.recv(HEADER.unpack(head)[0]) if head else b""
    except (ssl.SSLError, ConnectionError):
        return b""


LIST = encode({"ask": "list"})


def wrong_certificate(ends: Ends) -> None:
    other = ends.directory / "other.key"
    if not other.exists():
        keys.create(other)
    assert ask(ends, as_client(other), LIST) == b""


def certificate_of_the_other_role(ends: Ends) -> None:
    assert ask(ends, as_client(ends.key, Role.SERVE), LIST) == b""


def no_certificate(ends: Ends) -> None:
    assert ask(ends, without_certificate(), LIST) == b""


def tls_1_2(ends: Ends) -> None:
    context = as_client(ends.key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert ask(ends, context, LIST) == b""


def garbage(ends: Ends) -> None:
    with socket.create_connection(ends.port, timeout=30) as client:
        try:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n" + os.urandom(2000))
            everything(client)
        except ConnectionError:
            pass


def hang_up(ends: Ends) -> None:
    socket.create_connection(ends.port, timeout=30).close()


def target_not_listed(ends: Ends) -> None:
    elsewhere = f"127.0.0.1:{ends.metrics_ports[0]}"  # something does listen there
    answer = decode(ask(ends, as_client(ends.key), encode({"ask": "open", "target": elsewhere})))
    assert not answer["ok"]
    assert answer["reason"] == Reason.TARGET


def bad_request(ends: Ends) -> None:
    answer = decode(ask(ends, as_client(ends.key), HEADER.pack(5) + b"hello"))
    assert answer["reason"] == Reason.REQUEST


def too_long_request(ends: Ends) -> None:
    answer = decode(ask(ends, as_client(ends.key), HEADER.pack(1 << 30) + b"hello"))
    assert answer["reason"] == Reason.REQUEST


def say_nothing(ends: Ends) -> None:
    with socket.create_connection(ends.port, timeout=30) as client:
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


@pytest.mark.parametrize(
    ("attempt", "reason"), [*ATTEMPTS.items(), (say_nothing, Reason.SLOW)], ids=lambda it: getattr(it, "__name__", "")
)
def test_whoever_must_not_pass_is_refused_and_counted(tunnel: Ends, attempt: Attempt, reason: Reason) -> None:
    before = tunnel.metric("serve", "refused_total", reason=reason)
    attempt(tunnel)
    wait_until(
        lambda: tunnel.metric("serve", "refused_total", reason=reason) == before + 1, 10, f"{reason} to be counted"
    )
    assert f": {reason} (" in tunnel.log("serve")


def test_an_expired_certificate_is_refused_and_counted(lab_directory: Path, target: Target) -> None:
    ends = Ends(lab_directory, "tunnel-expired", [target.address], connect={"loopback": "127.0.2.1"})
    now, day = datetime.now(UTC), timedelta(days=1)
    signer, authority = keys._authority(now - 10 * day, now + 10 * day)
    serve = keys._signed(Role.SERVE, signer, authority, now - 10 * day, now + 10 * day)
    connect = keys._signed(Role.CONNECT, signer, authority, now - 10 * day, now - day)
    ends.key.write_text(keys._pem(authority) + serve + connect)
    ends.start("serve")
    try:
        wait_until(lambda: ends.metric("serve", "list_current") == 1, 60, "serve to run")
        assert ask(ends, as_client(ends.key), LIST) == b""
        wait_until(
            lambda: ends.metric("serve", "refused_total", reason=Reason.EXPIRED) == 1, 10, "the refusal to be counted"
        )
    finally:
        ends.stop("serve")


def test_a_thousand_attempts_leave_a_running_copy_unharmed(tunnel: Ends, target: Target) -> None:
    before = tunnel.metric("serve", "refused_total")
    stop, rounds = threading.Event(), []

    def copy() -> None:
        block = os.urandom(1 << 20)
        with tunnel.dial() as client:
            while not stop.is_set():
                client.sendall(block)
                received = hashlib.sha256()
                left = len(block)
                while left:
                    data = client.recv(min(left, 65536))
                    assert data
                    received.update(data)
                    left -= len(data)
                rounds.append(received.digest() == hashlib.sha256(block).digest())

    copying = threading.Thread(target=copy)
    copying.start()
    attempts = list(ATTEMPTS)
    for number in range(1000):
        attempts[number % len(attempts)](tunnel)
    stop.set()
    copying.join(60)
    wait_until(lambda: tunnel.metric("serve", "refused_total") == before + 1000, 30, "1,000 refusals to be counted")
    print(f"{len(rounds)} MiB copied and compared both ways while 1,000 attempts were refused")
    assert len(rounds) > 50
    assert all(rounds)
    assert "is a bug" not in tunnel.log("serve")


def test_connections_over_the_limit_are_refused_and_let_in_again_later(lab_directory: Path, target: Target) -> None:
    connect = {"loopback": "127.0.2.1"}
    ends = Ends(lab_directory, "tunnel-limit", [target.address], connect=connect, limits={"connections": 5})
    with running(ends):
        clients = [ends.dial() for _ in range(5)]
        for client in clients:
            client.sendall(b"ping")
            assert client.recv(10) == b"ping"
        with ends.dial() as sixth:
            wait_until(lambda: ends.metric("connect", "refused_total", reason=Reason.LIMIT) == 1, 10, "the refusal")
            assert sixth.recv(10) == b""
        clients.pop().close()
        wait_until(lambda: ends.metric("connect", "open_connections") == 4, 10, "a place to become free")
        with ends.dial() as sixth:
            sixth.sendall(b"ping")
            assert sixth.recv(10) == b"ping"
        for client in clients:
            client.close()


def test_an_idle_connection_is_closed_and_says_so(lab_directory: Path, target: Target) -> None:
    connect = {"loopback": "127.0.2.1"}
    ends = Ends(lab_directory, "tunnel-idle", [target.address], connect=connect, limits={"idle_seconds": 1})
    with running(ends), ends.dial() as client:
        client.sendall(b"ping")
        assert client.recv(10) == b"ping"
        with pytest.raises(ConnectionResetError):
            client.recv(10)
        wait_until(lambda: ends.metric("serve", "open_connections") == 0, 10, "serve to close it too")
        assert (
            ends.metric("connect", "closed_total", why="idle") + ends.metric("serve", "closed_total", why="idle") >= 1
        )
