"""What happened, as independent readers saw it: source, ledger, destination while it was written and after."""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.fault.workload import Written
from tests.kafka_io import Record, read_all, wait_until

Log = dict[int, list[Record]]  # by partition, in order


@dataclass(frozen=True)
class LedgerPosition:
    """One committed position in a ledger; `by_driver`: past records that no reader sees, without records of its own."""

    partition: int
    next: int
    epoch: int
    by_driver: bool = False


@dataclass
class History:
    """Everything the checker judges."""

    source: Log
    final: Log
    seen: Log
    positions: list[LedgerPosition]
    written: Written | None = None
    lag: int = 0
    open_transactions: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)


class Witness:
    """A read_committed reader that watches the destination's topic from its first record until told to stop."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.seen: Log = {partition: [] for partition in range(partitions)}
        self._count = 0
        self._over = threading.Event()
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "witness", "log_level": 0}
        settings |= {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**settings, "fetch.wait.max.ms": 50})
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        return self._count

    def wait_for(self, more: int, what: str, seconds: float = 300) -> None:
        """Waits until so many more records have been seen."""
        before = self._count
        wait_until(lambda: self._count >= before + more, seconds, f"{more} more records: {what}")

    def stop(self, at_least: int) -> Log:
        """What it saw, once that is as much as is known to be there."""
        try:
            wait_until(lambda: self._count >= at_least, 240, f"the witness to see {at_least} records")
        finally:
            self._over.set()
            self._thread.join()
            self._consumer.close()
        return self.seen

    def _watch(self) -> None:
        while not self._over.is_set():
            for message in self._consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    record = _record(message)
                    self.seen[record.partition].append(record)
                    self._count += 1
                elif error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                    continue  # it comes back


def log_of(bootstrap: str, topic: str) -> Log:
    return by_partition(read_all(bootstrap, topic, seconds=300))


def by_partition(records: Iterable[Record]) -> Log:
    log: Log = {}
    for record in records:
        log.setdefault(record.partition, []).append(record)
    return log


def positions_of(bootstrap: str, ledger: str) -> list[LedgerPosition]:
    """The committed positions of a ledger of one topic, in order, without the beginnings, which have no records."""
    found = []
    begun: set[int] = set()
    for record in read_all(bootstrap, ledger):
        key = json.loads(record.key or b"{}")
        if key.get("kind") not in ("position", "advance") or record.value is None:
            continue
        value, partition = json.loads(record.value), key["partition"]
        if partition in begun:
            by_driver = key["kind"] == "advance"
            found.append(LedgerPosition(partition, value["next"], value["epoch"], by_driver))
        begun.add(partition)
    return found


def _record(message: Any) -> Record:
    return Record(
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.timestamp()[1],
        message.partition(),
        message.offset(),
    )
