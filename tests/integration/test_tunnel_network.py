"""Two networks, one link, one open port: a three-broker cluster with TLS and SASL is read by its brokers' own names."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.lab.ports import free_ports
from barnabas.lab.process import Process
from barnabas.tunnel import keys
from tests.kafka_io import wait_until
from tests.tunnel_attempts import door_of
from tests.tunnel_ends import Ends, running
from tests.tunnel_network import SECONDS, SOURCE_ADDRESS, Inside, Networks, networks, wait_for

RECORDS = 1_000_000
CUT_SECONDS = 20
ATTEMPTS = 1000
START_SECONDS = 120


@dataclass(frozen=True)
class World:
    """Everything up: the cluster in its network, both ends of the tunnel, and topic `orders` with the records."""

    networks: Networks
    ends: Ends
    settings: dict[str, str]
    registry: str
    original: dict[str, Any]
    there: str

    @property
    def source(self) -> Inside:
        return Inside(self.networks.inside(self.networks.source))

    @property
    def destination(self) -> Inside:
        return Inside(self.networks.inside(self.networks.destination))

    def tunnel(self, **serve: Any) -> dict[str, Any]:
        tunnel: dict[str, Any] = json.loads(self.ends.file.read_text())["tunnels"]["eu"]
        return {**tunnel, "serve": {**tunnel["serve"], **serve}}


@pytest.fixture(scope="module")
def world(lab_directory: Path) -> Iterator[World]:
    for tool, package in (("ip", "iproute2"), ("nft", "nftables")):
        if shutil.which(tool) is None:
            pytest.fail(f"{tool} is needed to make networks: apt-get install {package}")
    if os.geteuid() != 0:
        pytest.skip("only root may make network namespaces")
    [port] = free_ports(1)
    with networks(port) as made:
        inside = made.inside(made.source)
        source = _cluster(lab_directory, "source", inside)
        destination = _cluster(lab_directory, "destination", made.inside(made.destination))
        try:
            told = _told(lab_directory, "source")
            there = _told(lab_directory, "destination")["settings"]["bootstrap.servers"]
            Inside(inside).ask(do="write", settings=told["settings"], topic="orders", count=RECORDS)
            original = Inside(inside).ask(do="digest", settings=told["settings"], topic="orders")
            ends = _ends(lab_directory, made, told)
            with running(ends, "--write-hosts"):
                wait_until(lambda: _listens_for(ends, 4), 60, "listeners for three brokers and the registry")
                yield World(made, ends, told["settings"], told["registry"], original, there)
        finally:
            source.stop(30)
            destination.stop(30)


def _listens_for(ends: Ends, targets: int) -> bool:
    told = ends.metric("connect", "targets"), ends.metric("connect", "targets_without_listener")
    return told == (targets, 0)


def _cluster(lab: Path, name: str, inside: list[str]) -> Process:
    process = Process(lab, f"tunnel-{name}")
    process.start([*inside, sys.executable, "-m", "tests.tunnel_network", name, str(lab)])
    return process


def _told(lab: Path, name: str) -> dict[str, Any]:
    wait_for(lab / f"{name}.json", START_SECONDS)
    told: dict[str, Any] = json.loads((lab / f"{name}.json").read_text())
    return told


def _ends(lab: Path, made: Networks, told: dict[str, Any]) -> Ends:
    settings = told["settings"]
    password = lab / "tunnel-password"
    password.write_text(settings["sasl.password"])
    cluster = {
        "bootstrap": settings["bootstrap.servers"],
        "sasl": {"mechanism": settings["sasl.mechanism"], "username": f"file:{lab / 'tunnel-user'}"},
        "tls": {"ca": settings["ssl.ca.location"]},
    }
    (lab / "tunnel-user").write_text(settings["sasl.username"])
    cluster["sasl"]["password"] = f"file:{password}"
    prefix = {"serve": made.inside(made.source), "connect": made.inside(made.destination)}
    return Ends(
        lab, "tunnel-network", [], cluster=cluster, serve={"registry": told["registry"]}, prefix=prefix,
        address=SOURCE_ADDRESS, port_number=made.port,
    )  # fmt: skip


def test_a_million_records_cross_by_broker_names_and_nothing_but_the_tunnel_carries_them(world: World) -> None:
    strict = {**world.settings, "ssl.endpoint.identification.algorithm": "https"}
    carried_before, started = world.networks.bytes_carried(), time.monotonic()
    copied = world.destination.ask(do="digest", settings=strict, topic="orders")
    seconds, carried = time.monotonic() - started, world.networks.bytes_carried() - carried_before
    assert copied == world.original
    assert copied["count"] == RECORDS
    print(f"{RECORDS} records through the tunnel in {seconds:.1f} s; {carried} bytes on its port")
    for side in (world.networks.source, world.networks.destination):
        packets = world.networks.packets(side)
        print(f"{side}: packets {packets}")
        assert packets["tunnel"] > 1000
        assert packets["other"] == 0
    assert carried > RECORDS * 100


def test_the_registry_is_reached_by_its_name(world: World) -> None:
    url = f"http://{world.registry}/apis/ccompat/v7/subjects"
    assert world.destination.ask(do="get", url=url) == []


def test_diagnose_goes_every_step_of_the_way(world: World) -> None:
    steps = world.destination.ask(do="diagnose", tunnel=world.tunnel(), settings=world.settings)
    for step in steps:
        print(f"{step['name']}: {step['ok']}: {step['detail']}")
    assert [step["name"] for step in steps if step["ok"]] == [
        "port reachable", "certificate", "broker list", "names", "TLS name", "SASL",
    ]  # fmt: skip


def test_diagnose_names_the_step_that_fails(world: World, tmp_path: Path) -> None:
    [other_ca, other_key] = tmp_path / "ca.pem", tmp_path / "other.key"
    keys.create(other_key)
    other_ca.write_text(keys.load(other_key, keys.Role.SERVE).authority)
    wrong: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
        "port reachable": (world.tunnel(address=f"127.0.9.9:{world.networks.port}"), {}),
        "certificate": ({**world.tunnel(), "key": str(other_key)}, {}),
        "broker list": (world.tunnel(), {"bootstrap.servers": "b7.orange.test:9092"}),
        "names": ({**world.tunnel(), "connect": {"loopback": "127.0.5.1"}}, {}),
        "TLS name": (world.tunnel(), {"ssl.ca.location": str(other_ca)}),
        "SASL": (world.tunnel(), {"sasl.password": "wrong"}),
    }
    for expected, (tunnel, change) in wrong.items():
        steps = world.destination.ask(do="diagnose", tunnel=tunnel, settings={**world.settings, **change})
        assert [step["name"] for step in steps if not step["ok"]] == [expected], steps
        assert steps[-1]["name"] == expected
        print(f"{expected}: {steps[-1]['detail']}")
        assert world.settings["sasl.password"] not in str(steps)


@pytest.mark.slow  # three minutes; the million records of the plain consumer above go the same way
def test_a_mirror_of_a_million_records_survives_a_link_cut_for_twenty_seconds_and_a_thousand_bad_attempts(
    world: World,
) -> None:
    carried, network = world.networks.bytes_carried(), world.networks
    mirror = Process(world.ends.lab, "tunnel-mirror")
    command = [sys.executable, "-m", "barnabas.cli", "run", "-c", str(_mirror(world)), "--until-caught-up"]
    mirror.start([*network.inside(network.destination), *command])
    try:
        mirror.wait_until(lambda: network.bytes_carried() > carried + RECORDS * 10, START_SECONDS)
        network.cut()
        at_cut, deadline = network.bytes_carried(), time.monotonic() + CUT_SECONDS
        while time.monotonic() < deadline:
            assert mirror.pid is not None, "the mirror ended before the link was cut"
            time.sleep(0.5)
        assert network.bytes_carried() < at_cut + RECORDS * 10
        network.mend()
        mirror.wait_until(lambda: network.bytes_carried() > at_cut + RECORDS * 10, START_SECONDS)
        _attempt(world)
        assert mirror.pid is not None, "the mirror ended before the attempts did; make its batches smaller"
        assert mirror.wait(SECONDS) == 0, mirror.log_tail()
    finally:
        mirror.kill()
    copied = world.destination.ask(do="digest", settings={"bootstrap.servers": world.there}, topic="orders.copy")
    assert copied == world.original
    assert network.packets(network.source)["other"] == 0
    assert world.settings["sasl.password"] not in mirror.log.read_text()


def _attempt(world: World) -> None:
    """Try to get in from the destination network; every attempt is refused and counted."""
    before = world.ends.metric("serve", "refused_total")
    assert world.destination.ask(do="attempt", door=asdict(door_of(world.ends)), count=ATTEMPTS) == ATTEMPTS
    after = before + ATTEMPTS
    wait_until(lambda: world.ends.metric("serve", "refused_total") >= after, 30, "the refusals to be counted")
    assert world.ends.metric("serve", "refused_total") == after


def _mirror(world: World) -> Path:
    document = json.loads(world.ends.file.read_text())
    document["clusters"]["orange"]["tunnel"] = "eu"
    document["clusters"]["grape"] = {"bootstrap": world.there}
    mirrors = [
        {
            "name": "orders",
            "from": "orders",
            "to": "{topic}.copy",
            "batch": {"records": 10_000},  # many small ones: there is still something to copy when the attempts end
            "topics": {"create": True, "replication": {"from": "source", "max": 1}},
        }
    ]
    document["groups"] = [{"name": "eu", "source": "orange", "destination": "grape", "mirrors": mirrors}]
    file = world.ends.directory / "mirror.yaml"
    file.write_text(json.dumps(document))  # JSON is YAML
    return file


def test_the_names_are_taken_out_of_the_hosts_file_at_the_end(world: World) -> None:
    hosts = world.networks.hosts_file
    assert "b2.orange.test" in hosts.read_text()
    world.ends.stop("connect")
    assert "orange.test" not in hosts.read_text()
    assert "localhost" in hosts.read_text()
    command = [*world.networks.inside(world.networks.destination), "getent", "hosts", "b2.orange.test"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_what_is_not_the_tunnel_is_dropped_and_would_have_been_counted(world: World) -> None:
    before = world.networks.packets(world.networks.destination)["other"]
    port = world.settings["bootstrap.servers"].rpartition(":")[2]
    probe = f"import socket; socket.create_connection(('{SOURCE_ADDRESS}', {port}), 0.5)"
    command = [*world.networks.inside(world.networks.destination), sys.executable, "-c", probe]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    assert world.networks.packets(world.networks.destination)["other"] > before
