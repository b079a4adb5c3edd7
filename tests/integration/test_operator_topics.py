"""Rules about topics on real records: settings kept in step, partitions by key as Java clients choose them, filters."""

from pathlib import Path
from typing import Any

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pyspark.sql import SparkSession

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted", "tests.spark_session"]


def test_settings_of_a_topic_follow_the_source_while_the_mirror_runs_and_only_when_asked(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    followed, left = topic_names("followed"), topic_names("left")
    for topic in (followed, left):
        create_topic(source.bootstrap, topic, retention_ms="7200000", max_message_bytes="2000000")
        produce(source.bootstrap, topic, [Record(b"k", b"1")])
    rules = {"keep_in_step": True, "settings": {"max.message.bytes": 3_000_000}}
    mirrors: list[dict[str, Any]] = [{"name": f"m-{topic}", "from": topic} for topic in (followed, left)]
    mirrors[0]["topics"] = rules
    run = host.start(source.bootstrap, destination.bootstrap, mirrors)
    for topic in (followed, left):
        wait_until(lambda t=topic: count_of(destination.bootstrap, t) == 1, 120, f"the copy of {topic}")  # type: ignore[misc]
        assert settings(destination, topic)["retention.ms"] == "7200000"
    for topic in (followed, left):
        alter(source, topic, "retention.ms", "10800000")
        alter(source, topic, "cleanup.policy", "compact,delete")
    wait_until(
        lambda: (
            settings(destination, followed).items() >= {"retention.ms": "10800000"}.items()
            and set(settings(destination, followed)["cleanup.policy"].split(",")) == {"compact", "delete"}
        ),
        60,
        "new settings at the destination",
    )
    alter(source, followed, "retention.ms", None)
    wait_until(lambda: "retention.ms" not in settings(destination, followed), 60, "the broker's default again")
    assert settings(destination, followed)["max.message.bytes"] == "3000000", "what the mirror sets itself stays"
    alone = {"retention.ms": "7200000", "max.message.bytes": "2000000", "message.timestamp.type": "CreateTime"}
    assert settings(destination, left) == alone
    ended = run.stop()
    assert {mirror["state"] for mirror in ended.values()} == {"stopped"}, ended
    assert {mirror["restarts"] for mirror in ended.values()} == {0}


def test_records_spread_by_key_over_fewer_partitions_lie_where_a_java_client_puts_them(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, spark: SparkSession
) -> None:
    topic, by_java = topic_names("orders"), topic_names("by-java")
    create_topic(source.bootstrap, topic, partitions=6)
    create_topic(destination.bootstrap, topic, partitions=4)
    create_topic(destination.bootstrap, by_java, partitions=4)
    keys = [bytes([i % 256]) * (i % 23) for i in range(1000)]  # lengths of every remainder by 4, high bytes, empty
    wanted = [Record(key, b"%d" % i, (), 1000 + i, i % 6) for i, key in enumerate(keys)]
    produce(source.bootstrap, topic, wanted)
    refused = host.catch_up(source.bootstrap, destination.bootstrap, {"name": f"m-{topic}", "from": topic})
    assert refused[f"m-{topic}"]["state"] == "refused"
    assert "set `partitioning: key`" in refused[f"m-{topic}"]["error"]
    assert count_of(destination.bootstrap, topic) == 0
    mirror = {"name": f"m-{topic}", "from": topic, "partitioning": "key"}
    ended = host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    assert ended[f"m-{topic}"]["state"] == "done", ended
    frame = spark.createDataFrame(
        [(bytearray(r.key or b""), bytearray(r.value or b"")) for r in wanted], "key binary, value binary"
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", destination.bootstrap).option("topic", by_java).save()
    ours, javas = (
        {(r.value, r.key): r.partition for r in read_all(destination.bootstrap, t)} for t in (topic, by_java)
    )
    assert len(ours) == 1000
    assert ours == javas
    assert set(ours.values()) == {0, 1, 2, 3}


def test_only_records_that_the_predicate_holds_for_are_copied_and_the_rest_is_worked_through(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topic = topic_names("bills")
    create_topic(source.bootstrap, topic, partitions=2)
    records = [
        Record(
            b"k%d" % i, None if i % 10 == 0 else b'{"land": "%s"}' % (b"eu" if i % 2 else b"us"),
            (("class", b"%d" % (i % 3)),), 1_000_000 + i, i // 50,
        )
        for i in range(100)
    ]  # fmt: skip
    produce(source.bootstrap, topic, records)
    predicates = {
        "land": "get_json_object(cast(value as string), '$.land') = 'eu'",
        "headers": "exists(headers, h -> h.key = 'class' and cast(h.value as string) = '2')",
        "place": "partition = 1 and offset >= 40",
        "late": "timestamp >= timestamp_millis(1000090) and cast(key as string) != 'k95'",
        "tombstones": "value is null",
        "bytes": "key = X'6B31' and typeof(value) = 'binary'",
        "none": "false",
    }
    mirrors = [
        {"name": f"{name}-{topic}", "from": topic, "to": f"{{topic}}.{name}", "where": where}
        for name, where in predicates.items()
    ]
    expected = {
        "land": [r for r in records if r.value and b"eu" in r.value],
        "headers": [r for r in records if r.headers == (("class", b"2"),)],
        "place": records[90:],
        "late": [r for r in records[90:] if r.key != b"k95"],
        "tombstones": [r for r in records if r.value is None],
        "bytes": records[1:2],
        "none": [],
    }
    ended = host.catch_up(source.bootstrap, destination.bootstrap, *mirrors)
    for name, wanted in expected.items():
        found = [r._replace(offset=-1) for r in read_all(destination.bootstrap, f"{topic}.{name}")]
        assert found == wanted, name
        told = ended[f"{name}-{topic}"]
        assert (told["state"], told["records"], told["lag"]) == ("done", len(wanted), 0), told
    again = host.catch_up(source.bootstrap, destination.bootstrap, *mirrors)
    assert {mirror["records"] for mirror in again.values()} == {0}
    file = write_configuration(
        tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [{"from": topic, "where": "valeu is null"}]
    )
    code, wrong = ran(tmp_path, "check", "-c", file)
    assert (code, wrong.output) == (2, "")
    assert "c.yaml:11" in wrong.messages and "valeu" in wrong.messages


def settings(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """What is set at the topic itself."""
    resource, admin = ConfigResource(ResourceType.TOPIC, topic), cluster.admin()
    [future] = admin.describe_configs([resource]).values()
    found = future.result(30).values()
    return {entry.name: entry.value for entry in found if entry.source == 1}  # DYNAMIC_TOPIC_CONFIG


def alter(cluster: KafkaCluster, topic: str, name: str, value: str | None) -> None:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource, admin = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry]), cluster.admin()
    [future] = admin.incremental_alter_configs([resource]).values()
    future.result(30)
