"""Records for a lab to play with: orders of customers, as JSON of a chosen size, at a chosen rate."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.errors import Refused, Unavailable
from barnabas.lab.configuration import TOPIC

PARTITIONS = 4
CUSTOMERS = 5000
SECONDS = 30.0
SMALLEST = 50  # bytes of a value: below that there is no order in it


@dataclass(frozen=True)
class Feed:
    """What to produce. Without `records` until it is stopped, without `rate` as fast as it goes."""

    topic: str = TOPIC
    records: int | None = 10_000
    rate: float | None = None
    size: int = 200


def make_topic(where: Mapping[str, Any], topic: str, replication: int = 1) -> None:
    """Makes the topic, if it is not there yet."""
    admin = AdminClient({**where, "log_level": 0})
    made = admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=replication)])[topic]
    try:
        made.result(SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise Refused(f"lab: topic {topic} cannot be made: {error.args[0].str()}") from None


def feed(where: Mapping[str, Any], wanted: Feed, stop: threading.Event) -> int:
    """Produces what is wanted, or until `stop`; how many records were acknowledged."""
    settings: dict[str, Any] = {**where, "enable.idempotence": True, "linger.ms": 20, "log_level": 0}
    producer = Producer(settings)
    done = 0
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        nonlocal done
        if error is None:
            done += 1
        else:
            failed.append(error)

    began, number = time.monotonic(), 0
    while not stop.is_set() and not failed and (wanted.records is None or number < wanted.records):
        if wanted.rate is not None and (early := began + number / wanted.rate - time.monotonic()) > 0:
            producer.poll(min(early, 0.1))
            continue
        try:
            producer.produce(
                wanted.topic,
                order(number, wanted.size),
                f"customer-{number % CUSTOMERS}".encode(),
                on_delivery=delivered,
            )
        except BufferError:
            producer.poll(0.1)
            continue
        number += 1
        producer.poll(0)
    left = producer.flush(SECONDS)
    if failed or left:
        why = failed[0].str() if failed else f"no answer in {SECONDS:.0f} s"
        raise Unavailable(f"lab: {done:,} of {number:,} records produced to {wanted.topic}: {why}: is the lab up?")
    return done


def order(number: int, size: int) -> bytes:
    """The value of one record: JSON of this size, padded by a note."""
    content = {"order": number, "item": f"item-{number % 97}", "note": ""}
    bare = json.dumps(content, separators=(",", ":"))
    return json.dumps({**content, "note": "." * max(0, size - len(bare))}, separators=(",", ":")).encode()
