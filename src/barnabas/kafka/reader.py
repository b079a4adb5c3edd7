"""Reads a topic of one partition, a ledger or a quarantine, from one offset to another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from barnabas.errors import Unavailable
from barnabas.kafka.errors import explained
from barnabas.model import Connection

READ_SECONDS = 60.0
CLOSE_SECONDS = 5.0


class PartitionReader:
    """Reads partition 0 of a topic between two offsets, as often as wanted."""

    def __init__(self, connection: Connection, topic: str, *, committed: bool) -> None:
        self.where = f'cluster "{connection.cluster}": {topic}'
        self._topic = topic
        settings: dict[str, Any] = {
            **connection.properties,
            "group.id": "barnabas-reader",
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
        stands behind an open transaction (C). The limit is for standing still, not for a long way.
        """
        if first >= until:
            return
        self._consumer.assign([TopicPartition(self._topic, 0, first)])
        limit = time.monotonic() + READ_SECONDS
        while True:
            next_one = self._consumer.poll(0.2)  # consume() would wait for a thousand, or for all of its time
            for message in [next_one, *self._consumer.consume(1000, timeout=0)] if next_one is not None else []:
                error, at = message.error(), message.offset() or 0
                if error is None and at < until:
                    yield message
                elif error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise explained(error, self.where)
                if at >= (until if error is not None else until - 1):
                    return
                if error is None:
                    limit = time.monotonic() + READ_SECONDS
            if time.monotonic() > limit:
                raise Unavailable(
                    f"{self.where}: not read up to offset {until} in {READ_SECONDS:.0f} s; "
                    f"an open transaction holds it back or the broker does not answer"
                )

    def close(self) -> None:
        close_soon(self._consumer)


def close_soon(consumer: Consumer) -> None:
    """Closes it, or leaves that to a thread nobody waits for: the client itself knows no time limit."""
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)
