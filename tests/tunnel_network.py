"""Two networks with one link between them, and what tests run inside them.

As a module it lets tests move in and out of the networks; as a program (`python -m tests.tunnel_network`) it is what
runs inside one: the source's cluster, a reader that compares, the steps of diagnose, attempts that must fail.
"""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from barnabas.config.tunnel import Tunnel
from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.registry import Registry
from barnabas.lab.security import Mechanism, Protocol, Security
from barnabas.tunnel.diagnose import diagnose
from tests.kafka_io import Record, create_topic, produce, read_all
from tests.tunnel_attempts import Door, attempt_often

SOURCE_ADDRESS, DESTINATION_ADDRESS = "10.77.0.1", "10.77.0.2"  # exist inside the two namespaces only
BROKERS = ["b0.orange.test", "b1.orange.test", "b2.orange.test"]
REGISTRY = "sr.orange.test"
PARTITIONS = 6
SECONDS = 240


@dataclass(frozen=True)
class Networks:
    """Two network namespaces; on the link between them only the tunnel's port passes, and all traffic is counted."""

    source: str
    destination: str
    port: int

    @property
    def hosts_file(self) -> Path:
        """What programs inside the destination network have for /etc/hosts."""
        return Path("/etc/netns", self.destination, "hosts")

    def inside(self, name: str) -> list[str]:
        """What to put before a command so that it runs there, with the hosts file of that place."""
        return ["ip", "netns", "exec", name]

    def packets(self, name: str) -> dict[str, int]:
        """Packets on the link, as one side saw them: through the tunnel's port, and everything else."""
        rules = _run(*self.inside(name), "nft", "list", "ruleset")
        return {
            comment: sum(int(n) for n in re.findall(rf'packets (\d+) .*comment "{comment}"', rules))
            for comment in ("tunnel", "other")
        }

    def bytes_carried(self) -> int:
        rules = _run(*self.inside(self.source), "nft", "list", "ruleset")
        return sum(int(n) for n in re.findall(r'bytes (\d+) .*comment "tunnel"', rules))

    def cut(self) -> None:
        _run("ip", "-n", self.source, "link", "set", "wire", "down")

    def mend(self) -> None:
        _run("ip", "-n", self.source, "link", "set", "wire", "up")


@contextmanager
def networks(port: int) -> Iterator[Networks]:
    """Make the two networks, and take them away whatever happens; needs root, iproute2 and nftables."""
    _sweep()
    made = Networks(f"barnabas-source-{os.getpid()}", f"barnabas-destination-{os.getpid()}", port)
    try:
        for name in (made.source, made.destination):
            _run("ip", "netns", "add", name)
            for family in ("all", "default"):
                _run(*made.inside(name), "sh", "-c", f"echo 1 > /proc/sys/net/ipv6/conf/{family}/disable_ipv6")
            _run("ip", "-n", name, "link", "set", "lo", "up")
        ends = ["name", "wire", "netns", made.source, "type", "veth", "peer", "name", "wire", "netns", made.destination]
        _run("ip", "link", "add", *ends)
        for name, address in ((made.source, SOURCE_ADDRESS), (made.destination, DESTINATION_ADDRESS)):
            _run("ip", "-n", name, "address", "add", f"{address}/30", "dev", "wire")
            _run("ip", "-n", name, "link", "set", "wire", "up")
        _guard(made)
        _write_hosts(made.source, f"127.0.0.1 localhost {' '.join(BROKERS)} {REGISTRY}\n")
        _write_hosts(made.destination, f"127.0.0.1 localhost {socket.gethostname()}\n")
        yield made
    finally:
        for name in (made.source, made.destination):
            _remove(name)


def _guard(made: Networks) -> None:
    """Drop and count what is not the tunnel, in both directions, at both sides."""
    ways = {
        made.source: (f"tcp dport {made.port}", f"tcp sport {made.port}"),
        made.destination: (f"tcp sport {made.port}", f"tcp dport {made.port}"),
    }
    for name, (incoming, outgoing) in ways.items():
        rules = "".join(
            f"""
            chain {hook} {{
                type filter hook {hook} priority 0; policy drop;
                {"iif" if hook == "input" else "oif"} lo accept
                {match} counter accept comment "tunnel"
                counter drop comment "other"
            }}"""
            for hook, match in (("input", incoming), ("output", outgoing))
        )
        _run(*made.inside(name), "nft", f"table inet barnabas {{{rules}\n}}")


def _write_hosts(name: str, text: str) -> None:
    folder = Path("/etc/netns", name)
    folder.mkdir(parents=True)
    (folder / "hosts").write_text(text)
    (folder / "resolv.conf").write_text("")


def _remove(name: str) -> None:
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    for file in ("hosts", "resolv.conf"):
        Path("/etc/netns", name, file).unlink(missing_ok=True)
    if Path("/etc/netns", name).exists():
        Path("/etc/netns", name).rmdir()


def _sweep() -> None:
    """Take away what test runs left that were killed."""
    for name in re.findall(r"^barnabas-(?:source|destination)-\d+", _run("ip", "netns", "list"), re.MULTILINE):
        if not Path("/proc", name.rpartition("-")[2]).exists():
            _remove(name)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def run_source(directory: Path) -> None:
    """Three brokers with TLS and SASL and a registry, until SIGTERM; `source.json` says how to reach them."""
    security = Security(Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512)
    cluster = KafkaCluster(directory, "orange", brokers=3, security=security, hosts=BROKERS, heap_megabytes=384)
    with cluster, Registry(directory, "orange") as registry:
        settings = cluster.client_settings()
        # One name is enough to start from: the rest is to be discovered.
        first = settings["bootstrap.servers"].split(",")[0]
        told = {"settings": {**settings, "bootstrap.servers": first}, "registry": f"{REGISTRY}:{registry.port}"}
        _tell(directory / "source.json", told)


def run_destination(directory: Path) -> None:
    """One plain broker, until SIGTERM; `destination.json` says how to reach it."""
    with KafkaCluster(directory, "grape") as cluster:
        _tell(directory / "destination.json", {"settings": cluster.client_settings()})


def _tell(path: Path, told: dict[str, Any]) -> None:
    path.with_suffix(".new").write_text(json.dumps(told))
    path.with_suffix(".new").rename(path)
    signal.pause()


def write(settings: dict[str, str], topic: str, count: int) -> None:
    create_topic(settings, topic, PARTITIONS)
    stamp = 1_700_000_000_000
    produce(settings, topic, (Record(b"%d" % n, b"%0100d" % n, (), stamp + n, n % PARTITIONS) for n in range(count)))


def digest(settings: dict[str, str], topic: str) -> dict[str, Any]:
    """How many records a topic has and what they are, in order; their offsets are the cluster's own affair."""
    records = [record._replace(offset=-1) for record in read_all(settings, topic, seconds=SECONDS)]
    return {"count": len(records), "digest": hashlib.sha256(repr(records).encode()).hexdigest()}


def answer(given: dict[str, Any]) -> Any:
    match given["do"]:
        case "write":
            return write(given["settings"], given["topic"], given["count"])
        case "digest":
            return digest(given["settings"], given["topic"])
        case "diagnose":
            tunnel = Tunnel.model_validate(given["tunnel"])
            return [asdict(step) for step in diagnose("eu", tunnel, given["settings"])]
        case "attempt":
            return attempt_often(Door(**given["door"]), given["count"])
        case "get":
            return httpx.get(given["url"], trust_env=False, timeout=30).json()
        case other:
            raise AssertionError(other)


@dataclass(frozen=True)
class Inside:
    """Asks a program inside a network to do something."""

    command: list[str]

    def ask(self, **given: Any) -> Any:
        with self.asking(**given) as child:
            output, errors = child.communicate(json.dumps(given), SECONDS)
        assert child.returncode == 0, errors
        return json.loads(output)

    @contextmanager
    def asking(self, **given: Any) -> Iterator[subprocess.Popen[str]]:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        child = subprocess.Popen([*self.command, sys.executable, "-m", "tests.tunnel_network"], text=True, **pipes)
        try:
            yield child
        finally:
            child.kill()
            child.wait()


def wait_for(path: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {path}"
        time.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        {"source": run_source, "destination": run_destination}[sys.argv[1]](Path(sys.argv[2]))
    else:
        print(json.dumps(answer(json.loads(sys.stdin.read()))))
