"""Executors that are processes of their own on this machine: they authenticate, and read secrets from our files."""

from pathlib import Path

import pytest
import yaml

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce


@pytest.mark.slow
def test_a_mirror_copies_on_a_local_cluster(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % 2) for i in range(5000)])
    mirror = {"name": f"m-{topic}", "from": topic}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    document = yaml.safe_load(file.read_text())
    document["spark"]["master"] = "local-cluster[2,1,1100]"
    file.write_text(yaml.safe_dump(document))
    code, run = ran(tmp_path, "run", "-c", file, "--until-caught-up")
    assert code == 0, run.messages
    assert copied(source.bootstrap, destination.bootstrap, topic) == 5000
