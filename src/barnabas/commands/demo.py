"""`barnabas demo`: two real clusters, real records, mirrored by `run` itself and compared record by record."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from barnabas import archive
from barnabas.commands.run import copy
from barnabas.config.load import load
from barnabas.config.spark import SparkRules
from barnabas.errors import ConfigError, Unavailable
from barnabas.kafka.admin import Admin
from barnabas.lab import lab
from barnabas.model import Connection

TOPIC = "orders"
PARTITIONS = 4
FIRST_MILLIS = 1_750_000_000_000
READ_SECONDS = 60.0


@dataclass
class Difference:
    """What an independent reader found between the two topics."""

    compared: int = 0
    lost: int = 0
    doubled: int = 0
    altered: int = 0

    @property
    def equal(self) -> bool:
        return not (self.lost or self.doubled or self.altered)


def run(args: argparse.Namespace) -> int:
    if args.records < 1:
        raise ConfigError("demo --records must be at least 1")
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as place:
        directory = lab.default_directory() if args.keep else Path(place) / "lab"
        clusters = lab.up(directory, stay=args.keep, tell=_tell)
        try:
            if not args.archive:
                return _shown(clusters, args.records, SparkRules())
            with archive.made() as option:
                return _shown(clusters, args.records, SparkRules(settings={"spark.driver.defaultJavaOptions": option}))
        finally:
            if args.keep:
                _tell(f"lab: still up; configuration {clusters.configuration}; end it with: barnabas lab down")
            else:
                clusters.down()
                _tell("lab: down")


def _shown(clusters: lab.Lab, records: int, spark: SparkRules) -> int:
    source, destination = clusters.source.bootstrap, clusters.destination.bootstrap
    admin = Admin(Connection("source", source, {"bootstrap.servers": source}))
    admin.create(TOPIC, PARTITIONS, 1, {"retention.ms": "-1"})
    _tell(f"demo: writing {records:,} records to {TOPIC} in {PARTITIONS} partitions")
    _produce(source, records)
    started = time.monotonic()
    configuration = load(clusters.configuration).model_copy(update={"spark": spark})
    boards = copy(configuration, configuration.enabled(), until_caught_up=True, stop=threading.Event())
    seconds = time.monotonic() - started
    for board in boards:
        if board.error:
            _tell(f"demo: {board.error}")
    _tell("demo: comparing both topics, record by record")
    found = compare(source, destination, TOPIC, PARTITIONS)
    complete = found.compared == records
    print(f"records {found.compared:,}  seconds {seconds:.1f}  records/s {found.compared / seconds:,.0f}")
    print(f"lost {found.lost}  doubled {found.doubled}  altered {found.altered}")
    return 0 if found.equal and complete else 1


def _produce(bootstrap: str, records: int) -> None:
    """About 200 bytes each: key, value, two headers, a timestamp of its own; identity in the first header."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 50}
    settings |= {"batch.size": 1_000_000, "queue.buffering.max.messages": 200_000, "log_level": 0}
    producer = Producer(settings)
    noise = os.urandom(60).hex().encode()
    for number in range(records):
        value = b'{"order":%d,"note":"%s"}' % (number, noise)
        headers: list[tuple[str, Any]] = [("id", b"%d" % number), ("region", b"eu-west")]
        record = (TOPIC, value, b"customer-%d" % (number % 5000), number % PARTITIONS, None, None)
        while True:
            try:
                producer.produce(*record, FIRST_MILLIS + number, headers)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(READ_SECONDS):
        raise Unavailable(f"{bootstrap}: the demo's records were not acknowledged in {READ_SECONDS:.0f} s")


def compare(source: str, destination: str, topic: str, partitions: int) -> Difference:
    """Reads both topics with plain committed consumers and compares what they hold, partition by partition."""
    found = Difference()
    for partition in range(partitions):
        copies: dict[bytes, list[tuple[int, int]]] = {}
        for place, message in enumerate(_read(destination, topic, partition)):
            copies.setdefault(_identity(message), []).append((place, _content(message)))
        for place, message in enumerate(_read(source, topic, partition)):
            found.compared += 1
            there = copies.pop(_identity(message), [])
            found.lost += not there
            found.doubled += max(0, len(there) - 1)
            found.altered += bool(there) and there[0] != (place, _content(message))
        found.altered += sum(len(strangers) for strangers in copies.values())
    return found


def _identity(message: Message) -> bytes:
    headers: list[Any] = list(message.headers() or [])
    return bytes(headers[0][1])


def _content(message: Message) -> int:
    return hash((message.key(), message.value(), message.timestamp(), tuple(message.headers() or [])))


def _read(bootstrap: str, topic: str, partition: int) -> Iterator[Message]:
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "demo", "isolation.level": "read_committed"}
    settings |= {"enable.partition.eof": True, "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, 0)])
    limit = time.monotonic() + READ_SECONDS
    try:
        while time.monotonic() < limit:
            for message in consumer.consume(10_000, timeout=1.0):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    return
        raise Unavailable(f"{bootstrap}: {topic}-{partition} was not read to its end in {READ_SECONDS:.0f} s")
    finally:
        consumer.close()


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
