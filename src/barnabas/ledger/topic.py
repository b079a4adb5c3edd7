"""The ledger as a topic: made, checked, read and folded."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Message

from barnabas.errors import Refused
from barnabas.kafka.admin import Admin, eventually
from barnabas.kafka.reader import PartitionReader
from barnabas.ledger.records import LedgerState
from barnabas.model import Connection, Partition, TopicDescription

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
        safe = {"min.insync.replicas": "2"} if replication > 2 else {}
        admin.create(topic, partitions=1, replication=replication, settings={**SETTINGS, **safe})
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


def read_state(connection: Connection, topic: str, until: int, *, first: int = 0, committed: bool) -> LedgerState:
    """The ledger's records in [first, until), folded."""
    reader = PartitionReader(connection, topic, committed=committed)
    try:
        return folded(topic, reader.read(first, until))
    finally:
        reader.close()


def folded(topic: str, messages: Iterable[Message]) -> LedgerState:
    state = LedgerState(topic)
    for message in messages:
        state.add(message.offset() or 0, message.key(), message.value())
    return state


def ledger_partition(topic: str) -> Partition:
    return Partition(topic, 0)
