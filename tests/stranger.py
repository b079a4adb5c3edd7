"""Another user of the machine, who wants secrets and wants mirrors to stop: a process of its own, with no rights.

It reads {"ports": [...], "sockets": [...], "pids": [...], "place": DIRECTORY} from stdin and writes what it got hold
of as JSON. It speaks Spark's own protocols, because a client of Spark's would be as polite as Spark wants it to be.
"""

import base64
import encodings.idna  # noqa: F401 - nobody may not read it later
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

NOBODY = 65534
SECONDS = 1.0
BROADCASTS = 300
OPEN_BLOCKS, STREAM_HANDLE = 0, 3
CHUNK_REQUEST, CHUNK, RPC_REQUEST, RPC_RESPONSE = 0, 1, 3, 4
LZ4_HEAD, LZ4_METHOD = 13, 0x20
BLOCK_SECONDS = KILL_SECONDS = 5.0
ENOUGH_KILLS, MOST_SECONDS = 10, 60.0
PAGES = [
    *("/environment/", "/SQL/", "/StreamingQuery/", "/jobs/", "/stages/", "/executors/", "/storage/", "/metrics"),
    *("/executors/threadDump/?executorId=driver", "/metrics/json/", "/api/v1/applications"),
    *(f"/SQL/execution/?id={number}" for number in range(5)),
    *(f"/jobs/job/?id={number}" for number in range(3)),
    *(f"/stages/stage/?id={number}&attempt=0" for number in range(3)),
]
GARBAGE = [b"", b"\0" * 64, b"\xff" * 4096, b"\n\n\n", bytes(range(256)) * 16, struct.pack(">q", 2**40) + b"\3"]
# Calls in py4j's protocol: of the first object that Python lends to Java, and of Java's own entry.
CALLS = [b"c\np0\n__repr__\ne\n", b"c\nz:java.lang.System\ngetProperties\ne\n", b"c\nt\ngetGatewayParameters\ne\n"]


class Attack:
    """What came of a visit to one port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.got = b""
        self.blocks = 0
        self.answered_calls: list[str] = []
        self.kills = 0  # of jobs that ran, in vain or not

    def told(self) -> dict[str, Any]:
        return {**vars(self), "got": base64.b64encode(self.got).decode()}

    def run(self) -> "Attack":
        for call in CALLS:
            answer = self._answer(call)
            if answer.startswith(b"!y"):
                self.answered_calls.append(answer.decode(errors="replace"))
        self._take_blocks()
        if self._http("GET", "/").startswith(b"HTTP/1."):
            for page in PAGES:
                self._http("GET", page)
            self._kill_jobs()
        for garbage in GARBAGE:
            self._answer(garbage, seconds=0.2)
        return self

    def _connected(self, seconds: float = SECONDS) -> socket.socket:
        connection = socket.socket()
        connection.settimeout(seconds)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def _answer(self, request: bytes, seconds: float = SECONDS) -> bytes:
        """What the port says to these bytes until it is silent, or closes."""
        answer = b""
        with suppress(OSError), self._connected(seconds) as connection:
            connection.sendall(request)
            while piece := connection.recv(65536):
                answer += piece
                if request in CALLS:
                    break
        self.got += answer
        return answer

    def _http(self, method: str, path: str) -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        return self._answer(head.encode(), seconds=15.0)

    def _kill_jobs(self) -> None:
        """Tells the Spark UI for a while to kill every job that it says is running."""
        app = re.search(rb'"id" : "([^"]+)"', self._http("GET", "/api/v1/applications"))
        began = time.monotonic()
        while app and time.monotonic() < began + (KILL_SECONDS if self.kills > ENOUGH_KILLS else MOST_SECONDS):
            running = self._http("GET", f"/api/v1/applications/{app[1].decode()}/jobs?status=running")
            for job in re.findall(rb'"jobId" : (\d+)', running):
                self._http("POST", f"/jobs/job/kill/?id={job.decode()}")
                self.kills += 1
            for stage in {
                stage for stages in re.findall(rb'"stageIds" : \[([^]]*)\]', running) for stage in stages.split(b",")
            }:
                self._http("POST", f"/stages/stage/kill/?id={stage.strip().decode()}")

    def _take_blocks(self) -> None:
        """Asks Spark's block transfer for every broadcast: the closures of tasks are among them."""
        with suppress(OSError), self._connected(BLOCK_SECONDS) as connection:
            for number in range(BROADCASTS):
                block = _text(f"broadcast_{number}_piece0")
                body = struct.pack(">B", OPEN_BLOCKS) + _text("app") + _text("driver") + struct.pack(">i", 1) + block
                connection.sendall(_frame(RPC_REQUEST, struct.pack(">qi", number, len(body)) + body))
            for kind, content in _frames(connection):
                self.got += content
                if kind == RPC_RESPONSE and content[12:13] == bytes([STREAM_HANDLE]):
                    connection.sendall(_frame(CHUNK_REQUEST, content[13:21] + struct.pack(">i", 0)))
                self.blocks += kind == CHUNK


def _text(text: str) -> bytes:
    return struct.pack(">i", len(text)) + text.encode()


def _frame(kind: int, content: bytes) -> bytes:
    return struct.pack(">qB", 9 + len(content), kind) + content


def _frames(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Messages of Spark's transport, until none comes any more."""
    with connection.makefile("rb") as stream:
        while len(head := stream.read(9)) == 9:
            length, kind = struct.unpack(">qB", head)
            if not 9 <= length < 2**26:  # no transport of Spark's
                return
            yield kind, stream.read(length - 9)


def connects(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect("\0" + path[1:] if path.startswith("@") else path)
        except OSError:
            return False
        return True


def readable(place: Path) -> dict[str, str]:
    """Every file below the place that we may read."""
    found = {}
    for directory, _, names in os.walk(place):
        for name in names:
            with suppress(OSError):
                found[f"{directory}/{name}"] = base64.b64encode((Path(directory) / name).read_bytes()).decode()
    return found


def seen_of(pid: int) -> dict[str, str]:
    """What the system shows of a process."""
    found = {}
    for name in ("environ", "cmdline", "maps", "status"):
        with suppress(OSError):
            found[name] = base64.b64encode(Path(f"/proc/{pid}/{name}").read_bytes()).decode()
    return found


def visit(ports: Sequence[int], sockets: Sequence[str], pids: Sequence[int], place: Path) -> dict[str, Any]:
    """What another user gets hold of. Needs root, who alone may become somebody else: without it this fails."""
    assert os.geteuid() == 0, "only root can become another user: run this test as root, in a container for example"
    order = json.dumps({"ports": ports, "sockets": sockets, "pids": pids, "place": str(place)})
    done = subprocess.run(
        [sys.executable, "-m", "tests.stranger"],
        input=order,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def everything(found: Mapping[str, Any]) -> dict[str, bytes]:
    """All bytes that the stranger got, by where they are from."""
    texts = {f"port {attack['port']}": attack["got"] for attack in found["attacks"]}
    texts |= found["files"]
    texts |= {f"/proc/{pid}/{name}": text for pid, seen in found["seen"].items() for name, text in seen.items()}
    plain = {place: base64.b64decode(text) for place, text in texts.items()}
    return {place: data + b"".join(_unpacked(data)) for place, data in plain.items()}


def _unpacked(data: bytes) -> Iterator[bytes]:
    """What Spark has compressed: in LZ4 a secret may stand in pieces."""
    for found in re.finditer(b"LZ4Block", data):
        method, packed, size = struct.unpack_from("<Bii", data, found.end())
        start = found.end() + LZ4_HEAD
        if method & 0xF0 == LZ4_METHOD and 0 < size < 2**26:
            yield bytes(pa.Codec("lz4_raw").decompress(data[start : start + packed], size))


def main() -> None:
    order = json.load(sys.stdin)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    with ThreadPoolExecutor(len(order["ports"])) as pool:
        attacks = list(pool.map(lambda port: Attack(port).run().told(), order["ports"]))
    found = {
        "attacks": attacks,
        "connected": [path for path in order["sockets"] if connects(path)],
        "files": readable(Path(order["place"])),
        "seen": {str(pid): seen_of(pid) for pid in order["pids"]},
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
