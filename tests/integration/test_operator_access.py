"""A cluster that does not let us in is reported within seconds: which cluster, which address, why, and what to do."""

import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.cluster import Cluster
from barnabas.errors import AccessDenied, Unavailable
from barnabas.kafka.admin import Admin
from barnabas.kafka.settings import connection
from barnabas.lab.certificates import make_certificates
from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.security import Mechanism, Protocol, Security
from barnabas.patience import DENIED_CATCH_UP_SECONDS
from tests.barnabas_runs import Run, count_of, ran, within
from tests.kafka_io import Record, create_topic, delete_topics, produce, wait_until
from tests.tls_server import TlsServer, tls_server
from tests.tunnel_ends import Ends, running

SECONDS = 6.0
TUNNELLED = "127.0.9.1"  # where the cluster is reached through a tunnel
PASSWORD = "canary-2d9a-Lanternfish"


@pytest.fixture(scope="module")
def orange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    directory = tmp_path_factory.mktemp("access")
    guard = Guard(directory)
    security = Security(Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512, {"barnabas": PASSWORD})
    cluster = KafkaCluster(directory, "orange", security=security)
    cluster.certificates = make_certificates(directory / "tls", ["localhost", TUNNELLED])
    with cluster:
        yield cluster
    guard.end()


def told(name: str, block: dict[str, Any]) -> tuple[str, float]:
    """What is said of a cluster that does not let us in, and after how many seconds."""
    began = time.monotonic()
    with pytest.raises(AccessDenied) as refused:
        Admin(connection(name, Cluster.model_validate(block))).topic_names()
    return str(refused.value), time.monotonic() - began


Cases = dict[str, tuple[dict[str, Any], tuple[str, ...]]]


def certificates(expired: TlsServer, misnamed: TlsServer, mutual: TlsServer) -> Cases:
    """Servers whose certificate, or whose clients' certificate, is not what it should be."""
    return {
        "expired certificate": (
            {"bootstrap": expired.address, "tls": {"ca": str(expired.ca)}},
            ("certificate has expired", "renew it"),
        ),
        "no certificate of ours": (
            {"bootstrap": mutual.address, "tls": {"ca": str(mutual.ca)}},
            ("alert", "`certificate` and `key` under `tls`"),
        ),
        "another host's certificate": (
            {"bootstrap": misnamed.address, "tls": {"ca": str(misnamed.ca)}},
            ("not valid for 'localhost'", "advertised.listeners"),
        ),
    }


def test_each_way_of_not_being_let_in_is_told_within_seconds_with_address_cause_and_remedy(
    orange: KafkaCluster, destination: KafkaCluster, tmp_path: Path
) -> None:
    assert orange.certificates
    for name, secret in (("right", PASSWORD), ("wrong", "wrong-7f31")):
        (tmp_path / name).write_text(secret)
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "barnabas", "password": f"file:{tmp_path}/right"}
    tls = {"ca": str(orange.certificates.ca)}
    secured, bare = {"bootstrap": orange.bootstrap}, {"bootstrap": destination.bootstrap}
    with (
        tls_server(tmp_path / "expired", ["localhost"], days=-1) as expired,
        tls_server(tmp_path / "host", ["elsewhere.invalid"]) as misnamed,
        tls_server(tmp_path / "mutual", ["localhost"], mutual=True) as mutual,
    ):
        cases: Cases = {
            "wrong password": (
                {**secured, "tls": tls, "sasl": {**sasl, "password": f"file:{tmp_path}/wrong"}},
                ("Authentication failed", "are user and password right?"),
            ),
            "unknown user": (
                {**secured, "tls": tls, "sasl": {**sasl, "username": "nobody"}},
                ("Authentication failed", "are user and password right?"),
            ),
            "missing sasl": ({**secured, "tls": tls}, ("asks for SASL", "SCRAM-SHA-512", "`sasl`")),
            "wrong mechanism": (
                {**secured, "tls": tls, "sasl": {**sasl, "mechanism": "SCRAM-SHA-256"}},
                ("SCRAM-SHA-512", "`mechanism`"),
            ),
            "sasl where there is none": ({**bare, "sasl": sasl}, ("no SASL", "leave out `sasl`")),
            "TLS to a plaintext listener": ({**bare, "tls": tls}, ("no TLS", "leave out `tls`")),
            "plaintext to a TLS listener": ({**secured, "sasl": sasl}, ("speaks TLS", "`tls`")),
            "nothing to a secured listener": (secured, ("speaks TLS", "`tls`")),
            "untrusted CA": ({**secured, "tls": True, "sasl": sasl}, ("certificate", "`tls.ca`")),
            **certificates(expired, misnamed, mutual),
        }
        with ThreadPoolExecutor(len(cases)) as pool:
            found = dict(zip(cases, pool.map(lambda c: told(*c), ((n, b) for n, (b, _) in cases.items())), strict=True))
    for name, (sentence, seconds) in found.items():
        block, words = cases[name]
        assert seconds < within(SECONDS), (name, seconds, sentence)
        assert f'cluster "{name}" ({block["bootstrap"]})' in sentence
        assert all(word in sentence for word in words), (name, sentence)
        assert PASSWORD not in sentence and "wrong-7f31" not in sentence


def wrong_password(directory: Path, orange: KafkaCluster, destination: KafkaCluster) -> Path:
    """A configuration of one mirror, `m`, that is right but for the source's password."""
    assert orange.certificates
    (directory / "wrong").write_text("wrong-7f31")
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "barnabas", "password": f"file:{directory}/wrong"}
    clusters = {
        "orange": {"bootstrap": orange.bootstrap, "tls": {"ca": str(orange.certificates.ca)}, "sasl": sasl},
        "grape": {"bootstrap": destination.bootstrap},
    }
    group = {"name": "g", "source": "orange", "destination": "grape", "mirrors": [{"name": "m", "from": "orders"}]}
    file = directory / "c.yaml"
    file.write_text(json.dumps({"clusters": clusters, "groups": [group]}))
    return file


CAUSE = ("Authentication failed during authentication", "are user and password right?", 'cluster "orange"')


def test_plan_status_check_and_run_say_so_within_seconds(
    orange: KafkaCluster, destination: KafkaCluster, tmp_path: Path
) -> None:
    file = wrong_password(tmp_path, orange, destination)
    with Run(tmp_path / "run", "run", "-c", file) as run:
        for command in (["plan"], ["status"], ["check", "--connect"]):
            code, told_by = ran(tmp_path / command[0], *command, "-c", file)
            assert code == 1, told_by.messages
            assert all(word in told_by.output for word in CAUSE), told_by.output
            assert "wrong-7f31" not in told_by.output + told_by.messages
        run.wait_says("m: waiting: ", within(60))
        assert all(word in run.messages for word in CAUSE), run.messages
        run.signal(signal.SIGTERM)
        assert run.wait() == 0, run.messages


@pytest.mark.slow
def test_a_run_that_is_to_catch_up_does_not_wait_for_ever_to_be_let_in(
    orange: KafkaCluster, destination: KafkaCluster, tmp_path: Path
) -> None:
    file = wrong_password(tmp_path, orange, destination)
    with Run(tmp_path / "run", "run", "--until-caught-up", "-c", file) as run:
        assert run.wait(within(DENIED_CATCH_UP_SECONDS + 60)) == 1, run.messages
        assert "m: refused" in run.output
        assert all(word in run.messages.splitlines()[-1] for word in CAUSE), run.messages


@pytest.mark.slow
def test_a_mirror_waits_for_an_expired_certificate_to_be_renewed(destination: KafkaCluster, tmp_path: Path) -> None:
    guard, names = Guard(tmp_path / "lab"), ["localhost"]
    renewed = KafkaCluster(tmp_path / "lab", "renewed", security=Security(Protocol.SSL))
    renewed.certificates = make_certificates(tmp_path / "lab" / "renewed" / "tls", names, timedelta(days=-1))
    with renewed:
        source = {"bootstrap": renewed.bootstrap, "tls": {"ca": str(renewed.certificates.ca)}}
        clusters = {"renewed": source, "grape": {"bootstrap": destination.bootstrap}}
        mirrors = [{"name": "m-renewed", "from": "renewed-orders"}]
        group = {"name": "g", "source": "renewed", "destination": "grape", "mirrors": mirrors}
        file = tmp_path / "c.yaml"
        file.write_text(json.dumps({"clusters": clusters, "groups": [group]}))
        with Run(tmp_path / "run", "run", "-c", file) as run:
            run.wait_says("certificate has expired: renew it", within(60))
            make_certificates(tmp_path / "lab" / "renewed" / "tls", names)
            renewed.stop_broker(0)
            renewed.start_broker(0)
            create_topic(renewed.client_settings(), "renewed-orders")
            produce(renewed.client_settings(), "renewed-orders", [Record(b"k", b"v", (), 1000)] * 10)
            wait_until(lambda: count_of(destination.bootstrap, "renewed-orders") == 10, 240, "what was produced")
            run.signal(signal.SIGTERM)
            assert run.wait() == 0, run.messages
    guard.end()
    delete_topics(destination.bootstrap, ["renewed-orders", "_barnabas.m-renewed"])


def test_what_is_wrong_is_told_through_a_tunnel_too(lab_directory: Path, orange: KafkaCluster, tmp_path: Path) -> None:
    assert orange.certificates
    (tmp_path / "wrong").write_text("wrong-7f31")
    sasl = {"mechanism": "SCRAM-SHA-512", "username": "barnabas", "password": f"file:{tmp_path}/wrong"}
    [port] = orange.ports
    ends = Ends(lab_directory, "tunnel-access", [f"localhost:{port}"], connect={"loopback": TUNNELLED})
    with running(ends):
        through = {"bootstrap": f"{TUNNELLED}:{port}"}
        tls = {"ca": str(orange.certificates.ca)}
        sentence, seconds = told("orange", {**through, "tls": tls, "sasl": sasl})
        assert "Authentication failed" in sentence and seconds < within(SECONDS)
        sentence, seconds = told("orange", through)
        assert "speaks TLS" in sentence and seconds < within(SECONDS)
        ends.processes["serve"].kill()
        wait_until(lambda: ends.metric("connect", "list_current") == 0, 10, "connect to notice")
        admin = Admin(connection("orange", Cluster.model_validate({**through, "tls": tls, "sasl": sasl})))
        with pytest.raises(Unavailable, match="orange") as cut_off:
            admin.topic_names(5.0)
        assert type(cut_off.value) is Unavailable, "a tunnel that is down says nothing of our credentials"
