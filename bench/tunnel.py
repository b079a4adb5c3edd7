"""The tunnel against stunnel: the same bytes, the same TLS 1.3 with mutual certificates, the same machine, in turn.

`python -m bench.tunnel` prints megabytes a second of both and their ratio; needs Debian's package stunnel4. About 8 GB
pass through memory, none of it touches a disk.
"""

import json
import operator
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.lab.ports import free_ports
from barnabas.tunnel.keys import Role, create, load

MEGABYTES = 400
ROUNDS = 5
BLOCK = bytes(256 * 1024)
START_SECONDS = 30.0


class Sink:
    """Takes everything a connection sends and answers with how much it was."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            threading.Thread(target=self._drain, args=(connection,), daemon=True).start()

    def _drain(self, connection: socket.socket) -> None:
        buffer, count = bytearray(1 << 20), 0
        with connection:
            while received := connection.recv_into(buffer):
                count += received
            connection.sendall(str(count).encode())


def measured(address: tuple[str, int], connections: int) -> float:
    """Megabytes a second from here through the address to the sink, over that many connections at once."""
    blocks = MEGABYTES * 1_000_000 // len(BLOCK) // connections
    answers: list[int] = []

    def send() -> None:
        with socket.create_connection(address, timeout=60) as client:
            for _ in range(blocks):
                client.sendall(BLOCK)
            client.shutdown(socket.SHUT_WR)
            answers.append(int(b"".join(iter(lambda: client.recv(100), b""))))

    threads = [threading.Thread(target=send) for _ in range(connections)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    if answers != [blocks * len(BLOCK)] * connections:
        raise SystemExit(
            f"bench: {answers} bytes arrived of {blocks * len(BLOCK)} on each of {connections} connections"
        )
    return blocks * len(BLOCK) * connections / seconds / 1e6


@contextmanager
def stunnel(folder: Path, sink: int) -> Iterator[tuple[str, int]]:
    """Both ends of stunnel with the certificates of a tunnel key."""
    front, middle = free_ports(2)
    ends = {"serve": (middle, sink, "no"), "connect": (front, middle, "yes")}
    commands = []
    for role, (accept, connect, client) in ends.items():
        identity = load(folder / "key", Role(role))
        (folder / f"{role}.pem").write_text(identity.certificate + identity.private_key)
        (folder / f"{role}.pem").chmod(0o600)
        (folder / "ca.pem").write_text(identity.authority)
        (folder / f"{role}.conf").write_text(
            f"foreground = yes\npid =\ndebug = 3\nsslVersionMin = TLSv1.3\n[bench]\nclient = {client}\n"
            f"accept = 127.0.0.1:{accept}\nconnect = 127.0.0.1:{connect}\n"
            f"cert = {folder}/{role}.pem\nCAfile = {folder}/ca.pem\nverifyChain = yes\n"
        )
        commands.append(["stunnel4", str(folder / f"{role}.conf")])
    with _running(commands):
        _wait_for(("127.0.0.1", front))
        yield "127.0.0.1", front


@contextmanager
def barnabas(folder: Path, sink: int) -> Iterator[tuple[str, int]]:
    """Both ends of our tunnel, as a user starts them."""
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    target = f"127.0.0.1:{sink}"
    serve = {"listen": address, "address": address, "brokers": [target]}
    configuration = {
        "clusters": {"sink": {"bootstrap": target, "tunnel": "bench"}, "other": {"bootstrap": "127.0.0.1:1"}},
        "groups": [
            {"name": "none", "source": "sink", "destination": "other", "mirrors": [{"name": "none", "from": "none"}]}
        ],
        "tunnels": {"bench": {"cluster": "sink", "key": str(folder / "key"), "serve": serve}},
    }
    (folder / "barnabas.yaml").write_text(json.dumps(configuration))  # JSON is YAML
    program = [sys.executable, "-m", "barnabas.cli", "tunnel"]
    with _running([[*program, end, "-c", str(folder / "barnabas.yaml")] for end in ("serve", "connect")]):
        _wait_for(("127.0.1.1", sink))
        yield "127.0.1.1", sink


@contextmanager
def _running(commands: list[list[str]]) -> Iterator[None]:
    children = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands]
    try:
        yield
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait(30)


def _wait_for(address: tuple[str, int]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.create_connection(address, timeout=5) as client:
                client.shutdown(socket.SHUT_WR)
                if client.recv(10) == b"0":
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: nothing answers through {address[0]}:{address[1]} in {START_SECONDS:g} s")
        time.sleep(0.1)


def main() -> int:
    if shutil.which("stunnel4") is None:
        raise SystemExit("bench: stunnel4 is not here to compare with; install it: apt-get install stunnel4")
    sink = Sink()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        create(folder / "key")
        with stunnel(folder, sink.port) as theirs, barnabas(folder, sink.port) as ours:
            for connections in (1, 4):
                speeds: dict[str, list[float]] = {"stunnel": [], "barnabas": []}
                for _ in range(ROUNDS):
                    speeds["stunnel"].append(measured(theirs, connections))
                    speeds["barnabas"].append(measured(ours, connections))
                medians = {which: statistics.median(found) for which, found in speeds.items()}
                # Round by round: what else the machine does in a round, it does to both.
                ratio = statistics.median(map(operator.truediv, speeds["barnabas"], speeds["stunnel"]))
                print(
                    f"tunnel, {connections} connection(s), TLS 1.3: barnabas {medians['barnabas']:.0f} MB/s, "
                    f"stunnel {medians['stunnel']:.0f} MB/s, ratio {ratio:.2f}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
