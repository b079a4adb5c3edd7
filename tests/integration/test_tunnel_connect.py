"""Connect follows serve: a list that changes, a serve that goes and comes, and names that go when it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.config.tunnel import Address
from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.security import Mechanism, Protocol, Security
from barnabas.tunnel.refusals import Reason
from tests.hosts_lock import locked
from tests.kafka_io import wait_until
from tests.tunnel_ends import Ends, running
from tests.tunnel_targets import Target, echo

LOOPBACK = {"loopback": "127.0.3.1"}


@pytest.fixture
def targets() -> Iterator[list[Target]]:
    made = [Target(echo), Target(echo)]
    yield made
    for target in made:
        target.listening.close()


def passes(ends: Ends, target: int = 0) -> bool:
    """Whether a connection to the target goes through now."""
    try:
        with ends.dial(target) as client:
            client.sendall(b"ping")
            return client.recv(10) == b"ping"
    except OSError:
        return False


def test_connections_work_again_when_serve_is_back(lab_directory: Path, targets: list[Target]) -> None:
    ends = Ends(lab_directory, "tunnel-back", [targets[0].address], connect=LOOPBACK)
    with running(ends):
        assert passes(ends)
        ends.processes["serve"].kill()
        assert not passes(ends)
        assert ends.metric("connect", "refused_total", reason=Reason.LINK) == 1
        wait_until(lambda: ends.metric("connect", "list_current") == 0, 10, "connect to notice")
        ends.start("serve")
        wait_until(lambda: passes(ends), 20, "connections to pass again")
        ends.wait_until_ready()
        assert "does not answer" in ends.log("connect") or "cannot be reached" in ends.log("connect")


def test_connect_may_start_before_serve(lab_directory: Path, targets: list[Target]) -> None:
    ends = Ends(lab_directory, "tunnel-early", [targets[0].address], connect=LOOPBACK)
    try:
        ends.start("connect")
        wait_until(lambda: "trying again" in ends.log("connect"), 30, "connect to miss serve")
        ends.start("serve")
        wait_until(lambda: passes(ends), 30, "connections to pass")
    finally:
        ends.stop("connect")
        ends.stop("serve")


def test_listeners_follow_the_list(lab_directory: Path, targets: list[Target]) -> None:
    ends = Ends(lab_directory, "tunnel-list", [targets[0].address], connect=LOOPBACK)
    with running(ends):
        ends.targets = [targets[1].address]
        ends.write()
        ends.stop("serve")
        ends.start("serve")
        wait_until(lambda: passes(ends), 20, "the new target to be led to")
        ends.targets = [targets[0].address]
        with pytest.raises(ConnectionRefusedError):
            ends.dial()


def test_an_address_that_is_taken_keeps_the_others_from_nothing_and_is_tried_again(
    lab_directory: Path, targets: list[Target], tmp_path: Path
) -> None:
    port = Address.parse(targets[0].address).port
    hosts = tmp_path / "hosts"
    hosts.write_text("")
    cluster = {"bootstrap": f"localhost:{port}"}  # 127.0.4.1, and whoever listens there first
    own = {"loopback": "127.0.4.1", "hosts_file": str(hosts)}
    second = targets[1].address.replace("127.0.0.1", "host.invalid")
    ends = Ends(lab_directory, "tunnel-taken", [second, targets[1].address], cluster=cluster, connect=own)
    taken = socket.create_server(("127.0.4.1", port))
    with running(ends, "--write-hosts"):
        assert ends.metric("connect", "targets_without_listener") == 1
        assert f"cannot listen on 127.0.4.1:{port}: Address already in use" in ends.log("connect")
        own["loopback"] = "127.0.4.3"  # bootstrap, host.invalid, 127.0.0.1
        assert passes(ends, 1)
        assert "127.0.4.2\thost.invalid" in hosts.read_text()
        taken.close()
        wait_until(lambda: ends.metric("connect", "targets_without_listener") == 0, 10, "the address to be tried again")
        ends.targets, own["loopback"] = [f"localhost:{port}"], "127.0.4.1"
        assert passes(ends)
        assert ends.log("connect").count("cannot listen") == 1


def test_a_hosts_file_that_cannot_be_written_ends_connect_with_the_reason(
    lab_directory: Path, targets: list[Target], tmp_path: Path
) -> None:
    own = {**LOOPBACK, "write_hosts": True, "hosts_file": str(tmp_path / "missing")}
    ends = Ends(lab_directory, "tunnel-unwritable", [targets[0].address], connect=own)
    try:
        ends.start("serve")
        ends.start("connect")
        assert ends.processes["connect"].wait(30) != 0
        assert "leave out --write-hosts and use `barnabas tunnel hosts`" in ends.log("connect")
    finally:
        ends.stop("connect")
        ends.stop("serve")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_connect_cleanly_and_its_block_is_gone(
    lab_directory: Path, targets: list[Target], tmp_path: Path, number: signal.Signals
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    own = {**LOOPBACK, "hosts_file": str(hosts)}
    ends = Ends(lab_directory, f"tunnel-{number.name}", [targets[0].address], connect=own)
    with running(ends, "--write-hosts"), ends.dial() as client:
        client.sendall(b"ping")
        assert client.recv(10) == b"ping"
        assert "barnabas tunnel eu: begin" in hosts.read_text()
        pid = ends.processes["connect"].pid
        assert pid is not None
        os.kill(pid, number)
        assert ends.processes["connect"].wait(10) == 0
        assert hosts.read_text() == "127.0.0.1 localhost\n"
        with pytest.raises(ConnectionResetError):
            client.recv(10)
        assert f"stopped by {number.name}" in ends.log("connect")


def test_a_locked_hosts_file_freezes_neither_connections_nor_the_end(
    lab_directory: Path, targets: list[Target], readable: Path
) -> None:
    hosts = readable / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    port = Address.parse(targets[0].address).port
    cluster = {"bootstrap": f"broker.invalid:{port}"}
    own = {**LOOPBACK, "hosts_file": str(hosts)}
    ends = Ends(lab_directory, "tunnel-locked", [targets[0].address], cluster=cluster, connect=own)
    try:
        with locked(hosts) as pid:
            ends.start("serve")
            ends.start("connect", "--write-hosts")
            wait_until(lambda: f"is locked by process {pid}" in ends.log("connect"), 30, "the lock to be reported")
            own["loopback"] = "127.0.3.2"  # behind the name to start from
            wait_until(lambda: passes(ends), 10, "connections to pass")
        wait_until(lambda: "127.0.3.1\tbroker.invalid" in hosts.read_text(), 10, "the names to be written")
        with locked(hosts):
            started = time.monotonic()
            ends.stop("connect")
            assert time.monotonic() - started < 8
        assert "its names stay in the hosts file" in ends.log("connect")
        assert ends.log("connect").count("is locked by") == 2
    finally:
        ends.stop("connect")
        ends.stop("serve")


def test_hosts_asks_serve_for_brokers_that_are_discovered(lab_directory: Path, source: KafkaCluster) -> None:
    """The lab's broker advertises an address, for which there is no name; the name to start from is mapped."""
    [port] = source.ports
    cluster = {"bootstrap": f"broker.invalid:{port},{source.bootstrap}"}
    ends = Ends(lab_directory, "tunnel-hosts", [], cluster=cluster, connect=LOOPBACK)
    with running(ends):
        wait_until(lambda: ends.metric("serve", "targets") >= 2, 20, "the cluster's answer")
        command = [sys.executable, "-m", "tests.tunnel_ends", "hosts", "-c", str(ends.file), "--format", "compose"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert printed == 'extra_hosts:\n  - "broker.invalid:127.0.3.1"\n'


def test_a_broker_whose_name_no_hosts_file_takes_is_left_out_and_the_others_are_led_to(lab_directory: Path) -> None:
    hosts = ["127.0.0.1", "broker.invalid."]
    with KafkaCluster(lab_directory, "tunnel-dot", brokers=2, hosts=hosts, heap_megabytes=256) as brokers:
        first, second = (f"127.0.0.1:{port}" for port in brokers.ports)
        ends = Ends(lab_directory, "tunnel-illegal", [], cluster={"bootstrap": second}, connect=LOOPBACK)
        with running(ends):
            wait_until(lambda: f"now leads to {first}" in ends.log("serve"), 30, "the cluster's answer")
            line = "broker 1 advertises 'broker.invalid.', port"
            wait_until(lambda: line in ends.log("serve"), 30, "the line about the other")
            wait_until(lambda: ends.metric("connect", "targets") == 2, 30, "both addresses at connect")
            assert ends.metric("serve", "list_current") == 1
            assert ends.log("serve").count(line) == 1


def test_serve_finds_a_rotated_password_without_a_restart(lab_directory: Path, tmp_path: Path) -> None:
    security = Security(Protocol.SASL_PLAINTEXT, Mechanism.SCRAM_SHA_512)
    with KafkaCluster(lab_directory, "tunnel-scram", security=security) as brokers:
        settings, password = brokers.client_settings(), tmp_path / "password"
        password.write_text("yesterday's")
        sasl = {"mechanism": "SCRAM-SHA-512", "username": settings["sasl.username"], "password": f"file:{password}"}
        cluster = {"bootstrap": brokers.bootstrap, "sasl": sasl}
        ends = Ends(lab_directory, "tunnel-rotated", [], cluster=cluster, connect=LOOPBACK)
        ends.start("serve")
        try:
            wait_until(lambda: "does not tell its brokers" in ends.log("serve"), 30, "the old password to be refused")
            assert ends.metric("serve", "list_current") == 0
            password.write_text(settings["sasl.password"])
            wait_until(lambda: ends.metric("serve", "list_current") == 1, 30, "the new password to be used")
            password.unlink()
            wait_until(lambda: "secret file" in ends.log("serve"), 30, "the missing file to be told")
            password.write_text(settings["sasl.password"])
            wait_until(lambda: ends.metric("serve", "list_current") == 1, 30, "the file to be read again")
            assert settings["sasl.password"] not in ends.log("serve")
        finally:
            ends.stop("serve")
