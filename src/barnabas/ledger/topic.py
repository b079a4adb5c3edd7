"""The ledger as a topic: made, checked, read from one offset to another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from barnabas.errors import Refused, Unavailable
from barnabas.kafka.admin import Admin, eventually
from barnabas.kafka.errors import explained
from barnabas.model import Connection, Partition, TopicDescription

READ_SECONDS = 60.0
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 * 1024 * 1024),  # only closed segments are compacted: small ones keep start-up short
    "segment.ms": str(6 * 3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": str(7 * 24 * 3600 * 1000),
    "retention.ms": "-1",
    "max.message.bytes": str(1024 * 1024),
    "message.timestamp.type": "CreateTime",
}


def prepared(admin: Admin, topic: str, replication: int) -> TopicDescription:
    """The ledger's topic, made if it is not there, refused if it cannot be a ledger."""
    if topic not in admin.topics([topic]):
        admin.create(topic, partitions=1, replication=replication, settings=SETTINGS)
    description = eventually(lambda: admin.topics([topic]).get(topic), 30, f"{admin.where}: ledger {topic}")
    checked(admin, description)
    return description


def checked(admin: Admin, description: TopicDescription) -> None:
    policy = description.settings.get("cleanup.policy", "delete")
    if description.partitions != 1 or policy != "compact":
        raise Refused(
            f"{admin.where}: ledger {description.name} has {description.partitions} partitions and cleanup.policy="
            f"{policy}; it must have 1 and compact, or positions would be lost: mend or delete the topic"
        )


class LedgerReader:
    """Reads the one partition of a ledger between two offsets."""

    def __init__(self, connection: Connection, topic: str, *, committed: bool) -> None:
        self.where = f'cluster "{connection.cluster}": ledger {topic}'
        self._partition = TopicPartition(topic, 0)
        settings: dict[str, Any] = {
            **connection.properties,
            "group.id": "barnabas-ledger",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.wait.max.ms": 100,
            "allow.auto.create.topics": False,
        }
        self._consumer = Consumer(settings)

    def read(self, first: int, until: int) -> Iterator[Message]:
        """Every record in [first, until) that this reader may see, and not before all of them are decided.

        Ends when the consumer's own position reaches `until`: the last stable offset alone would hide what
        stands behind an open transaction (C).
        """
        if first >= until:
            return
        self._consumer.assign([TopicPartition(self._partition.topic, 0, first)])
        limit = time.monotonic() + READ_SECONDS
        while True:
            for message in self._consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None and (message.offset() or 0) < until:
                    yield message
                elif error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise explained(error, self.where)
                if (message.offset() or 0) >= (until if error is not None else until - 1):
                    return
            if time.monotonic() > limit:
                raise Unavailable(
                    f"{self.where}: not read up to offset {until} in {READ_SECONDS:.0f} s; "
                    f"an open transaction holds it back or the broker does not answer"
                )

    def close(self) -> None:
        self._consumer.close()


def ledger_partition(topic: str) -> Partition:
    return Partition(topic, 0)
