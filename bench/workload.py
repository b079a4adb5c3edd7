"""Fills source topics: as fast as the cores allow, every record numbered within its partition."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from confluent_kafka import Producer

from bench.ground import Ground, create
from bench.shapes import SHAPES, TAIL_BYTES, Shape

CHUNK = 5_000  # records to one partition before the next has its turn
SECONDS = 120.0
SETTINGS: dict[str, Any] = {
    "enable.idempotence": True,
    "linger.ms": 50,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 256 * 1024,
    "log_level": 0,
}


def fill(ground: Ground, topic: str, shape: Shape, *, partitions: int, records: int, schema_id: int = 0) -> int:
    """Creates the topic and writes the records, evenly over the partitions; how many there are in all."""
    each = records // partitions
    create(ground.source, topic, partitions)  # with no setting of its own, which a contender would copy: see ground
    processes = min(partitions, os.cpu_count() or 1)
    shares = [range(partitions)[process::processes] for process in range(processes)]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        tasks = [
            pool.submit(_fill_partitions, ground.source.bootstrap, topic, shape.name, share, each, schema_id)
            for share in shares
        ]
        for task in tasks:
            task.result()
    return each * partitions


def _fill_partitions(
    bootstrap: str, topic: str, shape: str, partitions: Sequence[int], each: int, schema_id: int
) -> None:
    producer = Producer({**SETTINGS, "bootstrap.servers": bootstrap})
    for first in range(0, each, CHUNK):
        for partition in partitions:
            write(producer, topic, SHAPES[shape], partition, range(first, min(first + CHUNK, each)), schema_id)
    if producer.flush(SECONDS):
        raise RuntimeError(f"{topic}: not all records were acknowledged in {SECONDS:g} s")


def write(
    producer: Producer, topic: str, shape: Shape, partition: int, numbers: Sequence[int], schema_id: int = 0
) -> None:
    """Hands records with these numbers to the producer, waiting while its queue is full."""
    body, headers, produce = shape.body(schema_id), shape.header_list(), producer.produce
    for number in numbers:
        tail = number.to_bytes(TAIL_BYTES, "big")
        while True:
            try:
                if headers:
                    produce(topic, body + tail, tail, partition, headers=headers)
                else:
                    produce(topic, body + tail, tail, partition)
                break
            except BufferError:
                producer.poll(0.05)


def fill_at_once(ground: Ground, topic: str, shape: Shape, *, partitions: int, first: int, each: int) -> None:
    """Adds `each` records to every partition in one transaction: readers see none of them until all are there."""
    settings = {**SETTINGS, "transactional.id": f"bench-{topic}", "transaction.timeout.ms": 600_000}
    producer = Producer({**settings, "bootstrap.servers": ground.source.bootstrap})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for at in range(first, first + each, CHUNK):
        for partition in range(partitions):
            write(producer, topic, shape, partition, range(at, min(at + CHUNK, first + each)))
    producer.commit_transaction(SECONDS)
