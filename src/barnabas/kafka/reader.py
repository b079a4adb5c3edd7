"""Reads a topic of one partition, a ledger or a quarantine, from one offset to another, or follows its end."""

from __future__ import annotations

import json
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
REPORT_MILLIS = 50  # the client reports its progress so often: past transaction markers it returns no message
BATCH = 1000
# Answers that a log has lost its tail: it ends before an offset that was read, or another log stands at its place.
CUT_OFF = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION)


class PartitionReader:
    """Reads partition 0 of a topic between two offsets, as often as wanted, or follows its end."""

    def __init__(
        self, connection: Connection, topic: str, *, committed: bool, report_millis: int = REPORT_MILLIS
    ) -> None:
        self.where = f'cluster "{connection.cluster}": {topic}'
        self.records = 0
        self._content = self._received = 0
        self._fetched_to = -1
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
            "statistics.interval.ms": report_millis,
            "stats_cb": self._take_report,
        }
        self._consumer = Consumer(settings)

    @property
    def bytes(self) -> int:
        """What the brokers have sent, transaction markers included, as far as the client has reported it."""
        return max(self._content, self._received)

    def read(self, first: int, until: int) -> Iterator[Message]:
        """Every record in [first, until) that this reader may see, and not before all of them are decided.

        Ends when the consumer's own position reaches `until`, because the last stable offset alone would hide what
        stands behind an open transaction (C). Raises Unavailable when the position has not moved for a minute.
        """
        if first >= until:
            return
        self.follow(first)
        limit, fetched_to = time.monotonic() + READ_SECONDS, self._fetched_to
        while True:
            messages = self._next(0.2)
            for message in messages:
                error, at = message.error(), message.offset() or 0
                if error is None and at < until:
                    self._count(message)
                    yield message
                elif error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise self._explained(error)
                if at >= (until if error is not None else until - 1):
                    return
            if fetched_to != self._fetched_to or any(message.error() is None for message in messages):
                limit, fetched_to = time.monotonic() + READ_SECONDS, self._fetched_to
            if time.monotonic() > limit:
                raise Unavailable(
                    f"{self.where}: not read up to offset {until} in {READ_SECONDS:.0f} s; "
                    f"an open transaction holds it back or the broker does not answer"
                )

    def follow(self, first: int) -> None:
        """From here on `arrived` returns what stands at or behind this offset."""
        self._fetched_to = -1
        self._consumer.assign([TopicPartition(self._topic, 0, first)])

    def arrived(self) -> Iterator[Message]:
        """The records that have come since the last call; it does not wait for any."""
        while messages := self._next(0.0):
            for message in messages:
                error = message.error()
                if error is None:
                    self._count(message)
                    yield message
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise self._explained(error)

    def close(self) -> None:
        close_soon(self._consumer)

    def _next(self, seconds: float) -> list[Message]:
        """One message is waited for; `consume` alone would wait for a thousand, or for all of its time."""
        first = self._consumer.poll(seconds)
        return [] if first is None else [first, *self._consumer.consume(BATCH, timeout=0)]

    def _explained(self, error: KafkaError) -> Exception:
        if error.code() in CUT_OFF:
            return Unavailable(
                f"{self.where}: the log ends before what was read of it ({error.str()}): it lost records"
            )
        return explained(error, self.where)

    def _count(self, message: Message) -> None:
        self.records += 1
        self._content += len(message.key() or b"") + len(message.value() or b"")

    def _take_report(self, report: str) -> None:
        said = json.loads(report)
        self._received = sum(broker["rxbytes"] for broker in said["brokers"].values())
        partitions = said["topics"].get(self._topic, {}).get("partitions", {})
        self._fetched_to = partitions.get("0", {}).get("next_offset", self._fetched_to)


def close_soon(consumer: Consumer) -> None:
    """Closes it, or leaves that to a thread nobody waits for: the client itself knows no time limit."""
    closing = threading.Thread(target=consumer.close, daemon=True)
    closing.start()
    closing.join(CLOSE_SECONDS)
