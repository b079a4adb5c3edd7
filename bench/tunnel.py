"""The tunnel against stunnel, and a mirror through the tunnel against the same mirror without it.

`python -m bench.tunnel` prints megabytes a second of both tunnels and their ratio: the same bytes, the same TLS 1.3
with mutual certificates, the same machine, in turn; needs the Debian package stunnel4. 8 GB pass through memory, none
of it touches a disk. Then it mirrors the same records between two clusters of the lab, directly and through the tunnel.
"""

import json
import operator
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.ports import free_ports
from barnabas.lab.process import Process
from barnabas.tunnel.keys import Role, create, load

MEGABYTES = 400
ROUNDS = 5
BLOCK = bytes(256 * 1024)
START_SECONDS = 60.0
STOP_SECONDS = 15.0
RECORDS, PARTITIONS = 3_000_000, 4
MIRROR_SECONDS = 300.0


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
    commands = {}
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
        commands[f"stunnel-{role}"] = ["stunnel4", str(folder / f"{role}.conf")]
    with _running(folder, commands):
        yield "127.0.0.1", front


@contextmanager
def barnabas(folder: Path, port: int) -> Iterator[tuple[str, int]]:
    """Both ends of our tunnel, as a user starts them: 127.0.1.1 leads to that port of 127.0.0.1."""
    [between] = free_ports(1)
    target = f"127.0.0.1:{port}"
    serve = {"listen": f"127.0.0.1:{between}", "address": f"127.0.0.1:{between}", "brokers": [target]}
    tunnels = {"bench": {"cluster": "near", "key": str(folder / "key"), "serve": serve}}
    file = configured(folder / "tunnel.yaml", target, "127.0.0.1:1", tunnels)
    program = [sys.executable, "-m", "barnabas.cli", "tunnel"]
    with _running(folder, {end: [*program, end, "-c", str(file)] for end in ("serve", "connect")}):
        yield "127.0.1.1", port


def configured(file: Path, source: str, destination: str, tunnels: dict[str, Any] | None = None) -> Path:
    """A configuration with one mirror of topic `bench`."""
    mirror = {"name": "bench", "from": "bench", "topics": {"create": True}}
    document = {
        "clusters": {"near": {"bootstrap": source}, "far": {"bootstrap": destination}},
        "groups": [{"name": "bench", "source": "near", "destination": "far", "mirrors": [mirror]}],
        "tunnels": tunnels or {},
    }
    file.write_text(json.dumps(document))  # JSON is YAML
    return file


def mirrored(folder: Path, *, through_tunnel: bool) -> float:
    """Records a second of a mirror, from the first that is seen at the destination to the last."""
    advertised = ["127.0.1.1"] if through_tunnel else ["127.0.0.1"]
    source = KafkaCluster(folder, f"source-{through_tunnel}", hosts=advertised)
    with source, KafkaCluster(folder, f"destination-{through_tunnel}") as destination, ExitStack() as stack:
        [port] = source.ports
        if through_tunnel:
            stack.enter_context(barnabas(folder, port))
            _wait_for_cluster(source.bootstrap)
        _write_records(source.bootstrap)
        file = configured(folder / "mirror.yaml", source.bootstrap, destination.bootstrap)
        command = [sys.executable, "-m", "barnabas.cli", "run", "-c", str(file), "--until-caught-up"]
        stack.enter_context(_running(folder, {"mirror": command}))
        return _pace(destination.bootstrap)


def _write_records(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("bench", PARTITIONS, 1)])["bench"].result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 200_000})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce("bench", bytes(100), b"%d" % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise SystemExit("bench: the records could not be written")


def _pace(bootstrap: str) -> float:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_uncommitted", "log_level": 0}
    )
    deadline, first, seen = time.monotonic() + MIRROR_SECONDS, 0.0, 0
    while time.monotonic() < deadline:
        count, now = _count(reader), time.monotonic()
        if count >= RECORDS:  # markers count too, a few among the records
            return (RECORDS - seen) / (now - first)
        if count and not seen:
            first, seen = now, count
        time.sleep(0.02)
    raise SystemExit(f"bench: the mirror has not copied {RECORDS} records in {MIRROR_SECONDS:g} s")


def _count(reader: Consumer) -> int:
    """Records in the topic; 0 while it is being made."""
    parts = [TopicPartition("bench", number) for number in range(PARTITIONS)]
    try:
        return sum(reader.get_watermark_offsets(part, timeout=30)[1] for part in parts)
    except KafkaException:
        return 0


def _wait_for_cluster(bootstrap: str) -> None:
    AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=START_SECONDS)


@contextmanager
def _running(folder: Path, commands: dict[str, list[str]]) -> Iterator[None]:
    """Processes of the folder's lab, so that its guard ends them even if we are killed."""
    children = [Process(folder, name) for name in commands]
    try:
        for child, command in zip(children, commands.values(), strict=True):
            child.start(command)
        yield
    finally:
        for child in children:
            child.stop(STOP_SECONDS)


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
    folder = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    guard = Guard(folder)
    try:
        create(folder / "key")
        _beside_stunnel(folder)
        direct, tunnelled = (mirrored(folder, through_tunnel=it) for it in (False, True))
    finally:
        guard.end()
    print(
        f"mirror, 100 B records: through the tunnel {tunnelled:,.0f} records/s, direct {direct:,.0f} records/s, "
        f"ratio {tunnelled / direct:.2f}"
    )
    return 0


def _beside_stunnel(folder: Path) -> None:
    sink = Sink()
    with stunnel(folder, sink.port) as theirs, barnabas(folder, sink.port) as ours:
        _wait_for(theirs)
        _wait_for(ours)
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
                f"stunnel {medians['stunnel']:.0f} MB/s, ratio {ratio:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
