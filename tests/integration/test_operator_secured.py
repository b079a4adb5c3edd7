"""What an operator configures, on clusters that ask for credentials: selection, rotation, and no secret told."""

import json
import re
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.ports import free_ports
from barnabas.lab.security import Mechanism, Protocol, Security
from tests.barnabas_runs import Run
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until

CANARY = 'canary-7f3a-Sw0rd"fi\\sh'
ROTATED = "canary-91be-Trombone fish"
DESTINATION_CANARY = "canary-4c2d-Marble$fish"


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


def configuration(directory: Path, orange: KafkaCluster, grape: KafkaCluster, port: int) -> Path:
    """The source by SCRAM over TLS, the destination by PLAIN, the log of Spark as loud as it gets."""
    assert orange.certificates
    for name, secret in (("orange", CANARY), ("grape", DESTINATION_CANARY)):
        (directory / f"{name}.secret").write_text(secret)
    events = directory / "events"
    events.mkdir(exist_ok=True)
    content = {
        "clusters": {
            "orange": {
                "bootstrap": orange.bootstrap,
                "tls": {"ca": str(orange.certificates.ca)},
                "sasl": {
                    "mechanism": "SCRAM-SHA-512",
                    "username": "barnabas",
                    "password": f"file:{directory}/orange.secret",
                },
            },
            "grape": {
                "bootstrap": grape.bootstrap,
                "sasl": {"mechanism": "PLAIN", "username": "barnabas", "password": f"file:{directory}/grape.secret"},
            },
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
        "groups": [
            {
                "name": "regions",
                "source": "orange",
                "destination": "grape",
                "mirrors": [
                    {"name": "eu", "from": {"match": "eu[.]xaz[.].*", "except": [".*[.]tmp"]}, "to": "{topic}.copy"}
                ],
            }
        ],
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
