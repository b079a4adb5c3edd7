"""The examples are configurations that work: each passes `check`, and two of them copy real records."""

from pathlib import Path

import pytest
import yaml

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.registry import Registry
from barnabas.lab.security import Mechanism, Protocol, Security
from barnabas.schemas.wire import prefixed
from tests.barnabas_runs import ran
from tests.kafka_io import Record, create_topic, delete_topics, produce, read_all
from tests.registries import Registries, versions

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
VARIABLES = {
    f"{side}_{kind}": "secret"
    for side in ("SOURCE_API", "DESTINATION_API", "ORANGE", "GRAPE")
    for kind in ("KEY", "SECRET")
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_passes_check(example: Path, tmp_path: Path) -> None:
    code, run = ran(tmp_path, "check", "-c", example, **VARIABLES)
    assert code == 0, run.messages
    effective = yaml.safe_load(run.output)
    assert effective["clusters"]
    assert effective["mirrors"]


def test_the_example_of_two_regions_copies_records_by_api_keys_over_tls(tmp_path: Path) -> None:
    security = Security(Protocol.SASL_SSL, Mechanism.PLAIN, {"key": "secret"})
    guard = Guard(tmp_path / "lab")
    text = (EXAMPLES[0].parent / "two-regions.yaml").read_text()
    with (
        KafkaCluster(tmp_path / "lab", "orange", security=security) as orange,
        KafkaCluster(tmp_path / "lab", "grape", security=security) as grape,
    ):
        content = yaml.safe_load(text)
        for cluster in (orange, grape):
            assert cluster.certificates
            content["clusters"][cluster.name] |= {
                "bootstrap": cluster.bootstrap,
                "tls": {"ca": str(cluster.certificates.ca)},
            }
        file = tmp_path / "two-regions.yaml"
        file.write_text(yaml.safe_dump(content))
        for topic in ("eu.xaz.customerbillstopic", "us.xaz.other"):
            create_topic(orange.client_settings(), topic)
            produce(orange.client_settings(), topic, [Record(b"k", b"%d" % i, (), 1000) for i in range(50)])
        keys = {name: "key" if name.endswith("KEY") else "secret" for name in VARIABLES}
        code, run = ran(tmp_path, "run", "--until-caught-up", "-c", file, **keys)
        assert code == 0, run.messages
        there = read_all(grape.client_settings(), "eu.xaz.customerbillstopic.copy")
        assert [record.value for record in there] == [b"%d" % i for i in range(50)]
        assert "us.xaz.other.copy" not in grape.admin().list_topics(timeout=30).topics
    guard.end()


def test_the_example_of_groups_copies_records_with_their_schemas(
    tmp_path: Path,
    source: KafkaCluster,
    destination: KafkaCluster,
    source_registry: Registry,
    destination_registry: Registry,
) -> None:
    content = yaml.safe_load((EXAMPLES[0].parent / "groups.yaml").read_text())
    content["clusters"]["source"] |= {"bootstrap": source.bootstrap, "registry": {"url": source_registry.url}}
    content["clusters"]["destination"] |= {
        "bootstrap": destination.bootstrap,
        "registry": {"url": destination_registry.url},
    }
    content["groups"][0]["topics"]["replication"] = {"fixed": 1}  # this cluster has one broker
    del content["metrics"]["prometheus"]
    file = tmp_path / "groups.yaml"
    file.write_text(yaml.safe_dump(content))
    create_topic(source.bootstrap, "source-topic", partitions=2)
    registries = Registries.with_other_ids(source_registry, destination_registry)
    (number,) = registries.fill("source-topic-value", versions("Example", 1))
    value = prefixed(number, b"\x02")
    produce(source.bootstrap, "source-topic", [Record(b"k", value, (), 1000, i % 2) for i in range(50)])
    name = "prod__source-topic__mirror_test_copy_4"
    try:
        code, run = ran(tmp_path, "run", "--until-caught-up", "-c", file, "--mirror", name)
        assert code == 0, run.messages
        assert f"{name}: done, copied 50 records" in run.output
        (version,) = registries.destination.history("mirror_test_copy_4-value")
        assert version.schema.canonical() == versions("Example", 1)[0].canonical()
        there = prefixed(version.id, b"\x02")
        assert there != value
        assert [record.value for record in read_all(destination.bootstrap, "mirror_test_copy_4")] == [there] * 50
        partitions = destination.admin().list_topics("mirror_test_copy_4", timeout=30).topics["mirror_test_copy_4"]
        assert len(partitions.partitions) == 3, "at least three, as its rule says"
    finally:
        delete_topics(source.bootstrap, ["source-topic"])
        delete_topics(destination.bootstrap, ["mirror_test_copy_4", f"_barnabas.{name}"])


def test_the_example_of_one_subject_makes_one_topic_and_one_subject_of_several(
    tmp_path: Path,
    source: KafkaCluster,
    destination: KafkaCluster,
    source_registry: Registry,
    destination_registry: Registry,
) -> None:
    content = yaml.safe_load((EXAMPLES[0].parent / "one-subject.yaml").read_text())
    content["clusters"]["source"] |= {"bootstrap": source.bootstrap, "registry": {"url": source_registry.url}}
    content["clusters"]["destination"] |= {
        "bootstrap": destination.bootstrap,
        "registry": {"url": destination_registry.url},
    }
    file = tmp_path / "one-subject.yaml"
    file.write_text(yaml.safe_dump(content))
    registries = Registries.with_other_ids(source_registry, destination_registry)
    sent = {}
    for topic, name in (("src-orders", "Order"), ("src-clicks", "Click")):  # no versions of each other
        create_topic(source.bootstrap, topic)
        (number,) = registries.fill(f"{topic}-value", versions(name, 1))
        sent[topic] = [Record(topic.encode(), prefixed(number, b"%d" % at), (), 1000 + at) for at in range(20)]
        produce(source.bootstrap, topic, sent[topic])
    try:
        code, run = ran(tmp_path, "run", "--until-caught-up", "-c", file)
        assert code == 0, run.messages
        history = registries.destination.history("dst-events-value")
        assert len(history) == 2
        there = {v.schema.canonical(): v.id for v in history}
        for topic, name in (("src-orders", "Order"), ("src-clicks", "Click")):
            number = there[versions(name, 1)[0].canonical()]
            mine = [r.value for r in read_all(destination.bootstrap, "dst-events") if r.key == topic.encode()]
            assert mine == [prefixed(number, b"%d" % at) for at in range(20)]
    finally:
        delete_topics(source.bootstrap, list(sent))
        delete_topics(destination.bootstrap, ["dst-events", "_barnabas.all"])
