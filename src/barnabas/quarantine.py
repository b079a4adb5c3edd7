"""Records that were set aside: read them, and try them again exactly once.

A replay is a run of the mirror like any other: an epoch of its own, and a transaction that holds the records and
the quarantine's own position in the ledger. What still cannot be copied goes to the quarantine's end with the reason:
no record blocks the others. Where a record of a demux belongs, only its headers tell, which Spark reads: such records
go back to the intermediate topic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from barnabas.errors import TooLarge
from barnabas.kafka.reader import PartitionReader
from barnabas.ledger import records
from barnabas.model import Connection, Offsets, Partition, Position
from barnabas.worker.aside import LEFT_OUT, QUARANTINE, TIMESTAMP, UNREAD, written_aside
from barnabas.worker.headers import DAMAGE, Headers
from barnabas.worker.rows import rows
from barnabas.worker.task import WriteTask
from barnabas.worker.unwritable import keyless, record_bytes, refused_time
from barnabas.worker.writer import write_all

MOST_RECORDS, MOST_BYTES = 5_000, 32_000_000  # of one transaction, which must end before its time limit
PLACES = ("topic", "partition", "offset", "reason")
STRANGE = "it does not state where it came from: somebody else wrote it"
UNJUDGED = "neither `where` nor `provenance` has judged it, for Spark could not bring it: write it there by hand"
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
    left_out: bytes | None = None  # what was too large for the quarantine
    unread: bool = False  # neither `where` nor `provenance` has judged it

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
            yield _set_aside(message)
    finally:
        reader.close()


def _set_aside(message: Message) -> SetAside:
    try:
        headers: list[Any] = list(message.headers() or [])
    except UnicodeDecodeError:  # no record of ours
        headers = []
    topic, at, millis = message.topic() or "", message.offset() or 0, message.timestamp()[1]
    return stated(topic, at, headers, key=message.key(), value=message.value(), millis=millis)


def stated(
    quarantine: str, at: int, headers: Headers, *, key: bytes | None, value: bytes | None, millis: int
) -> SetAside:
    """The record with what our headers say; one that somebody else wrote comes from the quarantine itself.

    Ours stand behind the record's own. Those may look like ours: it may be the copy of another quarantine's entry.
    """
    first = max((i for i, (name, _) in enumerate(headers) if name == f"{QUARANTINE}.topic"), default=len(headers))
    said = {name.removeprefix(f"{QUARANTINE}."): held or b"" for name, held in headers[first:]}
    try:
        topic, partition, offset, reason = (said[place].decode() for place in PLACES)
        place, original = (topic, int(partition), int(offset)), int(said.get(TIMESTAMP, millis))
        if not all(name.startswith(f"{QUARANTINE}.") for name, _ in headers[first:]):
            raise ValueError("not the last ones")
        if not (0 <= place[1] < 2**31 and 0 <= place[2] < 2**63 and -(2**63) <= original < 2**63):
            raise ValueError("no place of a record")
    except (KeyError, ValueError):
        return SetAside(at, quarantine, 0, at, STRANGE, tuple(headers), key, value, millis)
    own = tuple(headers[:first])
    return SetAside(at, *place, reason, own, key, value, original, said.get(LEFT_OUT), UNREAD in said)


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


@dataclass(frozen=True)
class Outcome:
    """What became of a portion: how many records moved on, and why each of the others was set aside once more."""

    moved: int
    again: Counter[str]


def replay(task: WriteTask, quarantine_id: str, batch: list[SetAside], *, puts_back: bool) -> Outcome:
    """Tries the records again in one transaction. What still cannot be copied is set aside once more.

    `puts_back`: a demux' records go back, as they came, to the partitions they came from; its next run tries them.
    """
    task = replace(task, on_bad_record="quarantine", on_bad="pass" if task.on_bad == "pass" else "quarantine")
    if task.limits is not None and task.limits.compresses:
        try:
            return _replayed(replace(task, limits=task.limits.lenient()), quarantine_id, batch, puts_back)
        except TooLarge:  # a broker does not say which record it refused: sizes before compression decide
            pass
    return _replayed(task, quarantine_id, batch, puts_back)


Outgoing = list[tuple[Any, ...]]


def _replayed(task: WriteTask, quarantine_id: str, batch: list[SetAside], puts_back: bool) -> Outcome:
    kept = {record.at: why for record in batch if (why := stuck(task, record, puts_back=puts_back)) is not None}
    outgoing, again = (put_back if puts_back else _tried)(task, [record for record in batch if record.at not in kept])
    for record in batch:
        if record.at in kept:
            outgoing.append(_once_more(task, record, kept[record.at]))
            again[kept[record.at]] += 1
    _write(task, quarantine_id, batch, outgoing)
    return Outcome(len(batch) - again.total(), again)


def stuck(task: WriteTask, record: SetAside, *, puts_back: bool) -> str | None:
    """Why a record cannot even be tried."""
    if record.left_out is not None or record.topic == task.quarantine:
        return record.reason
    route = next((route for route in task.routes.values() if route.source == record.topic), None)
    if route is None:
        return f"topic {record.topic} is not in `from`, or not at the source any more"
    keeps_partition = puts_back or (task.partitioning == "keep" and not task.spread)
    if keeps_partition and not 0 <= record.partition < route.partitions:
        return f"topic {record.topic} has no partition {record.partition:,} now, only {route.partitions:,}"
    if record.unread and task.selects and not puts_back:  # what is put back is judged by the next run
        return UNJUDGED
    return None


def _once_more(task: WriteTask, record: SetAside, reason: str) -> tuple[Any, ...]:
    aside = written_aside(
        task,
        place=(record.topic, record.partition, record.offset),
        reason=reason,
        key=record.key,
        value_bytes=-1 if record.value is None else len(record.value),
        headers=list(record.headers),
        millis=record.millis,
        left_out=record.left_out,
        unread=record.unread,
    )
    value = record.value if aside.has_value else None
    return task.quarantine, value, aside.key, 0, None, None, aside.millis, aside.headers


def _tried(task: WriteTask, batch: list[SetAside]) -> tuple[Outgoing, Counter[str]]:
    """The records as a run would write them."""
    if not batch:
        return [], Counter()
    numbers = {route.source: route.number for route in task.routes.values()}
    ready = rows(
        task,
        pa.RecordBatch.from_pydict(
            {
                "key": pa.array([record.key for record in batch], pa.large_binary()),
                "value": pa.array([record.value for record in batch], pa.large_binary()),
                "headers": pa.array([[{"key": k, "value": v} for k, v in r.headers] for r in batch], HEADERS),
                "route": pa.array([numbers[record.topic] for record in batch], pa.int64()),
                "partition": pa.array([record.partition for record in batch], pa.int32()),
                "offset": pa.array([record.offset for record in batch], pa.int64()),
                "millis": pa.array([record.millis for record in batch], pa.int64()),
            }
        ),
    )
    nothing = [None] * len(batch)
    columns = (ready.keys, ready.partitions, nothing, nothing, ready.millis, ready.headers)
    reasons = (dict(ready.headers[row] or ())[f"{QUARANTINE}.reason"] or b"" for row in ready.quarantined)
    again = Counter(reason.decode() for reason in reasons)
    return list(zip(ready.topics, ready.values.to_pylist(), *columns, strict=True)), again


def put_back(task: WriteTask, batch: list[SetAside]) -> tuple[Outgoing, Counter[str]]:
    outgoing: Outgoing = []
    again: Counter[str] = Counter()
    for r in batch:
        why = _not_to_be_put_back(task, r)
        if why is None:
            outgoing.append((r.topic, r.value, r.key, r.partition, None, None, r.millis or 1, list(r.headers)))
        else:
            outgoing.append(_once_more(task, r, why))
            again[why] += 1
    return outgoing, again


def _not_to_be_put_back(task: WriteTask, record: SetAside) -> str | None:
    if any(DAMAGE in name for name, _ in record.headers):
        return record.reason  # its name is not here any more
    if task.limits is None:
        return None
    if record.key is None and record.topic in task.limits.compacted:
        return keyless(record.topic)
    key, value = (-1 if part is None else len(part) for part in (record.key, record.value))
    size, largest = record_bytes(key, value, list(record.headers)), task.limits.largest.get(record.topic)
    if largest is not None and size > largest:
        return f"{size:,} bytes are more than topic {record.topic} takes, {largest:,}: raise max.message.bytes"
    return refused_time(task.limits, record.topic, record.millis or 1, int(time.time() * 1000))


def _write(task: WriteTask, quarantine_id: str, batch: list[SetAside], outgoing: list[tuple[Any, ...]]) -> None:
    """One transaction: the records, and the quarantine's position past them."""
    position = Position(batch[-1].at + 1, quarantine_id, task.epoch)
    own = Partition(task.quarantine, 0)
    ours = (task.ledger, records.position_value(position), records.position_key(own), 0)
    write_all(task, [*outgoing, ours], f'mirror "{task.mirror}": replay')
