"""How a record looks in the quarantine: its bytes as they came, and headers that state where from and why.

What a topic may refuse is not written there. A timestamp of 0, of the future or too old stands in a header, and the
record gets the time at which it was set aside. Of a record that is too large only its origin and, where there is room,
its key are written.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.model import ANY_TIME, FIRST_MILLISECOND
from barnabas.worker.headers import Headers, headers_of, writable
from barnabas.worker.task import WriteTask
from barnabas.worker.unwritable import record_bytes

if TYPE_CHECKING:
    from barnabas.worker.rows import Rows

QUARANTINE = "barnabas.quarantine"  # the headers of a record that was set aside begin so
TIMESTAMP, LEFT_OUT, UNREAD = "timestamp", "left_out", "unread"  # headers that not every such record has
VALUE, KEY = b"value and headers", b"key, value and headers"


@dataclass(frozen=True)
class Aside:
    """One record as the quarantine gets it."""

    key: bytes | None
    has_value: bool
    headers: Headers
    millis: int


def set_aside(task: WriteTask, ready: Rows, batch: pa.RecordBatch, bad: Mapping[int, str]) -> None:
    """Bad rows go to the quarantine as they came, with headers that say where from and why."""
    starts = [run.start for run in ready.runs]
    demuxed = "came_headers" in batch.schema.names
    without_value = np.zeros(batch.num_rows, dtype=np.bool_)
    for row, reason in bad.items():
        run = ready.runs[bisect_right(starts, row) - 1]
        value = ready.values[row].as_buffer()
        # before a demux took its headers off, which it does where it knows a place
        came = "came_" if demuxed and batch.column("to_topic")[row].is_valid else ""
        aside = written_aside(
            task,
            place=(run.route.source, run.partition, int(ready.offsets[row])),
            reason=reason,
            key=ready.keys[row],
            value_bytes=-1 if value is None else value.size,
            headers=headers_of(batch, row, f"{came}headers"),
            millis=batch.column(f"{came}millis")[row].as_py(),
        )
        ready.topics[row], ready.partitions[row] = task.quarantine, 0
        ready.keys[row], ready.headers[row], ready.millis[row] = aside.key, aside.headers, aside.millis
        without_value[row] = not aside.has_value
    if without_value.any():
        ready.values = pc.if_else(without_value, pa.scalar(None, ready.values.type), ready.values)


def written_aside(
    task: WriteTask,
    *,
    place: tuple[str, int, int],
    reason: str,
    key: bytes | None,
    value_bytes: int,
    headers: Headers,
    millis: int,
    left_out: bytes | None = None,
    unread: bool = False,
) -> Aside:
    """A record's form in the quarantine.

    `left_out` is what an earlier quarantine left out of it already; `unread`: Spark never brought the record, so that
    neither `where` nor `provenance` has judged it.
    """
    topic, partition, offset = place
    told = {"topic": topic, "partition": str(partition), "offset": str(offset), "reason": reason}  # topic comes first
    if unread:
        told[UNREAD] = "true"
    now = int(time.time() * 1000)
    oldest = max(FIRST_MILLISECOND, now - (task.limits.quarantine_behind if task.limits else ANY_TIME))
    takes = oldest <= millis <= now and millis != 0
    if not takes:
        told[TIMESTAMP] = str(millis)
    origin: Headers = [(f"{QUARANTINE}.{name}", text.encode()) for name, text in told.items()]
    whole = [*writable(headers), *origin]
    key_bytes = -1 if key is None else len(key)
    room = task.limits.quarantine if task.limits else None
    if room is not None and record_bytes(key_bytes, value_bytes, whole) > room:
        left_out = VALUE
        if record_bytes(key_bytes, -1, origin) + len(VALUE) + len(QUARANTINE) + 20 > room:
            key, left_out = None, KEY
        whole = origin
    if left_out is not None:
        whole = [*whole, (f"{QUARANTINE}.{LEFT_OUT}", left_out)]
    return Aside(key, left_out is None, whole, millis if takes else now)
