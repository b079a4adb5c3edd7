"""The ways through that are compared: both ends of stunnel, and both ends of our tunnel as a user starts them."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.lab.ports import free_ports
from barnabas.lab.process import Process
from barnabas.tunnel.keys import Role, load

STOP_SECONDS = 15.0
# What OpenSSL and so our tunnel choose by themselves in TLS 1.3; named, so that both are known to use the same.
CIPHER = "TLS_AES_256_GCM_SHA384"


@dataclass(frozen=True)
class Way:
    """Where to connect, and the processes that carry it."""

    address: tuple[str, int]
    processes: tuple[Process, ...] = ()

    def cpu_seconds(self) -> float:
        """What its processes have used so far, all threads, user and system."""
        return sum(_ticks(process.pid) for process in self.processes if process.pid) / os.sysconf("SC_CLK_TCK")


@contextmanager
def stunnel(folder: Path, port: int) -> Iterator[Way]:
    """Both ends of stunnel, with the certificates of the folder's tunnel key."""
    front, middle = free_ports(2)
    ends = {"serve": (middle, port, "no"), "connect": (front, middle, "yes")}
    commands = {}
    for role, (accept, connect, client) in ends.items():
        identity = load(folder / "key", Role(role))
        (folder / f"{role}.pem").touch(0o600)
        (folder / f"{role}.pem").write_text(identity.certificate + identity.private_key)
        (folder / "ca.pem").write_text(identity.authority)
        (folder / f"{role}.conf").write_text(
            f"foreground = yes\npid =\ndebug = 3\nsslVersionMin = TLSv1.3\nciphersuites = {CIPHER}\n[bench]\n"
            f"client = {client}\naccept = 127.0.0.1:{accept}\nconnect = 127.0.0.1:{connect}\n"
            f"cert = {folder}/{role}.pem\nCAfile = {folder}/ca.pem\nverifyChain = yes\n"
        )
        commands[f"stunnel-{role}"] = ["stunnel4", str(folder / f"{role}.conf")]
    with running(folder, commands) as processes:
        yield Way(("127.0.0.1", front), processes)


@contextmanager
def barnabas(folder: Path, port: int) -> Iterator[Way]:
    """Both ends of our tunnel: 127.0.1.1 leads to that port of 127.0.0.1."""
    [between] = free_ports(1)
    target = f"127.0.0.1:{port}"
    serve = {"listen": f"127.0.0.1:{between}", "address": f"127.0.0.1:{between}", "brokers": [target]}
    tunnels = {"bench": {"cluster": "near", "key": str(folder / "key"), "serve": serve}}
    file = configured(folder / "tunnel.yaml", target, "127.0.0.1:1", tunnels=tunnels)
    program = [sys.executable, "-m", "barnabas.cli", "tunnel"]
    with running(folder, {end: [*program, end, "-c", str(file)] for end in ("serve", "connect")}) as processes:
        yield Way(("127.0.1.1", port), processes)


def configured(
    file: Path, source: str, destination: str, copy: str = "copy", tunnels: dict[str, Any] | None = None
) -> Path:
    """A configuration with one mirror of topic `bench`, named as its copy is."""
    mirror = {"name": copy, "from": "bench", "to": copy, "topics": {"create": True}}
    document = {
        "clusters": {"near": {"bootstrap": source}, "far": {"bootstrap": destination}},
        "groups": [{"name": "bench", "source": "near", "destination": "far", "mirrors": [mirror]}],
        "tunnels": tunnels or {},
    }
    file.write_text(json.dumps(document))  # JSON is YAML
    return file


@contextmanager
def running(folder: Path, commands: dict[str, list[str]]) -> Iterator[tuple[Process, ...]]:
    """Processes of the folder's lab, so that its guard ends them even if we are killed."""
    children = tuple(Process(folder, name) for name in commands)
    try:
        for child, command in zip(children, commands.values(), strict=True):
            child.start(command)
        yield children
    finally:
        for child in children:
            child.stop(STOP_SECONDS)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
