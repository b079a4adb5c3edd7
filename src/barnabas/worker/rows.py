"""A batch as the lists that produce() takes, one entry a record: where to, what, when, with which headers.

Everything is done by column: a record is first touched in the loop that hands it to the producer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.errors import BadRecord, Refused
from barnabas.model import Route
from barnabas.spoke import TIMESTAMP, Spoke
from barnabas.worker.addresses import Addresses, demuxed
from barnabas.worker.aside import set_aside
from barnabas.worker.columns import as_bytes, bounds
from barnabas.worker.headers import HeaderColumn, Headers
from barnabas.worker.task import WriteTask
from barnabas.worker.translate import translator
from barnabas.worker.unwritable import unwritable

ANY_PARTITION = -1  # librdkafka's own partitioner chooses, set to the Java client's


@dataclass
class Run:
    """Rows [start, end) of a batch: consecutive records of one source partition."""

    route: Route
    partition: int
    start: int
    end: int


@dataclass
class Rows:
    """One batch, ready to be produced in order."""

    runs: list[Run]
    offsets: Any
    bytes_before: list[Any]  # before each row and behind the last, of keys and of values
    topics: list[str]
    partitions: list[int]
    keys: list[bytes | None]
    values: pa.BinaryArray  # made Python objects only while they are handed over
    millis: list[int]
    headers: list[Headers | None]
    quarantined: list[int]  # rows that go to the quarantine instead, in order

    def bytes_of(self, run: Run) -> int:
        """Bytes of the keys and values of a run."""
        return sum(int(before[run.end]) - int(before[run.start]) for before in self.bytes_before)

    def quarantined_of(self, run: Run) -> int:
        return bisect_left(self.quarantined, run.end) - bisect_left(self.quarantined, run.start)


class BadRow(BadRecord):
    """The record of this row cannot be copied as it is."""

    def __init__(self, row: int, says: str) -> None:
        super().__init__(says)
        self.row = row


def rows(task: WriteTask, batch: pa.RecordBatch) -> Rows:
    """Addresses, translates and unpacks a batch; BadRow for one that holds what cannot be copied."""
    runs = _runs(task, batch)
    address = _kept(task, runs) if task.demuxed is None else demuxed(task.demuxed, batch, task.declined)
    headers = HeaderColumn(batch.column("headers"))
    uncopied = {**unwritable(task, batch, address.topics, headers), **address.bad}
    _refuse(task, batch, uncopied, task.on_bad_record, "on_bad_record")
    keys, values, untranslated = _translated(task, batch, address, uncopied)
    bad = {**untranslated, **uncopied}
    ready = Rows(
        runs=runs,
        offsets=batch.column("offset").to_numpy(),
        bytes_before=[bounds(keys), bounds(values)],
        topics=address.topics,
        partitions=address.partitions,
        keys=keys.to_pylist(),
        values=values,
        millis=_timestamps(batch),
        headers=headers.lists(),
        quarantined=sorted(bad),
    )
    if task.spoke is not None:
        _tell_origin(task.spoke, ready, batch)
    if bad:
        set_aside(task, ready, batch, bad)
    return ready


def _runs(task: WriteTask, batch: pa.RecordBatch) -> list[Run]:
    """Where route or partition changes, another source partition begins."""
    routes, partitions = batch.column("route").to_numpy(), batch.column("partition").to_numpy()
    changes = (routes[1:] != routes[:-1]) | (partitions[1:] != partitions[:-1])
    starts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    found = []
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        route = task.routes.get(int(routes[start]))
        if route is None:
            raise Refused(f'mirror "{task.mirror}": a record has no route; its topic is not in the plan')
        found.append(Run(route, int(partitions[start]), start, end))
    return found


def _kept(task: WriteTask, runs: list[Run]) -> Addresses:
    """Every record of a source partition goes to one partition, or to the one its key belongs to."""
    topics: list[str] = []
    partitions: list[int] = []
    for run in runs:
        to = run.partition if task.partitioning == "keep" else ANY_PARTITION
        if task.spread:
            to = (run.route.number + run.partition) % task.spread
        topics += [run.route.destination] * (run.end - run.start)
        partitions += [to] * (run.end - run.start)
    return Addresses(topics, partitions, None, {})


def _translated(
    task: WriteTask, batch: pa.RecordBatch, address: Addresses, uncopied: Mapping[int, str]
) -> tuple[Any, Any, Mapping[int, str]]:
    """Keys and values with the destination's schema ids, and the rows that cannot have them with the reason."""
    keys, values = as_bytes(batch.column("key")), as_bytes(batch.column("value"))
    if task.schemas is None:
        return keys, values, {}
    routes = batch.column("route") if address.routes is None else address.routes
    columns = {"keys": keys, "values": values, "headers": batch.column("headers")}
    good = np.ones(batch.num_rows, dtype=np.bool_)
    good[list(uncopied)] = False  # these are set aside as they are, whatever their schema is
    if uncopied:
        columns = {name: pc.if_else(good, column, pa.scalar(None, column.type)) for name, column in columns.items()}
    done = translator(task.schemas, task.epoch).translate(routes=routes, **columns)
    if uncopied:
        done = replace(done, keys=pc.if_else(good, done.keys, keys), values=pc.if_else(good, done.values, values))
    reasons = {} if task.on_bad == "pass" else done.reasons()
    _refuse(task, batch, reasons, task.on_bad, "on_bad_schema")
    return done.keys, done.values, reasons


def _refuse(task: WriteTask, batch: pa.RecordBatch, bad: Mapping[int, str], policy: str, setting: str) -> None:
    """BadRow for the first, when the policy says stop: with where it is, why, and the ways to go on."""
    if not bad or policy != "stop":
        return
    row = min(bad)
    topic, partition, offset = _found(task, batch, row)
    remedy = f"set `{setting}: quarantine` to set such records aside"
    if setting == "on_bad_schema":
        remedy += " or `pass` to copy them as they are"
    else:
        remedy += (
            f"; what is before it is copied; to leave it out: barnabas position set --mirror {task.mirror} "
            f"--topic {topic} --partition {partition} --to {offset + 1}"
        )
    raise BadRow(row, f'mirror "{task.mirror}": {topic}-{partition} offset {offset}: {bad[row]}; {remedy}')


def _tell_origin(spoke: Spoke, ready: Rows, batch: pa.RecordBatch) -> None:
    """Behind each record's own headers, where it came from. Here, not in Spark: eight headers less on the way here."""
    moments = batch.column("millis").cast(pa.string()).cast(pa.binary()).to_pylist()
    for run in ready.runs:
        before, after = spoke.around_timestamp(run.route.source, run.partition, run.route.partitions)
        rows = slice(run.start, run.end)
        ready.headers[rows] = [
            [*(own or ()), *before, (TIMESTAMP, moment), *after]
            for own, moment in zip(ready.headers[rows], moments[rows], strict=True)
        ]


def _timestamps(batch: pa.RecordBatch) -> list[int]:
    """Milliseconds as the client takes them: 0 means "now" to it."""
    millis = batch.column("millis").to_numpy()
    if millis.min() <= 0:
        millis = np.where(millis == 0, 1, millis)
    listed: list[int] = millis.tolist()
    return listed


def _found(task: WriteTask, batch: pa.RecordBatch, row: int) -> tuple[str, int, int]:
    """The source topic, partition and offset of a row."""
    route = task.routes.get(int(batch.column("route")[row].as_py()))
    return route.source if route else "?", batch.column("partition")[row].as_py(), batch.column("offset")[row].as_py()
