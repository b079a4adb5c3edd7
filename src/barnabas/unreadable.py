"""Records that Spark cannot bring, because it counts timestamps in microseconds: around them, and into the quarantine.

Spark fails the whole micro-batch and tells the record's place. So an epoch of its own copies what is before it, of that
partition only and in one micro-batch. Then the driver reads the record with its own client and sets it aside, in a
transaction that moves the position past it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from barnabas.config.mirror import Batch, Mirror
from barnabas.errors import Unavailable
from barnabas.kafka.errors import explained
from barnabas.kafka.reader import close_soon
from barnabas.ledger import records
from barnabas.lessons import Lessons, Unread
from barnabas.model import Connection, Position
from barnabas.preparation import Prepared
from barnabas.worker.aside import written_aside
from barnabas.worker.task import WriteTask
from barnabas.worker.writer import write_all

READ_SECONDS = 30.0
REASON = "timestamp {millis} is beyond what Spark can bring: does its producer write micro- or nanoseconds?"


def bounded(prepared: Prepared, unread: Unread | None) -> Prepared:
    """A plan of the one partition, for the epoch that copies up to the record."""
    stretch = prepared.plan.stretches.get(unread.partition) if unread else None
    if unread is None or stretch is None:
        return prepared
    return replace(prepared, plan=replace(prepared.plan, stretches={unread.partition: stretch}))


def up_to(mirror: Mirror, prepared: Prepared, unread: Unread | None) -> Mirror:
    """The mirror with micro-batches of which the first ends right before the record."""
    stretch = prepared.plan.stretches.get(unread.partition) if unread else None
    if unread is None or stretch is None:
        return mirror
    count = max(1, unread.offset - stretch.position.next)
    return mirror.model_copy(update={"batch": Batch(records=count, lanes=1)})


def passed(source: Connection, prepared: Prepared, lessons: Lessons) -> bool:
    """Sets the record aside once all before it was copied; True where a new epoch is due, with nothing to go around."""
    unread = lessons.unread
    stretch = prepared.plan.stretches.get(unread.partition) if unread else None
    if unread is None or (stretch is not None and stretch.position.next < unread.offset):
        return False
    if stretch is not None and stretch.position.next == unread.offset:
        _set_aside(source, prepared.task, unread, stretch.position.topic_id)
    lessons.unread = None
    return True


def _set_aside(source: Connection, task: WriteTask, unread: Unread, topic_id: str) -> None:
    """One transaction: the record in the quarantine, and the position past it."""
    partition = unread.partition
    message = _read(source, unread)
    lines: list[tuple[Any, ...]] = []
    if message is not None:
        key, value, millis = message.key(), message.value(), message.timestamp()[1]
        try:
            headers: Any = list(message.headers() or [])
        except UnicodeDecodeError:  # names that are not UTF-8
            headers = []
        aside = written_aside(
            task,
            place=(partition.topic, partition.number, unread.offset),
            reason=REASON.format(millis=millis),
            key=key,
            value_bytes=-1 if value is None else len(value),
            headers=headers,
            millis=millis,
            unread=True,
        )
        kept = value if aside.has_value else None
        lines.append((task.quarantine, kept, aside.key, 0, None, None, aside.millis, aside.headers))
    position = Position(unread.offset + 1, topic_id, task.epoch)
    lines.append((task.ledger, records.position_value(position), records.position_key(partition, "advance"), 0))
    write_all(task, lines, f'mirror "{task.mirror}": set aside {partition} offset {unread.offset}')


def _read(source: Connection, unread: Unread) -> Message | None:
    """The record, or None where another one comes first: it was deleted meanwhile."""
    settings = {"group.id": "barnabas-reader", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({**source.properties, **settings, "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(unread.partition.topic, unread.partition.number, unread.offset)])
        limit = time.monotonic() + READ_SECONDS
        while time.monotonic() < limit:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                return message if message.offset() == unread.offset else None
            if error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET):
                return None
            if not error.retriable():
                raise explained(error, f"{unread.partition} offset {unread.offset}")
        raise Unavailable(f"{unread.partition} offset {unread.offset}: not read in {READ_SECONDS:.0f} s")
    finally:
        close_soon(consumer)
