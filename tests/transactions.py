"""A producer's transaction, held open as long as a test wants."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer

from tests.kafka_io import SECONDS, Record


class Transaction:
    """Begun when made; its records are with the broker, undecided, when `write` returns."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id}
        self._producer = Producer({**settings, "transaction.timeout.ms": 600_000, "log_level": 0})
        self._producer.init_transactions(SECONDS)
        self._producer.begin_transaction()

    def write(self, topic: str, records: Iterable[Record]) -> "Transaction":
        for key, value, headers, timestamp, partition, _ in records:
            self._producer.produce(topic, value, key, partition, None, None, timestamp, list(headers))
        assert self._producer.flush(SECONDS) == 0
        return self

    def commit(self) -> None:
        self._producer.commit_transaction(SECONDS)

    def abort(self) -> None:
        self._producer.abort_transaction(SECONDS)
