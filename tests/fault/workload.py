"""What is written to the source: numbered records in transactions of many sizes, some of them given up; by a seed."""

import random
import threading
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer

from tests.kafka_io import SECONDS, Record

FIRST_MILLIS = 1_750_000_000_000
ABORTED = 0.2  # of all transactions
LARGEST = 40  # records in a transaction

Identity = tuple[int, bytes]  # the partition, and a value that no other record of it has


@dataclass
class Written:
    """What the workload knows of its own records."""

    committed: set[Identity] = field(default_factory=set)
    aborted: set[Identity] = field(default_factory=set)


class Workload:
    """Writes in a thread of its own from `start` to `stop`."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int) -> None:
        self.written = Written()
        self._topic = topic
        self._partitions = partitions
        self._random = random.Random(seed)
        self._next = [0] * partitions
        self._over = threading.Event()
        self._failure: BaseException | None = None
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "transactional.id": f"workload-{topic}"}
        self._producer = Producer({**settings, "log_level": 0})
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> "Workload":
        self._producer.init_transactions(SECONDS)
        self._thread.start()
        return self

    def stop(self) -> Written:
        """Ends the transaction at hand and returns what was written; fails if writing did."""
        self._over.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self.written

    def _write(self) -> None:
        try:
            while not self._over.is_set():
                self._transaction()
                self._over.wait(self._random.uniform(0, 0.08))  # the load, not a wait for anything
        except BaseException as failure:  # noqa: BLE001 - told by stop()
            self._failure = failure

    def _transaction(self) -> None:
        self._producer.begin_transaction()
        identities = []
        for _ in range(self._random.randint(1, LARGEST)):
            record = self._record()
            identities.append((record.partition, record.value or b""))
            self._producer.produce(
                self._topic,
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp,
                headers=list(record.headers),
            )
        self._producer.flush(SECONDS)
        if self._random.random() < ABORTED:
            self._producer.abort_transaction(SECONDS)
            self.written.aborted.update(identities)
        else:
            self._producer.commit_transaction(SECONDS)
            self.written.committed.update(identities)

    def _record(self) -> Record:
        partition = self._random.randrange(self._partitions)
        number = self._next[partition]
        self._next[partition] += 1
        value = b"%d/%d/" % (partition, number) + self._random.randbytes(self._random.randint(0, 150))
        key = self._random.choice([None, b"", b"key-%d" % (number % 100)])
        headers = self._random.choice([(), (("n", b"%d" % number), ("n", None)), (("empty", b""),)])
        return Record(key, value, headers, FIRST_MILLIS + number, partition)
