"""Mirrors whose destination takes no records keep their own slots, and leave one to the mirror that can copy."""

import re
import urllib.request
from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, count_of, write_configuration
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


def test_three_mirrors_that_hang_do_not_stop_a_fourth(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    stuck, healthy = [topic_names(f"stuck{n}") for n in range(HANGING)], topic_names("healthy")
    for topic in [*stuck, healthy]:
        create_topic(source.bootstrap, topic, partitions=PARTITIONS)
        create_topic(
            destination.bootstrap, topic, partitions=PARTITIONS, min_insync_replicas="1" if topic == healthy else "2"
        )
    for topic in stuck:
        produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % PARTITIONS) for i in range(100)])
    mirrors = [{"name": topic, "from": topic} for topic in [*stuck, healthy]]
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)
    with Run(tmp_path, "run", "-c", file) as run:
        run.wait_says(f"{healthy}: copying")
        wait_until(lambda: running_jobs(run) >= HANGING, 120, "the three mirrors to hang")
        produce(source.bootstrap, healthy, [Record(b"k", b"%d" % i, (), 1000, i % PARTITIONS) for i in range(100)])
        wait_until(lambda: count_of(destination.bootstrap, healthy) == 100, SECONDS, "the healthy mirror to copy")
        assert [count_of(destination.bootstrap, topic) for topic in stuck] == [0] * HANGING
