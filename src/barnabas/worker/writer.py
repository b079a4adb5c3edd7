"""The writer of this worker process: one transactional producer per mirror and epoch, kept while its commits are clean.

A new transactional producer costs tens of milliseconds, so it lives across micro-batches. Its id is made of the
mirror, this host and a slot: a small number held with a file lock. So ids are few and come back, and no two live
processes of a host ever share one.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from confluent_kafka import KafkaException, Producer

from barnabas.errors import Refused
from barnabas.kafka.errors import explained
from barnabas.kafka.producer import TransactionalProducer
from barnabas.ledger.registration import opened_writer
from barnabas.worker.task import WriteTask

MOST_SLOTS = 1024

_writers: dict[str, tuple[int, TransactionalProducer]] = {}
_slots: dict[str, tuple[int, IO[bytes]]] = {}


def writer(task: WriteTask) -> TransactionalProducer:
    """This process' writer for the task's epoch, opened if there is none yet."""
    held = _writers.get(task.mirror)
    if held is not None:
        epoch, producer = held
        if epoch == task.epoch and producer.clean:
            return producer
        del _writers[task.mirror]
    producer = opened_writer(
        task.destination,
        task.ledger,
        epoch=task.epoch,
        run=task.run,
        transactional_id=f"barnabas.{task.mirror}.{_host()}.{_slot(task.mirror)}",
        extra=task.producer,
    )
    _writers[task.mirror] = (task.epoch, producer)
    return producer


def patiently(producer: TransactionalProducer | Producer, *record: Any) -> None:
    """Produces one record, waiting while librdkafka's queue is full."""
    while True:
        try:
            return producer.produce(*record)
        except BufferError:
            producer.poll(0.02)


def write_all(task: WriteTask, wanted: Iterable[tuple[Any, ...]], where: str) -> None:
    """One transaction of this process' writer, with the arguments of each produce; fenced like any other (B)."""
    producer = writer(task)
    try:
        producer.begin()
        for record in wanted:
            patiently(producer, *record)
        producer.commit()
    except BaseException as error:
        dropped(task)
        if isinstance(error, KafkaException):
            raise explained(error, where) from None
        raise


def dropped(task: WriteTask) -> None:
    """Forgets the writer: after an error the next one begins with a new producer epoch."""
    _writers.pop(task.mirror, None)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", platform.node())[:60] or "host"


def _slot(mirror: str) -> int:
    """A number that no other live process of this host has for this mirror."""
    if mirror not in _slots:
        directory = Path(tempfile.gettempdir()) / f"barnabas-{os.getuid()}" / "slots" / mirror
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for number in range(MOST_SLOTS):
            lock = (directory / str(number)).open("wb")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            _slots[mirror] = (number, lock)
            break
        else:
            raise Refused(f"{directory}: all {MOST_SLOTS} slots are held; too many workers on this host")
    return _slots[mirror][0]
