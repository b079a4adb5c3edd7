"""A mirrored topic may grow while it is copied: the destination grows first, and no new record is lost."""

from confluent_kafka.admin import NewPartitions

from barnabas.kafka.admin import Admin
from barnabas.lab.cluster import KafkaCluster
from barnabas.model import Connection
from tests.barnabas_runs import copied, count_of, partitions_of, within
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]

FOUND_SECONDS = 30.0


def grow(cluster: KafkaCluster, topic: str, partitions: int) -> None:
    admin = cluster.admin()  # named, or it would be gone before its answer
    for future in admin.create_partitions([NewPartitions(topic, partitions)]).values():
        future.result(30)
    wait_until(lambda: partitions_of(cluster.bootstrap, topic) == partitions, 30, f"{topic} to grow")


def test_a_topic_that_somebody_else_has_grown_is_large_enough(
    destination: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("grown")
    create_topic(destination.bootstrap, topic)
    grow(destination, topic, 3)
    admin = Admin(Connection("destination", destination.bootstrap, {"bootstrap.servers": destination.bootstrap}))
    for enough in (3, 2):
        admin.grow(topic, enough)
    assert admin.topics([topic])[topic].partitions == 3


def test_a_new_partition_is_found_within_30_seconds_while_running_and_copied_from_its_first_record(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic, late = topic_names("orders"), topic_names("late")
    for name in (topic, late):
        create_topic(source.bootstrap, name)
    produce(source.bootstrap, topic, [Record(b"k", b"old", (), 1000)] * 100)
    mirrors = [{"name": f"m-{topic}", "from": topic}, {"name": f"m-{late}", "from": late, "start": "latest"}]
    run = host.start(source.bootstrap, destination.bootstrap, mirrors)
    wait_until(lambda: count_of(destination.bootstrap, topic) == 100, 240, "the first partition")
    wait_until(lambda: late in destination.admin().list_topics(timeout=30).topics, 240, "the other mirror to begin")
    for name in (topic, late):
        grow(source, name, 3)
    for name in (topic, late):
        produce(source.bootstrap, name, [Record(b"k", b"new", (), 1000, i % 3) for i in range(90)])
    wait_until(
        lambda: partitions_of(destination.bootstrap, topic) == 3, within(FOUND_SECONDS), "the destination to grow"
    )
    wait_until(lambda: count_of(destination.bootstrap, topic) == 190, 240, "the new partitions' records")
    wait_until(lambda: count_of(destination.bootstrap, late) == 90, 240, "those of the mirror that began at the end")
    run.stop()
    assert copied(source.bootstrap, destination.bootstrap, topic) == 190
    assert copied(source.bootstrap, destination.bootstrap, late) == 90


def test_a_new_topic_is_found_within_30_seconds_while_running_and_copied_from_its_first_record(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    stem = topic_names("found")
    there, late = f"{stem}.there", f"{stem}.late"
    create_topic(source.bootstrap, there)
    produce(source.bootstrap, there, [Record(b"k", b"old", (), 1000)] * 10)
    mirror = {"name": f"m-{stem}", "from": {"match": f"{stem}[.].*"}, "start": "latest"}
    run = host.start(source.bootstrap, destination.bootstrap, [mirror])
    wait_until(lambda: there in destination.admin().list_topics(timeout=30).topics, 240, "the mirror to begin")
    create_topic(source.bootstrap, late)
    produce(source.bootstrap, late, [Record(b"k", b"new", (), 1000)] * 20)
    admin = destination.admin()
    wait_until(lambda: late in admin.list_topics(timeout=30).topics, within(FOUND_SECONDS), "the topic to be found")
    wait_until(lambda: count_of(destination.bootstrap, late) == 20, 240, "the new topic's records")
    run.stop()
    assert copied(source.bootstrap, destination.bootstrap, late) == 20


def test_a_topic_that_came_while_the_mirror_was_down_is_copied_from_its_first_record_and_an_added_one_as_start_says(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    stem = topic_names("down")
    there, late, old = f"{stem}.there", f"{stem}.late", f"{stem}-old"
    for topic in (there, old):
        create_topic(source.bootstrap, topic)
        produce(source.bootstrap, topic, [Record(b"k", b"old", (), 1000)] * 10)
    mirror = {"name": f"m-{stem}", "from": {"match": f"{stem}[.].*"}, "start": "latest"}
    host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    create_topic(source.bootstrap, late)
    produce(source.bootstrap, late, [Record(b"k", b"new", (), 1000)] * 20)
    host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    assert copied(source.bootstrap, destination.bootstrap, late) == 20
    wider = {**mirror, "from": {"match": f"{stem}.*"}}
    for _ in range(2):
        ended = host.catch_up(source.bootstrap, destination.bootstrap, wider)
        assert ended[f"m-{stem}"]["state"] == "done", ended
    assert [count_of(destination.bootstrap, topic) for topic in (there, late, old)] == [0, 20, 0]


def test_an_empty_partition_and_more_partitions_at_the_destination_change_nothing(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=3)
    create_topic(destination.bootstrap, topic, partitions=5)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, 2 * (i % 2)) for i in range(50)])
    ended = host.catch_up(source.bootstrap, destination.bootstrap, {"name": f"m-{topic}", "from": topic})
    assert ended[f"m-{topic}"]["state"] == "done", ended
    assert copied(source.bootstrap, destination.bootstrap, topic) == 50
