"""Which records of a batch cannot be written as they are, and why. Judged before any of them is produced.

A broker refuses a whole batch because of one record, and the transaction with it. So sizes are judged here, by column:
only rows that may be too large are computed exactly.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.model import ANY_TIME, FIRST_MILLISECOND
from barnabas.worker.columns import as_bytes, bounds
from barnabas.worker.headers import HeaderColumn, Headers, headers_of
from barnabas.worker.task import Limits, WriteTask

MOST_SHOWN = 60  # characters of a name
NO_TIMESTAMP = -1  # which every topic takes
BATCH_BYTES = 61  # of a batch in Kafka's format, before its first record
RECORD_BYTES, HEADER_BYTES = 40, 10  # at most, beside what a record or a header holds


def unwritable(task: WriteTask, batch: pa.RecordBatch, topics: Sequence[str], headers: HeaderColumn) -> dict[int, str]:
    """Row → why its record cannot be written: a header's name, no key, its timestamp, its size."""
    return {
        **_too_large(task, batch, topics, headers),
        **_untimely(task, batch, topics),
        **_keyless(task, batch, topics),
        **_unnameable(headers),
    }


def record_bytes(key: int, value: int, headers: Headers) -> int:
    """Bytes of a batch of this one record. Sizes of key and value are -1 for null."""
    parts = [_field(key), _field(value), _varint(len(headers))]
    for name, held in headers:
        parts.append(_field(len(name.encode(errors="replace"))) + _field(-1 if held is None else len(held)))
    body = 3 + sum(parts)  # attributes, and the differences to the batch's first timestamp and offset, which are 0
    return BATCH_BYTES + _varint(body) + body


def _keyless(task: WriteTask, batch: pa.RecordBatch, topics: Sequence[str]) -> dict[int, str]:
    keys = batch.column("key")
    if task.limits is None or not task.limits.compacted or not keys.null_count:
        return {}
    rows = np.flatnonzero(keys.is_null().to_numpy(zero_copy_only=False)).tolist()
    return {row: keyless(topics[row]) for row in rows if topics[row] in task.limits.compacted}


def keyless(topic: str) -> str:
    return f"topic {topic} is compacted and takes no record without a key"


def _unnameable(headers: HeaderColumn) -> dict[int, str]:
    return {
        row: f"header name {name[:MOST_SHOWN]!r} is not UTF-8 or holds a zero byte, and arrived here already altered"
        for row, name in headers.damaged().items()
    }


def _untimely(task: WriteTask, batch: pa.RecordBatch, topics: Sequence[str]) -> dict[int, str]:
    """librdkafka takes 0 for "now", Spark moves what is before 15 October 1582, and a topic may set limits."""
    millis = batch.column("millis").to_numpy()
    found = _refused_times(task, millis, topics)
    if millis.min() > 0:
        return found
    if task.zero_timestamps == "stop":
        says = "timestamp 0 cannot be written by the Kafka client; `zero_timestamps: as_one` writes 1 instead"
        found |= dict.fromkeys(np.flatnonzero(millis == 0).tolist(), says)
    old = np.flatnonzero(millis < FIRST_MILLISECOND).tolist()
    return found | dict.fromkeys(old, "a timestamp before 15 October 1582 arrives altered through Spark")


def _refused_times(task: WriteTask, millis: Any, topics: Sequence[str]) -> dict[int, str]:
    """Timestamps that the broker of their topic would refuse, by its limits and our clock."""
    if task.limits is None or not task.limits.times:
        return {}
    now = int(time.time() * 1000)
    behind, ahead = (min(limits) for limits in zip(*task.limits.times.values(), strict=True))
    if int(millis.max()) <= now + ahead and int(millis.min()) >= now - behind:
        return {}
    whys = (refused_time(task.limits, topic, at, now) for topic, at in zip(topics, millis.tolist(), strict=True))
    return {row: why for row, why in enumerate(whys) if why is not None}


def refused_time(limits: Limits, topic: str, millis: int, now: int) -> str | None:
    """Why a topic does not take a timestamp, if so."""
    behind, ahead = limits.times.get(topic, (ANY_TIME, ANY_TIME))
    if millis == NO_TIMESTAMP or now - behind <= millis <= now + ahead:
        return None
    setting = "after" if millis > now else "before"
    return f"topic {topic} refuses timestamp {millis}: see its message.timestamp.{setting}.max.ms"


def _too_large(task: WriteTask, batch: pa.RecordBatch, topics: Sequence[str], headers: HeaderColumn) -> dict[int, str]:
    limits = task.limits
    if limits is None:
        return {}
    sizes = [np.diff(bounds(as_bytes(batch.column(side)))) for side in ("key", "value")]
    most = int(sizes[0].max()) + int(sizes[1].max()) + headers.bytes_at_most() + BATCH_BYTES + RECORD_BYTES
    added = _added(task)
    if most + added + HEADER_BYTES * int(headers.counts().max()) <= limits.narrowest:
        return {}
    upper = sizes[0].astype(np.int64) + sizes[1] + headers.bytes_of_rows() + HEADER_BYTES * headers.counts()
    candidates = np.flatnonzero(upper + BATCH_BYTES + RECORD_BYTES + added > limits.narrowest).tolist()
    found: dict[int, str] = {}
    for row in candidates:
        size = exact_bytes(batch, row) + added
        largest = limits.largest.get(topics[row], limits.client)
        if size > min(largest, limits.client):
            found[row] = _says(size, topics[row], largest, limits.client)
    return found


def exact_bytes(batch: pa.RecordBatch, row: int) -> int:
    """What `record_bytes` says of a row."""
    key, value = (batch.column(side)[row].as_buffer() for side in ("key", "value"))
    sizes = [-1 if part is None else part.size for part in (key, value)]
    return record_bytes(sizes[0], sizes[1], headers_of(batch, row))


def _added(task: WriteTask) -> int:
    """Bytes of what a mux adds to any record, at most."""
    if task.spoke is None:
        return 0
    longest = max((len(route.source) for route in task.routes.values()), default=0)
    before, after = task.spoke.around_timestamp("x" * longest, 2**31 - 1, 2**31 - 1)
    return sum(len(name) + len(value) + HEADER_BYTES for name, value in (*before, *after)) + 50


def _says(size: int, topic: str, largest: int, client: int) -> str:
    if size > largest:
        return (
            f"{size:,} bytes with its headers are more than topic {topic} takes, {largest:,}: raise max.message.bytes"
        )
    return (
        f"{size:,} bytes with its headers are more than the client's queue takes, {client:,}: raise "
        f"`queue.buffering.max.kbytes` under `producer`"
    )


def _field(size: int) -> int:
    return _varint(size) + max(size, 0)


def _varint(number: int) -> int:
    """Bytes of a number as Kafka writes it, zigzag and seven bits a byte."""
    coded = (number << 1) ^ (number >> 63)
    return max(1, -(-coded.bit_length() // 7))
