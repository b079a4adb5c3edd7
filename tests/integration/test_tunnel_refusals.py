"""Whoever must not pass is refused and counted, and those who may do not notice."""

import asyncio
import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas.config.tunnel import Address, Limits
from barnabas.errors import Unavailable
from barnabas.tunnel import keys
from barnabas.tunnel.keys import Role
from barnabas.tunnel.link import Link
from barnabas.tunnel.refusals import Reason
from barnabas.tunnel.relay import Scratch
from tests.kafka_io import wait_until
from tests.tunnel_attempts import ATTEMPTS, LIST, Attempt, as_client, ask, attempt_often, door_of, say_nothing
from tests.tunnel_ends import Ends, running
from tests.tunnel_targets import Target

pytest_plugins = ["tests.tunnel_targeted"]


@pytest.fixture(scope="module")
def tunnel(lab_directory: Path, target: Target) -> Iterator[Ends]:
    with running(Ends(lab_directory, "tunnel-refusals", [target.address], limits={"handshake_seconds": 2})) as ends:
        yield ends


@pytest.mark.parametrize(
    ("attempt", "reason"), [*ATTEMPTS.items(), (say_nothing, Reason.SLOW)], ids=lambda it: getattr(it, "__name__", "")
)
def test_whoever_must_not_pass_is_refused_and_counted(tunnel: Ends, attempt: Attempt, reason: Reason) -> None:
    before = tunnel.metric("serve", "refused_total", reason=reason)
    attempt(door_of(tunnel))
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
        assert ask(door_of(ends), as_client(str(ends.key)), LIST) == b""
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
    assert attempt_often(door_of(tunnel), 1000) == 1000
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


def test_one_who_asks_and_falls_silent_is_cut_off_without_a_complaint(tunnel: Ends) -> None:
    door = door_of(tunnel)
    with (
        socket.create_connection(door.address, timeout=30) as plain,
        as_client(door.key).wrap_socket(plain, server_hostname="serve") as secure,
    ):
        secure.sendall(LIST)
        while secure.recv(65536):
            pass  # the answer, and that serve closes, to which a peer would say the same
        with suppress(ConnectionResetError):
            assert socket.socket.recv(secure, 1) == b""
    assert "Exception" not in tunnel.log("serve")


def test_a_serve_that_hangs_up_at_once_is_told_apart_from_one_that_is_not_there(tunnel: Ends) -> None:
    context, limits = keys.tls_context(keys.load(tunnel.key, Role.CONNECT)), Limits()
    with socket.create_server(("127.0.0.1", 0)) as full:
        address = Address("127.0.0.1", full.getsockname()[1])
        hanging_up = threading.Thread(target=lambda: full.accept()[0].close())
        hanging_up.start()
        with pytest.raises(Unavailable, match="hung up during the handshake; is it at its limit of connections"):
            asyncio.run(Link("t", address, context, limits, Scratch()).list_targets())
        hanging_up.join()
