"""The first record of each partition that an open transaction holds back.

The client has neither DescribeProducers nor ListTransactions, so a transaction's age is that of its first record here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from barnabas.kafka.errors import explained
from barnabas.kafka.reader import close_soon
from barnabas.model import Connection, Partition

SECONDS = 3.0
MOST_PARTITIONS = 100


def first_undecided(connection: Connection, stable: Mapping[Partition, int]) -> dict[Partition, int]:
    """For partitions and their last stable offsets the timestamp there; left out where none appears in time."""
    waiting = dict(sorted(stable.items())[:MOST_PARTITIONS])
    if not waiting:
        return {}
    settings: dict[str, Any] = {
        **connection.properties,
        "group.id": "barnabas-undecided",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
        "fetch.wait.max.ms": 100,
        "fetch.message.max.bytes": 64 * 1024,
    }
    try:
        consumer = Consumer(settings)
    except KafkaException as error:
        raise explained(error, f'cluster "{connection.cluster}" ({connection.bootstrap}): open transactions') from None
    found: dict[Partition, int] = {}
    try:
        consumer.assign([TopicPartition(p.topic, p.number, at) for p, at in waiting.items()])
        limit = time.monotonic() + SECONDS
        while len(found) < len(waiting) and time.monotonic() < limit:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                partition = Partition(message.topic() or "", message.partition() or 0)
                found.setdefault(partition, message.timestamp()[1])
                consumer.pause([TopicPartition(partition.topic, partition.number)])
        return found
    finally:
        close_soon(consumer)
