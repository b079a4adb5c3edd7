"""What our own clients do at a real broker and a mirror's run would not show: samples, and a queue that is full."""

import time

import pytest

from barnabas.errors import Unavailable
from barnabas.kafka.admin import Admin
from barnabas.kafka.epoch_ends import epoch_ends
from barnabas.kafka.producer import TransactionalProducer
from barnabas.kafka.sample import RECORDS_OF_EACH, estimated_bytes, mean_record_bytes
from barnabas.lab.cluster import KafkaCluster
from barnabas.model import Connection, Ends, Partition, Range
from barnabas.worker.writer import patiently
from tests.barnabas_runs import count_of
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce
from tests.transactions import Transaction

LONG = 90_000  # milliseconds; ten queues of it last longer than a transaction may


def connection(cluster: KafkaCluster) -> Connection:
    return Connection("c", cluster.bootstrap, {"bootstrap.servers": cluster.bootstrap})


def test_a_sample_takes_a_few_records_of_each_partition_and_ends_where_they_do(
    source: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("sizes")
    create_topic(source.bootstrap, topic, partitions=3)
    many = [Record(b"key", b"x" * 97, partition=0)] * (RECORDS_OF_EACH * 2)
    few = [Record(None, b"x" * 40_000, partition=1)] * 5
    produce(source.bootstrap, topic, [*many, *few])
    positions = {Partition(topic, number): 0 for number in range(3)}
    expected = (RECORDS_OF_EACH * 100 + 5 * 40_000) / (RECORDS_OF_EACH + 5)
    started = time.monotonic()
    assert mean_record_bytes(connection(source), positions, seconds=120) == expected
    assert mean_record_bytes(connection(source), {Partition(topic, 2): 0}, seconds=120) is None
    assert time.monotonic() - started < 120, "it did not see the ends"
    assert mean_record_bytes(connection(source), {}) is None


def test_a_sample_has_records_of_every_partition_however_many_wait_in_one(
    source: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("uneven")
    create_topic(source.bootstrap, topic, partitions=2)
    small = [Record(None, b"x" * 100, partition=0)] * 100_000
    large = [Record(None, b"x" * 10_000, partition=1)] * RECORDS_OF_EACH
    produce(source.bootstrap, topic, [*small, *large])
    positions = {Partition(topic, number): 0 for number in range(2)}
    assert mean_record_bytes(connection(source), positions, seconds=4) == (100 + 10_000) / 2


def test_an_estimate_of_bytes_sees_records_that_grow_and_partitions_that_differ(
    source: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("growing")
    create_topic(source.bootstrap, topic, partitions=3)
    growing = [Record(None, b"x" * (50 + number), partition=0) for number in range(2000)]
    large = [Record(b"key", b"x" * 4997, partition=1)] * 100
    produce(source.bootstrap, topic, [*growing, *large])
    ranges = {
        Partition(topic, 0): Range(0, 2000),
        Partition(topic, 1): Range(50, 100),
        Partition(topic, 2): Range(0, 0),
    }
    true = sum(50 + number for number in range(2000)) + 50 * 5000
    assert 0.9 * true < estimated_bytes(connection(source), ranges, seconds=120) < 1.1 * true
    assert estimated_bytes(connection(source), {}) == 0


def test_the_end_of_a_leader_epoch_is_what_its_records_reach_and_an_epoch_to_come_has_none(
    source: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("epochs")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"v")] * 10)
    first, empty = Partition(topic, 0), Partition(topic, 1)
    assert epoch_ends(connection(source), {first: 0, empty: 0}) == {first: 10, empty: 0}
    assert epoch_ends(connection(source), {first: 9, empty: 0}) == {empty: 0}
    with pytest.raises(Unavailable, match=f"no answer for {topic}-7 in 1 s"):
        epoch_ends(connection(source), {Partition(topic, 7): 0}, seconds=1)


def test_ends_are_those_of_partitions_that_answer_with_the_epoch_of_their_leader(
    source: KafkaCluster, topic_names: TopicNames
) -> None:
    topic, absent = topic_names("ends"), topic_names("absent")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, [Record(b"k", b"v")] * 10)
    held = Transaction(source.bootstrap, topic).write(topic, [Record(b"k", b"v")] * 5)
    asked = [Partition(topic, 0), Partition(topic, 7), Partition(absent, 0)]
    assert Admin(connection(source)).ends(asked, 10.0) == {asked[0]: Ends(10, 15, 0)}
    held.abort()


def test_a_queue_full_of_batches_that_are_not_goes_out_before_their_time(
    destination: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("spread")
    create_topic(destination.bootstrap, topic, partitions=16)
    small = {"linger.ms": LONG, "queue.buffering.max.messages": 100}
    producer = TransactionalProducer(connection(destination), topic, small)
    producer.init(topic)
    producer.begin()
    for number in range(1000):
        patiently(producer, topic, b"%d" % number, None, number % 16)
    producer.commit()
    assert count_of(destination.bootstrap, topic) == 1000
