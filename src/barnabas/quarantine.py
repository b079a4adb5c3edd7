"""Records that were set aside: read them, and try them again exactly once.

A replay is a run of the mirror like any other: an epoch of its own, and a transaction that holds the records and
the quarantine's own position in the ledger. What still cannot be copied goes to the quarantine's end. Where a record
of a demux belongs, only its headers tell, which Spark reads: such records go back to the intermediate topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from barnabas.errors import BadRecord
from barnabas.kafka.reader import PartitionReader
from barnabas.ledger import records
from barnabas.model import Connection, Offsets, Partition, Position
from barnabas.worker.rows import ANY_PARTITION, QUARANTINE
from barnabas.worker.task import WriteTask
from barnabas.worker.translate import translator
from barnabas.worker.writer import write_all

MOST_RECORDS, MOST_BYTES = 5_000, 32_000_000  # of one transaction, which must end before its time limit
PLACES = ("topic", "partition", "offset", "reason")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True)
class SetAside:
    """One record of a quarantine, and where it came from."""

    at: int
    topic: str
    partition: int
    offset: int
    reason: str
    headers: tuple[tuple[str, bytes | None], ...]
    key: bytes | None
    value: bytes | None
    millis: int

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"") + sum(len(value or b"") for _, value in self.headers)


def waiting(log: Offsets, replayed: Position | None, quarantine_id: str) -> tuple[int, int]:
    """The records [first, next) that were not replayed yet; a position in a topic that was made anew says nothing."""
    known = replayed is not None and replayed.topic_id == quarantine_id
    return max(log.first, replayed.next if replayed and known else 0), log.end


def read(connection: Connection, topic: str, first: int, until: int) -> Iterator[SetAside]:
    """The committed records of the quarantine in [first, until)."""
    reader = PartitionReader(connection, topic, committed=True)
    try:
        for message in reader.read(first, until):
            yield _set_aside(message, reader.where)
    finally:
        reader.close()


def _set_aside(message: Message, where: str) -> SetAside:
    headers: list[Any] = list(message.headers() or [])
    said = {name: value or b"" for name, value in headers if name.startswith(f"{QUARANTINE}.")}
    try:
        topic, partition, offset, reason = (said[f"{QUARANTINE}.{place}"].decode() for place in PLACES)
        return SetAside(
            at=message.offset() or 0,
            topic=topic,
            partition=int(partition),
            offset=int(offset),
            reason=reason,
            headers=tuple(pair for pair in headers if not pair[0].startswith(f"{QUARANTINE}.")),
            key=message.key(),
            value=message.value(),
            millis=message.timestamp()[1],
        )
    except (KeyError, ValueError):
        raise BadRecord(
            f"{where}: offset {message.offset()} does not say where it came from; somebody else wrote it"
        ) from None


def batches(found: Iterable[SetAside]) -> Iterator[list[SetAside]]:
    """The records in portions for one transaction each: a single large one is a portion too."""
    batch: list[SetAside] = []
    size = 0
    for record in found:
        batch.append(record)
        size += record.size
        if len(batch) == MOST_RECORDS or size >= MOST_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def replay(task: WriteTask, quarantine_id: str, batch: list[SetAside]) -> tuple[int, int]:
    """Tries the records again in one transaction; how many went on and how many were set aside once more."""
    routes = {route.source: route for route in task.routes.values()}
    moved = [routes.get(record.topic) for record in batch]
    if task.schemas is None or None in moved:
        unknown = sorted({record.topic for record, route in zip(batch, moved, strict=True) if route is None})
        raise BadRecord(f'mirror "{task.mirror}": {unknown or "its records"} are not in the plan any more')
    done = translator(task.schemas, task.epoch).translate(
        routes=pa.array([route.number for route in moved if route], pa.int64()),
        keys=pa.array([record.key for record in batch], pa.binary()),
        values=pa.array([record.value for record in batch], pa.binary()),
        headers=pa.array([[{"key": k, "value": v} for k, v in record.headers] for record in batch], HEADERS),
    )
    reasons, keys, values = done.reasons(), done.keys.to_pylist(), done.values.to_pylist()
    outgoing: list[tuple[Any, ...]] = []
    for row, (record, route) in enumerate(zip(batch, moved, strict=True)):
        headers: list[Any] = list(record.headers)
        if row in reasons:
            said = (record.topic, str(record.partition), str(record.offset), reasons[row])
            headers += [(f"{QUARANTINE}.{place}", text.encode()) for place, text in zip(PLACES, said, strict=True)]
        topic = task.quarantine if row in reasons or route is None else route.destination
        kept = record.partition if task.partitioning == "keep" else ANY_PARTITION
        partition = 0 if row in reasons else kept
        outgoing.append((topic, values[row], keys[row], partition, None, None, record.millis, headers))
    _write(task, quarantine_id, batch, outgoing)
    return len(batch) - len(reasons), len(reasons)


def put_back(task: WriteTask, quarantine_id: str, batch: list[SetAside]) -> None:
    """A demux' records go back, as they came, to the partitions they came from: its next run tries them again."""
    outgoing = [(r.topic, r.value, r.key, r.partition, None, None, r.millis, list(r.headers)) for r in batch]
    _write(task, quarantine_id, batch, outgoing)


def _write(task: WriteTask, quarantine_id: str, batch: list[SetAside], outgoing: list[tuple[Any, ...]]) -> None:
    """One transaction: the records, and the quarantine's position past them."""
    position = Position(batch[-1].at + 1, quarantine_id, task.epoch)
    own = Partition(task.quarantine, 0)
    ours = (task.ledger, records.position_value(position), records.position_key(own), 0)
    write_all(task, [*outgoing, ours], f'mirror "{task.mirror}": replay')
