"""Mirrors whose destination takes no records keep their own slots, and leave one to the mirror that can copy."""

import re
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, count_of, partitions_of, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, wait_until

HANGING, PARTITIONS = 3, 2
SECONDS = 60  # a slot is taken for longer: a producer waits 100 s for a topic without enough replicas in sync


def running_jobs(run: Run) -> int:
    """How many micro-batches the Spark UI says are under way."""
    found = re.search(r"Spark UI at (http://127\.0\.0\.1:\d+)", run.messages)
    assert found, run.messages
    with urllib.request.urlopen(f"{found[1]}/api/v1/applications", timeout=60) as answer:
        [app] = re.findall(r'"id" : "([^"]+)"', answer.read().decode())
    with urllib.request.urlopen(f"{found[1]}/api/v1/applications/{app}/jobs?status=running", timeout=60) as answer:
        return len(re.findall(r'"jobId" :', answer.read().decode()))


def create_on(broker: int, where: str, topic: str) -> None:
    """Creates a topic whose every partition is on this one broker."""
    placed = NewTopic(topic, num_partitions=PARTITIONS, replica_assignment=[[broker]] * PARTITIONS)
    admin = AdminClient({"bootstrap.servers": where})
    for future in admin.create_topics([placed]).values():
        future.result(60)
    wait_until(lambda: partitions_of(where, topic) == PARTITIONS, 60, f"topic {topic} to have leaders")


@pytest.mark.slow
def test_three_mirrors_that_hang_do_not_stop_a_fourth(
    source: KafkaCluster, lab_directory: Path, topic_names: TopicNames, tmp_path: Path
) -> None:
    stuck, healthy = [topic_names(f"stuck{n}") for n in range(HANGING)], topic_names("healthy")
    for topic in [*stuck, healthy]:
        create_topic(source.bootstrap, topic, partitions=PARTITIONS)
    for topic in stuck:
        produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % PARTITIONS) for i in range(100)])
    mirrors = [{"name": topic, "from": topic} for topic in [*stuck, healthy]]
    with KafkaCluster(lab_directory, "half", brokers=3, heap_megabytes=256) as destination:
        create_on(0, destination.bootstrap, healthy)
        for topic in stuck:
            create_on(2, destination.bootstrap, topic)
        destination.stop_broker(2)
        file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)
        with Run(tmp_path, "run", "-c", file) as run:
            wait_until(lambda: hang(run), 240, "the three mirrors to hang")
            produce(source.bootstrap, healthy, [Record(b"k", b"%d" % i, (), 1000, i % PARTITIONS) for i in range(100)])
            wait_until(lambda: count_of(destination.bootstrap, healthy) == 100, SECONDS, "the healthy mirror to copy")
            assert hang(run)


def hang(run: Run) -> bool:
    return "Spark UI at" in run.messages and running_jobs(run) >= HANGING
