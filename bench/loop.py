"""The plain loop: consume, produce, commit, in as many processes as there are cores. Exactly once, and written well.

Positions live at the destination, in a topic of their own, written in the transaction that holds the records. At its
start a process opens its transactional id, which fences a predecessor, and then reads the positions.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

CONSUME = 10_000
CONSUME_SECONDS = 0.02
COMMIT_RECORDS = 100_000
COMMIT_SECONDS = 0.25
SECONDS = 60.0
PRODUCER: dict[str, Any] = {
    "linger.ms": 100,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 200_000,
    "transaction.timeout.ms": 60_000,
    "log_level": 0,
}
CONSUMER: dict[str, Any] = {
    "group.id": "bench-loop",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 20,
    "fetch.message.max.bytes": 5 * 1024 * 1024,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 64 * 1024,
    "log_level": 0,
}


class Loop:
    """One process' share of the partitions."""

    def __init__(self, args: argparse.Namespace, partitions: Sequence[int], number: int) -> None:
        self.args = args
        producer = {**PRODUCER, "transactional.id": f"bench-loop-{args.copy}-{number}"}
        self.producer = Producer({**producer, "bootstrap.servers": args.to})
        self.producer.init_transactions(SECONDS)
        at = positions(args)
        self.consumer = Consumer({**CONSUMER, "bootstrap.servers": args.source})
        self.consumer.assign([TopicPartition(args.topic, partition, at.get(partition, 0)) for partition in partitions])
        self._moved: dict[int, int] = {}
        self._records = 0
        self._began = 0.0

    def run(self) -> None:
        while True:
            messages = self.consumer.consume(CONSUME, CONSUME_SECONDS)
            if messages:
                self._copy(messages)
            # A full batch means that more is waiting; otherwise there is nothing to wait for.
            full = len(messages) == CONSUME
            long = self._records >= COMMIT_RECORDS or time.monotonic() - self._began > COMMIT_SECONDS
            if self._moved and (long or not full):
                self._commit()

    def _copy(self, messages: list[Message]) -> None:
        if not self._moved:
            self.producer.begin_transaction()
            self._began = time.monotonic()
        produce, copy, moved = self.producer.produce, self.args.copy, self._moved
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
            partition: Any = message.partition()
            headers: Any = message.headers()
            record = (copy, message.value(), message.key(), partition, None, None, message.timestamp()[1], headers)
            while True:
                try:
                    produce(*record)
                    break
                except BufferError:
                    self.producer.poll(0.02)
            offset: Any = message.offset()
            moved[partition] = offset + 1
        self._records += len(messages)

    def _commit(self) -> None:
        for partition, position in self._moved.items():
            self.producer.produce(_topic(self.args), str(position), str(partition), 0)
        self.producer.commit_transaction(SECONDS)
        self._moved.clear()
        self._records = 0


def positions(args: argparse.Namespace) -> dict[int, int]:
    """The position of each partition, from the topic of positions read to its end."""
    consumer = Consumer({**CONSUMER, "bootstrap.servers": args.to, "enable.partition.eof": True})
    consumer.assign([TopicPartition(_topic(args), 0, 0)])
    found: dict[int, int] = {}
    while (message := consumer.poll(SECONDS)) is not None:
        if message.error():
            break
        found[int(message.key() or b"")] = int(message.value() or b"")
    consumer.close()
    return found


def _topic(args: argparse.Namespace) -> str:
    return f"{args.copy}.positions"


def prepare(args: argparse.Namespace) -> int:
    """Makes the topics; the number of partitions."""
    known = AdminClient({"bootstrap.servers": args.source}).list_topics(args.topic, timeout=SECONDS)
    partitions = len(known.topics[args.topic].partitions)
    admin = AdminClient({"bootstrap.servers": args.to})
    there = admin.list_topics(timeout=SECONDS).topics
    wanted = [
        NewTopic(args.copy, num_partitions=partitions, replication_factor=1),
        NewTopic(_topic(args), num_partitions=1, replication_factor=1, config={"cleanup.policy": "compact"}),
    ]
    missing = [topic for topic in wanted if topic.topic not in there]
    if missing:
        for future in admin.create_topics(missing, operation_timeout=SECONDS).values():
            future.result(SECONDS)
    return partitions


def _run(args: argparse.Namespace, partitions: Sequence[int], number: int) -> None:
    Loop(args, partitions, number).run()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="source", required=True)
    for name in ("--to", "--topic", "--copy"):
        parser.add_argument(name, required=True)
    parser.add_argument("--processes", type=int, required=True)
    args = parser.parse_args()
    partitions = prepare(args)
    context = multiprocessing.get_context("spawn")
    shares = [range(partitions)[number :: args.processes] for number in range(min(partitions, args.processes))]
    children = [context.Process(target=_run, args=(args, share, n), daemon=True) for n, share in enumerate(shares)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return 1  # only a failed child ever ends


if __name__ == "__main__":
    sys.exit(main())
