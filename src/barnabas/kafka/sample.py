"""How large records are, from a few of them: for the plan's estimate of bytes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from barnabas.model import Connection, Partition

MOST_PARTITIONS = 20
MOST_RECORDS = 500
SECONDS = 5.0


def mean_record_bytes(connection: Connection, positions: Mapping[Partition, int]) -> float | None:
    """The mean of key and value bytes over some records at these positions, or None when none came in time."""
    chosen = list(positions.items())[:MOST_PARTITIONS]
    if not chosen:
        return None
    consumer = Consumer(
        {**connection.properties, "group.id": "barnabas-plan", "enable.auto.commit": False, "fetch.wait.max.ms": 100}
    )
    try:
        consumer.assign([TopicPartition(p.topic, p.number, at) for p, at in chosen])
        sizes: list[int] = []
        limit = time.monotonic() + SECONDS
        while len(sizes) < MOST_RECORDS and time.monotonic() < limit:
            messages = consumer.consume(MOST_RECORDS - len(sizes), timeout=0.5)
            sizes += [len(m.key() or b"") + len(m.value() or b"") for m in messages if m.error() is None]
        return sum(sizes) / len(sizes) if sizes else None
    finally:
        consumer.close()
