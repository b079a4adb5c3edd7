"""How large records are, from a few of them: for a plan's estimate of bytes, and for batches that fit into memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from barnabas.kafka.reader import close_soon
from barnabas.model import Connection, Partition, Range

MOST_PARTITIONS = 20
RECORDS_OF_EACH = 25
FETCH_BYTES = 64 * 1024  # of a partition, or one record
SECONDS = 5.0
PLACES = 3  # of a range that records are taken from: its beginning, its middle, its end


def mean_record_bytes(
    connection: Connection, positions: Mapping[Partition, int], seconds: float = SECONDS
) -> float | None:
    """The mean of key and value bytes over some records at these positions, or None when none came in time.

    What keeps them from coming is no failure of ours to tell: who asked will meet it again.
    """
    sizes = [size for found in _sizes(connection, positions, seconds).values() for size in found]
    return sum(sizes) / len(sizes) if sizes else None


def estimated_bytes(connection: Connection, ranges: Mapping[Partition, Range], seconds: float = SECONDS) -> int:
    """About how many bytes of keys and values these ranges hold, by records from several places of the largest.

    The first records alone may be of another kind than the others, and one partition's of another than another's.
    """
    filled = {p: r for p, r in sorted(ranges.items(), key=lambda item: -len(item[1])) if len(r)}
    found: dict[Partition, list[int]] = {}
    for place in range(PLACES):
        steps = {p: max(0, len(r) - RECORDS_OF_EACH) * place // (PLACES - 1) for p, r in filled.items()}
        if place and not any(steps.values()):
            break
        positions = {p: r.first + steps[p] for p, r in filled.items()}
        for partition, sizes in _sizes(connection, positions, seconds / PLACES).items():
            found.setdefault(partition, []).extend(sizes)
    means = {p: sum(sizes) / len(sizes) for p, sizes in found.items() if sizes}
    seen = sum(len(filled[p]) for p in means)
    mean = sum(means[p] * len(filled[p]) for p in means) / seen if seen else 0.0
    return int(sum(means.get(p, mean) * len(r) for p, r in filled.items()))


def _sizes(connection: Connection, positions: Mapping[Partition, int], seconds: float) -> dict[Partition, list[int]]:
    """Key and value bytes of some records at these positions."""
    chosen = dict(list(positions.items())[:MOST_PARTITIONS])
    if not chosen:
        return {}
    settings: dict[str, Any] = {
        **connection.properties,
        "group.id": "barnabas-sample",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "fetch.message.max.bytes": FETCH_BYTES,
        # Partitions share one queue. One that is full for the client keeps all others waiting, a second by default.
        "queued.max.messages.kbytes": MOST_PARTITIONS * FETCH_BYTES // 1024,
        "fetch.queue.backoff.ms": 10,
    }
    try:
        consumer = Consumer(settings)
    except KafkaException:  # a certificate that is being replaced
        return {}
    try:
        consumer.assign([TopicPartition(p.topic, p.number, at) for p, at in chosen.items()])
        sizes: dict[Partition, list[int]] = {}
        left = dict.fromkeys(chosen, RECORDS_OF_EACH)
        limit = time.monotonic() + seconds
        while any(left.values()) and time.monotonic() < limit:
            for message in consumer.consume(len(chosen) * RECORDS_OF_EACH, timeout=0.02):
                partition = Partition(message.topic() or "", message.partition() or 0)
                if message.error() is not None:  # its end, or what the mirror itself will meet and tell
                    left[partition] = 0
                elif left.get(partition):
                    left[partition] -= 1
                    sizes.setdefault(partition, []).append(len(message.key() or b"") + len(message.value() or b""))
                    if not left[partition]:
                        consumer.pause([TopicPartition(partition.topic, partition.number)])
        return sizes
    finally:
        close_soon(consumer)
