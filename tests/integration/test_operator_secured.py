"""What an operator configures, on clusters that ask for credentials: selection, rotation, and no secret told."""

import json
import os
import re
import signal
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.ports import free_ports
from barnabas.lab.security import Mechanism, Protocol, Security
from tests.barnabas_runs import Run
from tests.fake_registry import Server
from tests.kafka_io import Record, create_topic, delete_topics, produce, read_all, wait_until
from tests.listeners import tcp_ports, unix_sockets
from tests.stranger import everything, visit

CANARY = 'canary-7f3a-Sw0rd"fi\\sh'
ROTATED = "canary-91be-Trombone fish"
DESTINATION_CANARY = "canary-4c2d-Marble$fish"
REGISTRY_CANARY = "canary-a8e0-Harbour/fish"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    directory = tmp_path_factory.mktemp("secured")
    guard = Guard(directory)
    scram = Security(Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512, {"barnabas": CANARY})
    plain = Security(Protocol.SASL_PLAINTEXT, Mechanism.PLAIN, {"barnabas": DESTINATION_CANARY})
    with (
        KafkaCluster(directory, "orange", security=scram) as orange,
        KafkaCluster(directory, "grape", security=plain) as grape,
    ):
        yield orange, grape
    guard.end()


SEEN = {"name": "seen", "from": "seen", "to": "{topic}.copy", "schemas": {"value": "auto", "mode": "ids"}}
MIRROR = {"name": "eu", "from": {"match": "eu[.]xaz[.].*", "except": [".*[.]tmp"]}, "to": "{topic}.copy"}


def reached(cluster: KafkaCluster, directory: Path) -> dict[str, Any]:
    """A cluster's block: its addresses and its password in a file."""
    secret = {"username": "barnabas", "password": f"file:{directory}/{cluster.name}.secret"}
    if cluster.certificates is None:
        return {"bootstrap": cluster.bootstrap, "sasl": {"mechanism": "PLAIN", **secret}}
    sasl = {"mechanism": "SCRAM-SHA-512", **secret}
    return {"bootstrap": cluster.bootstrap, "tls": {"ca": str(cluster.certificates.ca)}, "sasl": sasl}


def configuration(
    directory: Path, orange: KafkaCluster, grape: KafkaCluster, port: int, registry: str | None = None
) -> Path:
    """The source by SCRAM over TLS, the destination by PLAIN, the log of Spark as loud as it gets."""
    for name, secret in (("orange", CANARY), ("grape", DESTINATION_CANARY), ("registry", REGISTRY_CANARY)):
        (directory / f"{name}.secret").write_text(secret)
    login = {"url": registry, "username": "barnabas", "password": f"file:{directory}/registry.secret"}
    registries = {"registry": login} if registry else {}
    mirror = SEEN if registry else MIRROR
    events = directory / "events"
    events.mkdir(exist_ok=True)
    content = {
        "clusters": {
            "orange": {**reached(orange, directory), **registries},
            "grape": {**reached(grape, directory), **registries},
        },
        "spark": {
            "settings": {
                "spark.log.level": "TRACE",
                "spark.eventLog.enabled": True,
                "spark.eventLog.compress": False,
                "spark.eventLog.dir": f"file:{events}",
            }
        },
        "metrics": {"prometheus": {"port": port}, "console": {"every_seconds": 5}},
        "groups": [{"name": "regions", "source": "orange", "destination": "grape", "mirrors": [mirror]}],
    }
    file = directory / "barnabas.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def write(cluster: KafkaCluster, topic: str, count: int, word: bytes) -> None:
    produce(
        cluster.client_settings(), topic, [Record(b"k", b"%s %d" % (word, i), (), 1000, i % 2) for i in range(count)]
    )


def values(cluster: KafkaCluster, topic: str) -> list[tuple[int, bytes | None]]:
    return [(record.partition, record.value) for record in read_all(cluster.client_settings(), topic)]


def test_another_user_of_the_machine_finds_no_secret_and_stops_nothing(
    tmp_path: Path, clusters: tuple[KafkaCluster, KafkaCluster]
) -> None:
    orange, grape = clusters
    create_topic(orange.client_settings(), "seen", partitions=2)
    write(orange, "seen", 40, b"before")
    (port,) = free_ports(1)
    with closing(Server()) as registry, open_to_all() as place:
        registry.answers = [(200, {"compatibilityLevel": "NONE"})]
        file = configuration(tmp_path, orange, grape, port, registry.url)
        with Run(tmp_path / "run", "run", "-c", file, TMPDIR=str(place)) as run:
            wait_until(lambda: _count(grape, "seen.copy") == 40, 240, "the records before the attack")
            pids = sorted(run.processes())
            ports, sockets = tcp_ports(pids), unix_sockets(pids)
            with ThreadPoolExecutor(1) as pool:
                visiting, written = pool.submit(visit, ports, sockets, pids, place), 40
                while not visiting.done():  # so that there are jobs to be killed
                    write(orange, "seen", 40, b"meanwhile")
                    written += 40
                found = visiting.result()
            wait_until(lambda: _count(grape, "seen.copy") == written, 240, "the records written meanwhile")
            page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
            run.signal(signal.SIGTERM)
            assert run.wait() == 0, run.messages
    delete_topics(grape.client_settings(), ["seen.copy"])
    assert len(ports) == 6, "the Spark UI, RPC, blocks, both ends of py4j, and the metrics page"
    assert sockets and not [name for name in sockets if name.startswith("@")]
    texts = everything(found)
    assert sum(len(text) for text in texts.values()) > 100_000, "the attack reached the pages that are open to all"
    for secret in (CANARY, DESTINATION_CANARY, REGISTRY_CANARY):
        told = [where for where, text in texts.items() if secret.encode() in text]
        assert not told, f"{secret} stands in {told}"
    assert [attack["port"] for attack in found["attacks"] if attack["blocks"]] == []
    assert [attack["answered_calls"] for attack in found["attacks"] if attack["answered_calls"]] == []
    assert sum(attack["kills"] for attack in found["attacks"]) > 0, "jobs ran, and were to be killed"
    assert found["connected"] == [] and found["files"] == {}
    assert not [pid for pid, seen in found["seen"].items() if "environ" in seen or "maps" in seen]
    assert 'barnabas_failures_total{mirror="seen"} 0.0' in page


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A TMPDIR as /tmp is: everybody may enter it. What we make in it must protect itself, with no umask to help."""
    umask = os.umask(0)
    try:
        with tempfile.TemporaryDirectory(dir="/tmp") as place:
            Path(place).chmod(0o1777)
            yield Path(place)
    finally:
        os.umask(umask)


def test_twenty_topics_follow_a_rule_through_scram_and_tls_and_a_rotated_password_and_no_secret_is_told(
    tmp_path: Path, clusters: tuple[KafkaCluster, KafkaCluster]
) -> None:
    orange, grape = clusters
    first = [f"eu.xaz.bills{n}" for n in range(17)]
    late = [f"eu.xaz.late{n}" for n in range(3)]
    others = ["dc2.eu.xaz.bills", "eu.xaz.bills.tmp", "eu-xaz-bills", "orders"]
    for topic in [*first, *others]:
        create_topic(orange.client_settings(), topic, partitions=2)
        write(orange, topic, 40, b"early")
    (port,) = free_ports(1)
    file = configuration(tmp_path, orange, grape, port)
    with Run(tmp_path / "run", "-v", "run", "-c", file, TMPDIR=str(tmp_path)) as run:
        wait_until(lambda: all(_count(grape, f"{t}.copy") == 40 for t in first), 240, "the first seventeen topics")
        for topic in late:
            create_topic(orange.client_settings(), topic, partitions=2)
            write(orange, topic, 40, b"late")
        wait_until(lambda: all(_count(grape, f"{t}.copy") == 40 for t in late), 240, "the three late topics")
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        ui = _spark_pages(run)

        orange.set_password("barnabas", ROTATED)
        (tmp_path / "orange.secret").write_text(ROTATED)
        orange.stop_broker(0)  # connections that were let in before stay; a restart asks again
        orange.start_broker(0)
        fresh = {**orange.client_settings(), "sasl.password": ROTATED}
        produce(fresh, first[0], [Record(b"k", b"rotated %d" % i, (), 1000, i % 2) for i in range(40)])
        wait_until(lambda: _count(grape, f"{first[0]}.copy") == 80, 240, "records after the password was rotated")
        run.signal(signal.SIGTERM)
        assert run.wait() == 0, run.messages
    names = sorted(name for name in grape.admin().list_topics(timeout=30).topics if not name.startswith("_"))
    assert names == sorted(f"{topic}.copy" for topic in [*first, *late])
    for topic in [*first[1:], *late]:
        word = b"late" if topic in late else b"early"
        assert values(grape, f"{topic}.copy") == [(p, b"%s %d" % (word, i)) for p in (0, 1) for i in range(p, 40, 2)]
    assert 'barnabas_records_written_total{mirror="eu",topic="eu.xaz.bills0.copy"} 40.0' in page
    assert re.search(r"barnabas_jvm_memory_bytes\{area=\"heap\",kind=\"used\"\} \d", page)
    everything = {"output": run.output, "messages": run.messages, "metrics": page, "Spark's pages": ui}
    everything |= {
        f"ledger {r.offset}": f"{r.key!r} {r.value!r}" for r in read_all(grape.client_settings(), "_barnabas.eu")
    }
    events = [path for path in (tmp_path / "events").rglob("*") if path.is_file()]
    everything |= {str(path): path.read_bytes().decode(errors="replace") for path in events}
    assert any("SparkListenerApplicationStart" in text for text in everything.values())
    for secret in (CANARY, ROTATED, DESTINATION_CANARY):
        told = [place for place, text in everything.items() if secret in text or json.dumps(secret)[1:-1] in text]
        assert not told, f"{secret} stands in {told}"
    assert not list(tmp_path.glob("barnabas-[sq]*")), "no directory of Spark or of a query is left"


def _count(cluster: KafkaCluster, topic: str) -> int:
    if topic not in cluster.admin().list_topics(timeout=30).topics:
        return 0
    return len(values(cluster, topic))


def _spark_pages(run: Run) -> str:
    """Every page of the Spark UI where options or plans are shown."""
    found = re.search(r"Spark UI at (http://127\.0\.0\.1:\d+)", run.messages)
    assert found, run.messages
    base = found.group(1)
    pages = ["/environment/", "/SQL/", "/StreamingQuery/", "/jobs/", "/stages/", "/executors/"]
    pages += [f"/SQL/execution/?id={number}" for number in range(5)]
    texts = []
    for page in pages:
        with urllib.request.urlopen(base + page, timeout=60) as answer:
            texts.append(answer.read().decode())
    return "\n".join(texts)
