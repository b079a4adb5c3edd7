"""A tunnel carries a connection as if it were not there: bytes, ends, breaks, and a reader that is slow."""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.config.tunnel import Address
from barnabas.tunnel.frames import HEADER, decode, encode
from barnabas.tunnel.refusals import Reason
from barnabas.tunnel.relay import HELD_AT_MOST
from tests.kafka_io import wait_until
from tests.tunnel_attempts import as_client
from tests.tunnel_ends import Ends, running
from tests.tunnel_targets import Target, echo, everything

pytest_plugins = ["tests.tunnel_targeted"]

MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def tunnel(lab_directory: Path, target: Target) -> Iterator[Ends]:
    with running(Ends(lab_directory, "tunnel-relay", [target.address])) as ends:
        yield ends


def test_bytes_arrive_as_they_were_in_both_directions(tunnel: Ends, target: Target) -> None:
    target.behaviour = echo
    sent = os.urandom(8 * MEBIBYTE)
    with tunnel.dial() as client:

        def send() -> None:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        assert hashlib.sha256(everything(client)).digest() == hashlib.sha256(sent).digest()
        sender.join()


def test_a_direction_that_ended_leaves_the_other_open(tunnel: Ends, target: Target) -> None:
    def answer_after_the_end(connection: socket.socket) -> None:
        received = everything(connection)
        connection.sendall(b"got %d" % len(received))

    target.behaviour = answer_after_the_end
    with tunnel.dial() as client:
        client.sendall(b"x" * 1000)
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == b"got 1000"


def test_a_target_may_end_first_and_still_listen(tunnel: Ends, target: Target) -> None:
    heard: list[bytes] = []

    def end_then_listen(connection: socket.socket) -> None:
        connection.sendall(b"that was all")
        connection.shutdown(socket.SHUT_WR)
        heard.append(everything(connection))

    target.behaviour = end_then_listen
    with tunnel.dial() as client:
        assert everything(client) == b"that was all"
        client.sendall(b"but I have more")
        client.shutdown(socket.SHUT_WR)
        wait_until(lambda: heard == [b"but I have more"], 10, "the target to hear the rest")


def test_slow_readers_get_all_even_when_the_writers_closed_long_ago(tunnel: Ends, target: Target) -> None:
    sizes = [16 * MEBIBYTE + number * 37_000 for number in range(4)]
    heard = list[int]()

    def read_late(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_WR)  # so that the writer's end is the last word
        count = 0
        while data := connection.recv(16_384):
            count += len(data)
            time.sleep(0.001)
        heard.append(count)

    target.behaviour = read_late
    target.listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # inherited by its connections

    def write_and_close(size: int) -> None:
        with tunnel.dial() as client:
            assert client.recv(1) == b""
            client.sendall(bytes(size))

    with ThreadPoolExecutor(len(sizes)) as pool:
        list(pool.map(write_and_close, sizes))
    wait_until(lambda: len(heard) == len(sizes), 60, "the slow readers to finish")
    assert sorted(heard) == sizes


def test_slow_readers_do_not_grow_memory(tunnel: Ends, target: Target) -> None:
    connections, read_now = 40, threading.Event()
    counts: list[int] = []

    def read_late(connection: socket.socket) -> None:
        read_now.wait(120)
        counts.append(len(everything(connection)))

    target.behaviour = read_late
    before = {role: tunnel.rss(role) for role in ("serve", "connect")}
    clients = [tunnel.dial() for _ in range(connections)]
    for client in clients:
        client.setblocking(False)
    sent = [0] * connections
    block, quiet_since = bytes(MEBIBYTE), time.monotonic()
    while time.monotonic() - quiet_since < 2:  # nobody takes anything any more
        for number, client in enumerate(clients):
            try:
                sent[number] += client.send(block)
                quiet_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.001)
    grown = {role: tunnel.rss(role) - rss for role, rss in before.items()}
    read_now.set()
    for client in clients:
        client.close()
    wait_until(lambda: sorted(counts) == sorted(sent), 60, "every byte to arrive after all")
    print(f"{sum(sent) / MEBIBYTE:.0f} MiB offered to {connections} stalled readers, memory grew by {grown}")
    assert max(grown.values()) < connections * HELD_AT_MOST


def test_a_broken_connection_never_looks_like_one_that_ended(lab_directory: Path, target: Target) -> None:
    target.behaviour = echo
    ends = Ends(lab_directory, "tunnel-break", [target.address], connect={"loopback": "127.0.2.1"})
    with running(ends), ends.dial() as client:
        client.sendall(b"ping")
        assert client.recv(10) == b"ping"
        ends.processes["serve"].kill()
        with pytest.raises(ConnectionResetError):
            client.recv(10)


def test_a_broken_target_is_told_as_broken(tunnel: Ends, target: Target) -> None:
    def reset(connection: socket.socket) -> None:
        connection.recv(10)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    target.behaviour = reset
    with tunnel.dial() as client:
        client.sendall(b"ping")
        with pytest.raises(ConnectionResetError):
            client.recv(10)


def test_five_hundred_connections_at_once(tunnel: Ends, target: Target) -> None:
    target.behaviour = echo
    with ThreadPoolExecutor(50) as pool:
        clients = list(pool.map(lambda _: tunnel.dial(), range(500)))
        wait_until(lambda: tunnel.metric("serve", "open_connections") >= 500, 60, "500 connections at serve")

        def exchange(numbered: tuple[int, socket.socket]) -> bool:
            number, client = numbered
            message = b"%06d" % number * 1000
            client.sendall(message)
            client.shutdown(socket.SHUT_WR)
            return everything(client) == message

        assert all(pool.map(exchange, enumerate(clients)))
    for client in clients:
        client.close()
    wait_until(lambda: tunnel.metric("serve", "open_connections") == 0, 30, "serve to let go of them all")
    wait_until(lambda: tunnel.metric("connect", "open_connections") == 0, 30, "connect to let go of them all")


def test_the_log_says_who_to_which_broker_how_many_bytes_and_why_closed(tunnel: Ends, target: Target) -> None:
    target.behaviour = echo
    with tunnel.dial() as client:
        client.sendall(b"x" * 4321)
        client.shutdown(socket.SHUT_WR)
        everything(client)
        who = str(Address(*client.getsockname()))
    line = f'tunnel "eu": {who} to {target.address} closed after'
    wait_until(lambda: line in tunnel.log("connect"), 10, "the log line")
    told = next(it for it in tunnel.log("connect").splitlines() if line in it)
    assert told.endswith("4321 bytes into the tunnel, 4321 out of it: finished")
    assert "PRIVATE KEY" not in tunnel.log("connect") + tunnel.log("serve")


def test_the_tunnel_itself_may_go_over_version_6(lab_directory: Path, target: Target) -> None:
    target.behaviour = echo
    own = {"loopback": "127.0.2.1"}
    ends = Ends(
        lab_directory, "tunnel-six", [target.address], connect=own, limits={"handshake_seconds": 2}, address="::1"
    )
    with running(ends), ends.dial() as client:
        trip(client)
        with socket.create_connection(ends.port, timeout=30) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            wait_until(lambda: ends.metric("serve", "refused_total", reason=Reason.NOT_TLS) == 1, 10, "the refusal")
            assert f"refused [::1]:{stranger.getsockname()[1]}: not_tls" in ends.log("serve")
        trip(client)


def test_one_byte_frames_of_one_connection_do_not_delay_another(lab_directory: Path, target: Target) -> None:
    """`connect` never sends such frames; whoever has the key may."""
    target.behaviour = echo
    counts = list[int]()

    def count(connection: socket.socket) -> None:
        counts.append(0)
        while data := connection.recv(65536):
            counts[0] += len(data)

    sink = Target(count)
    ends = Ends(lab_directory, "tunnel-frames", [target.address, sink.address], connect={"loopback": "127.0.2.1"})
    frames = (HEADER.pack(1) + b"x") * 100_000
    with running(ends), ends.dial() as client:
        before = sorted(trip(client) for _ in range(200))[-3]
        with (
            socket.create_connection(ends.port, timeout=30) as plain,
            as_client(str(ends.key)).wrap_socket(plain, server_hostname="serve") as flood,
        ):
            flood.sendall(encode({"ask": "open", "target": sink.address}))
            assert decode(flood.recv(65536)[HEADER.size :])["ok"]
            stop = threading.Event()

            def send() -> None:
                while not stop.is_set():
                    flood.sendall(frames)

            sender = threading.Thread(target=send)
            sender.start()
            times = [trip(client) for _ in range(200)]
            stop.set()
            sender.join()
        times.sort()
        print(
            f"p50 {times[100] * 1000:.1f}, p99 {times[-3] * 1000:.1f} ms beside {counts[0]:,} one-byte frames, "
            f"p99 {before * 1000:.1f} ms without"
        )
        assert counts[0] > 10_000
        assert times[100] < 0.05
        assert times[-3] < 0.25  # 0.05 where nothing else runs on the machine
    sink.listening.close()


def trip(client: socket.socket) -> float:
    started = time.monotonic()
    client.sendall(b"ping")
    assert client.recv(10) == b"ping"
    return time.monotonic() - started
