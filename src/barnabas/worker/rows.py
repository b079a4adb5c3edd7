"""A batch as the lists that produce() takes, one entry a record: where to, what, when, with which headers.

Everything is done by column: a record is first touched in the loop that hands it to the producer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.errors import BadRecord, Refused
from barnabas.model import FIRST_MILLISECOND, Route
from barnabas.spoke import TIMESTAMP, Spoke
from barnabas.worker.addresses import Addresses, demuxed
from barnabas.worker.columns import as_bytes, bounds
from barnabas.worker.task import WriteTask
from barnabas.worker.translate import translator

# What decoding as UTF-8 leaves where bytes were none; and where the Kafka client takes a name to end.
_UNWRITABLE = "\ufffd|\\x00"
QUARANTINE = "barnabas.quarantine"  # the headers of a record that was set aside begin so
ANY_PARTITION = -1  # librdkafka's own partitioner chooses, set to the Java client's

Headers = list[tuple[str, bytes | None]]


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
    address = _kept(task, runs) if task.demuxed is None else demuxed(task.demuxed, batch)
    _refuse(task, batch, address.bad, task.on_bad_record, "on_bad_record")
    keys, values, untranslated = _translated(task, batch, address)
    bad = {**untranslated, **address.bad}
    ready = Rows(
        runs=runs,
        offsets=batch.column("offset").to_numpy(),
        bytes_before=[bounds(keys), bounds(values)],
        topics=address.topics,
        partitions=address.partitions,
        keys=keys.to_pylist(),
        values=values,
        millis=_timestamps(task, batch),
        headers=_headers(task, batch),
        quarantined=sorted(bad),
    )
    if task.spoke is not None:
        _tell_origin(task.spoke, ready, batch)
    if task.demuxed is not None:
        _restore(ready, batch, untranslated)
    if bad:
        _set_aside(task, ready, bad)
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


def _translated(task: WriteTask, batch: pa.RecordBatch, address: Addresses) -> tuple[Any, Any, Mapping[int, str]]:
    """Keys and values with the destination's schema ids, and the rows that cannot have them with the reason."""
    keys, values = as_bytes(batch.column("key")), as_bytes(batch.column("value"))
    if task.schemas is None:
        return keys, values, {}
    routes = batch.column("route") if address.routes is None else address.routes
    columns = {"keys": keys, "values": values, "headers": batch.column("headers")}
    good = np.ones(batch.num_rows, dtype=np.bool_)
    good[list(address.bad)] = False  # these are set aside as they are, whatever their schema is
    if address.bad:
        columns = {name: pc.if_else(good, column, pa.scalar(None, column.type)) for name, column in columns.items()}
    done = translator(task.schemas, task.epoch).translate(routes=routes, **columns)
    if address.bad:
        done = replace(done, keys=pc.if_else(good, done.keys, keys), values=pc.if_else(good, done.values, values))
    reasons = {} if task.on_bad == "pass" else done.reasons()
    _refuse(task, batch, reasons, task.on_bad, "on_bad_schema")
    return done.keys, done.values, reasons


def _refuse(task: WriteTask, batch: pa.RecordBatch, bad: Mapping[int, str], policy: str, setting: str) -> None:
    """BadRow for the first, when the policy says stop."""
    if bad and policy == "stop":
        row = min(bad)
        others = " or `pass` to copy them as they are" if setting == "on_bad_schema" else ""
        raise BadRow(
            row,
            f'mirror "{task.mirror}": {_place(task, batch, row)}: {bad[row]}; '
            f"set `{setting}: quarantine` to set such records aside{others}",
        )


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


def _restore(ready: Rows, batch: pa.RecordBatch, rows: Iterable[int]) -> None:
    """What a demux took off records that cannot be translated: they are set aside as they came."""
    for row in rows:
        pairs = batch.column("came_headers")[row].as_py()
        ready.headers[row] = [(pair["key"], pair["value"]) for pair in pairs]
        ready.millis[row] = batch.column("came_millis")[row].as_py() or 1  # the client cannot write 0


def _set_aside(task: WriteTask, ready: Rows, bad: Mapping[int, str]) -> None:
    """Bad rows go to the quarantine, byte for byte, with headers that say where from and why."""
    starts = [run.start for run in ready.runs]
    for row, reason in bad.items():
        run = ready.runs[bisect_right(starts, row) - 1]
        ready.topics[row], ready.partitions[row] = task.quarantine, 0
        ready.headers[row] = [
            *(ready.headers[row] or []),
            (f"{QUARANTINE}.topic", run.route.source.encode()),
            (f"{QUARANTINE}.partition", str(run.partition).encode()),
            (f"{QUARANTINE}.offset", str(int(ready.offsets[row])).encode()),
            (f"{QUARANTINE}.reason", reason.encode()),
        ]


def _timestamps(task: WriteTask, batch: pa.RecordBatch) -> list[int]:
    """Milliseconds that the client writes as they are."""
    millis = batch.column("millis").to_numpy()
    if millis.min() <= 0:
        millis = _writable(task, batch, millis)
    listed: list[int] = millis.tolist()
    return listed


def _writable(task: WriteTask, batch: pa.RecordBatch, millis: Any) -> Any:
    """librdkafka takes 0 for "now", so a record of the first millisecond of 1970 needs a decision."""
    zero = millis == 0
    if zero.any():
        if task.zero_timestamps == "stop":
            row = int(np.flatnonzero(zero)[0])
            raise BadRow(
                row,
                f'mirror "{task.mirror}": {_place(task, batch, row)} has timestamp 0, which the Kafka client '
                f"cannot write; set `zero_timestamps: as_one` to write 1 instead",
            )
        millis = np.where(zero, 1, millis)
    old = millis < FIRST_MILLISECOND
    if old.any():
        raise _unwritable(task, batch, int(np.flatnonzero(old)[0]), "has a timestamp before 15 October 1582")
    return millis


def _unwritable(task: WriteTask, batch: pa.RecordBatch, row: int, what: str) -> BadRow:
    """A record that Spark and the Kafka client together would alter, and how to go on without it."""
    topic, partition, offset = _found(task, batch, row)
    return BadRow(
        row,
        f'mirror "{task.mirror}": {_place(task, batch, row)} {what}: it cannot be copied as it is; what is before it '
        f"is copied; to leave it out: barnabas position set --mirror {task.mirror} --topic {topic} "
        f"--partition {partition} --to {offset + 1}",
    )


def _place(task: WriteTask, batch: pa.RecordBatch, row: int) -> str:
    topic, partition, offset = _found(task, batch, row)
    return f"{topic}-{partition} offset {offset}"


def _found(task: WriteTask, batch: pa.RecordBatch, row: int) -> tuple[str, int, int]:
    """The source topic, partition and offset of a row."""
    route = task.routes.get(int(batch.column("route")[row].as_py()))
    return route.source if route else "?", batch.column("partition")[row].as_py(), batch.column("offset")[row].as_py()


def _headers(task: WriteTask, batch: pa.RecordBatch) -> list[Headers | None]:
    """Each row's headers; None where it has none.

    Flattens once and slices by offsets: a list of structs turned into Python row by row costs ten times as much.
    """
    column = batch.column("headers")
    starts = bounds(column)
    if starts[0] == starts[-1]:
        return [None] * len(column)
    flat = column.flatten()
    names = pc.dictionary_encode(flat.field(0))  # there are few: each is made a string once
    at = (starts - starts[0]).tolist()
    damaged = pc.match_substring_regex(names.dictionary, _UNWRITABLE)
    if bool(pc.any(damaged).as_py()):
        code = pc.index(damaged, True).as_py()
        first = pc.index(names.indices, pa.scalar(code, names.indices.type)).as_py()
        what = f"has the header name {names.dictionary[code].as_py()!r}, which is not UTF-8 or holds a zero byte"
        raise _unwritable(task, batch, bisect_right(at, first) - 1, what)
    each = np.array(names.dictionary.to_pylist(), dtype=object)[names.indices.to_numpy()].tolist()
    pairs = list(zip(each, flat.field(1).to_pylist(), strict=True))
    counts = np.diff(at)
    if (counts == counts[0]).all():  # as they mostly do: quicker than slices
        following_each_other = iter(pairs)
        return list(map(list, zip(*[following_each_other] * int(counts[0]), strict=True)))
    return [pairs[first:following] for first, following in pairwise(at)]
