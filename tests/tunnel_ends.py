"""Both ends of a tunnel as processes of their own, run by the command line's own code and watched by their metrics."""

import argparse
import json
import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from barnabas.config.cluster import Cluster
from barnabas.config.tunnel import Address, Tunnel
from barnabas.lab.ports import LOOPBACK, free_ports
from barnabas.lab.process import Process
from barnabas.tunnel.commands import add_parsers, run
from barnabas.tunnel.keys import create
from tests.kafka_io import wait_until

NAME = "eu"
FETCH = "import sys, urllib.request as web; print(web.urlopen(sys.argv[1]).read().decode())"
STOP_SECONDS = 15.0
START_SECONDS = 60.0


@dataclass
class Ends:
    """A tunnel's configuration and its two processes; `prefix` puts each into its network namespace."""

    lab: Path
    name: str
    targets: list[str]
    cluster: dict[str, Any] = field(default_factory=dict)
    serve: dict[str, Any] = field(default_factory=dict)
    connect: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    prefix: dict[str, list[str]] = field(default_factory=dict)
    address: str = LOOPBACK
    port_number: int = 0

    def __post_init__(self) -> None:
        self.directory = self.lab / self.name
        self.directory.mkdir(parents=True, exist_ok=True)
        self.key = self.directory / "tunnel.key"
        create(self.key)
        port, *self.metrics_ports = free_ports(3)
        self.port = Address(self.address, self.port_number or port)
        self.file = self.directory / "tunnel.json"
        self.processes = {role: Process(self.lab, f"{self.name}-{role}") for role in ("serve", "connect")}
        self.write()

    def write(self) -> None:
        """Write the configuration, which both ends share."""
        serve_metrics, connect_metrics = (f"{LOOPBACK}:{port}" for port in self.metrics_ports)
        tunnel = {
            "cluster": "orange",
            "key": str(self.key),
            "serve": {
                "listen": str(self.port),
                "address": str(self.port),
                "brokers": self.targets or "discover",
                "refresh_seconds": 1,
                "metrics": serve_metrics,
                **self.serve,
            },
            "connect": {"refresh_seconds": 1, "metrics": connect_metrics, **self.connect},
            "limits": self.limits,
        }
        cluster = {"bootstrap": ",".join(self.targets), **self.cluster}
        self.file.write_text(json.dumps({"clusters": {"orange": cluster}, "tunnels": {NAME: tunnel}}))

    def start(self, role: str, *options: str) -> None:
        command = [sys.executable, "-m", "tests.tunnel_ends", role, "-c", str(self.file), *options]
        self.processes[role].start([*self.prefix.get(role, []), *command])

    def stop(self, role: str) -> None:
        self.processes[role].stop(STOP_SECONDS)

    def wait_until_ready(self) -> None:
        """Return when connect has heard the list and listens."""
        wait_until(lambda: self.metric("connect", "list_current") == 1, START_SECONDS, "the broker list at connect")

    def metric(self, role: str, name: str, **labels: str) -> float:
        """A metric of one end, summed over the labels not given; 0 while the end does not answer."""
        page = self._metrics_page(role)
        found = re.findall(rf"^barnabas_tunnel_{name}{{(.*)}} (\S+)$", page, re.MULTILINE)
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(float(value) for given, value in found if all(label in given for label in wanted))

    def _metrics_page(self, role: str) -> str:
        url = f"http://{LOOPBACK}:{self.metrics_ports[0 if role == 'serve' else 1]}/metrics"
        if role in self.prefix:
            command = [*self.prefix[role], sys.executable, "-c", FETCH, url]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout
        try:
            return httpx.get(url, trust_env=False, timeout=10).text
        except httpx.TransportError:
            return ""

    def rss(self, role: str) -> int:
        """Resident memory of one end, in bytes."""
        pid = self.processes[role].pid
        status = Path(f"/proc/{pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024

    def log(self, role: str) -> str:
        return self.processes[role].log.read_text()

    def dial(self, target: int = 0) -> socket.socket:
        """A client's connection to one of the targets, through the tunnel."""
        port = Address.parse(self.targets[target]).port
        return socket.create_connection((self.connect.get("loopback", "127.0.1.1"), port), timeout=60)


@contextmanager
def running(ends: Ends, *connect_options: str) -> Iterator[Ends]:
    """Both ends up and the list known; both down afterwards."""
    try:
        ends.start("serve")
        ends.start("connect", *connect_options)
        ends.wait_until_ready()
        yield ends
    finally:
        ends.stop("connect")
        ends.stop("serve")


def main() -> int:
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers())
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    document = json.loads(Path(args.config).read_text())
    tunnels = {name: Tunnel.model_validate(given) for name, given in document["tunnels"].items()}
    clusters = {name: Cluster.model_validate(given) for name, given in document["clusters"].items()}
    return run(args, SimpleNamespace(tunnels=tunnels, clusters=clusters))


if __name__ == "__main__":
    sys.exit(main())
