"""Where leader epochs end in a partition's log, by OffsetForLeaderEpoch.

The client has no call for that request. Its consumer sends one when an assigned offset comes with a leader epoch, and
compares the answer with the offset. An offset that no log reaches always fails, and the error's text holds the answer.
Nothing is fetched.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from barnabas.errors import Unavailable
from barnabas.kafka.errors import explained
from barnabas.kafka.reader import close_soon
from barnabas.model import Connection, Partition

BEYOND = 2**62
SECONDS = 10.0
ANSWER = re.compile(r"broker end offset is (-?\d+) \(offset leader epoch (-?\d+)\)")


def epoch_ends(
    connection: Connection, epochs: Mapping[Partition, int], seconds: float = SECONDS
) -> dict[Partition, int]:
    """For each partition the offset past the last record of the leader epoch, or of the one before it.

    A partition is left out where its leader does not know the epoch, or its broker does not know the request.
    Unavailable when a leader does not answer in time.
    """
    if not epochs:
        return {}
    where = f'cluster "{connection.cluster}" ({connection.bootstrap}): ends of leader epochs'
    settings: dict[str, Any] = {
        **connection.properties,
        "group.id": "barnabas-epochs",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
    }
    try:
        consumer = Consumer(settings)
    except KafkaException as error:
        raise explained(error, where) from None
    try:
        consumer.assign([TopicPartition(p.topic, p.number, BEYOND, leader_epoch=e) for p, e in epochs.items()])
        return _answers(consumer, set(epochs), where, seconds)
    finally:
        close_soon(consumer)


def _answers(consumer: Consumer, waiting: set[Partition], where: str, seconds: float) -> dict[Partition, int]:
    found: dict[Partition, int] = {}
    limit = time.monotonic() + seconds
    while waiting:
        message = consumer.poll(0.2)
        error = message.error() if message is not None else None
        if message is not None and error is not None:
            if error.code() != KafkaError._AUTO_OFFSET_RESET:
                raise explained(error, where)
            partition = Partition(message.topic() or "", message.partition() or 0)
            waiting.discard(partition)
            answer = ANSWER.search(error.str())
            if answer and int(answer.group(1)) >= 0:
                found[partition] = int(answer.group(1))
        elif time.monotonic() > limit:
            raise Unavailable(f"{where}: no answer for {min(waiting)} in {seconds:.0f} s")
    return found
