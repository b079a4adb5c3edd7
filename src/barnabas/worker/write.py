"""A task: Arrow batches in, one Kafka transaction, receipts out.

    begin → every row in order, as it was → one position per source partition → commit → receipts

Rows of one source partition stand together, so a batch is a few runs of (route, partition), and within a run the
topic and the partition are constants: the loop below touches only key, value, timestamp and headers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Message

from barnabas.errors import BadRecord, BarnabasError, Refused, Unavailable
from barnabas.kafka.errors import explained
from barnabas.kafka.producer import TransactionalProducer
from barnabas.ledger import records
from barnabas.model import Partition, Position, Route
from barnabas.worker.task import WriteTask, marked
from barnabas.worker.writer import dropped, writer

RECEIPT_SCHEMA = (
    "route long, partition int, first long, next long, records long, bytes long, "
    "destination_first long, destination_last long, commit_millis long"
)
_REPLACEMENT = "\ufffd"  # what decoding as UTF-8 leaves where bytes were none
_ANY_PARTITION = -1  # librdkafka's own partitioner chooses, set to the Java client's


def write(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: writes all rows in one transaction and yields a receipt per source partition."""
    try:
        _refuse_second_attempt()
        yield _receipts(_written(task, batches))
    except BarnabasError as error:
        raise marked(error) from None


def _refuse_second_attempt() -> None:
    """A retry is a new epoch, never a second attempt of a task (D); the session allows no second stage either."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise Refused("write() runs inside a Spark task only")
    if context.attemptNumber() > 0:
        raise Unavailable("Spark ran a task a second time; the range is copied again under a new epoch")


@dataclass
class Tally:
    """What has been written so far of one source partition."""

    route: Route
    partition: int
    first: int
    next: int
    records: int = 0
    bytes: int = 0
    destination_first: int = -1
    destination_last: int = -1
    commit_millis: int = 0

    def delivered_first(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.destination_first = self.destination_last = message.offset() or 0

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.destination_last = message.offset() or 0


def _written(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> list[Tally]:
    """Writes every batch in one transaction; nothing is opened when there is no row."""
    transaction: _Transaction | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        transaction = transaction or _Transaction(task)
        transaction.write(batch)
    return transaction.commit() if transaction else []


class _Transaction:
    """One Kafka transaction: records and the positions past them, together or not at all (A)."""

    def __init__(self, task: WriteTask) -> None:
        self.task = task
        self.tallies: dict[tuple[int, int], Tally] = {}
        self.producer: TransactionalProducer = writer(task)
        self.producer.begin()

    def write(self, batch: pa.RecordBatch) -> None:
        with self._giving_up_on_error():
            _produce_batch(self.task, self.producer, batch, self.tallies)

    def commit(self) -> list[Tally]:
        with self._giving_up_on_error():
            for tally in self.tallies.values():
                partition = Partition(tally.route.source, tally.partition)
                position = Position(tally.next, tally.route.topic_id, self.task.epoch)
                key, value = records.position_key(partition), records.position_value(position)
                _patiently(self.producer, self.task.ledger, value, key, 0)
            started = time.monotonic()
            self.producer.commit()
            for tally in self.tallies.values():
                tally.commit_millis = int((time.monotonic() - started) * 1000)
        return list(self.tallies.values())

    @contextlib.contextmanager
    def _giving_up_on_error(self) -> Iterator[None]:
        """Any error ends the transaction and the producer: a commit whose outcome is unknown is never guessed."""
        try:
            yield
        except (BarnabasError, KafkaException) as error:
            dropped(self.task)
            with contextlib.suppress(BarnabasError):  # the next epoch fences what an abort could not reach
                self.producer.abort()
            if isinstance(error, KafkaException):
                raise explained(error, self.producer.where) from None
            raise


def _produce_batch(
    task: WriteTask, producer: TransactionalProducer, batch: pa.RecordBatch, tallies: dict[tuple[int, int], Tally]
) -> None:
    routes = batch.column("route").to_numpy()
    partitions = batch.column("partition").to_numpy()
    offsets = batch.column("offset").to_numpy()
    keys, values = batch.column("key"), batch.column("value")
    sizes = np.cumsum(np.concatenate(([0], _lengths(keys) + _lengths(values))))
    starts = _run_starts(routes, partitions)
    key_list, value_list = keys.to_pylist(), values.to_pylist()
    millis = _timestamps(task, batch, offsets).tolist()
    headers = _headers(batch.column("headers"))
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        route = task.routes.get(int(routes[start]))
        if route is None:
            raise Refused(f'mirror "{task.mirror}": a record has no route; its topic is not in the plan')
        tally = _tally(tallies, route, int(partitions[start]), offsets[start:end])
        columns = (value_list[start:end], key_list[start:end], millis[start:end], headers and headers(start, end))
        to = tally.partition if task.partitioning == "keep" else _ANY_PARTITION
        _produce_run(producer, tally, to, columns)
        tally.bytes += int(sizes[end] - sizes[start])
    producer.poll(0)


def _produce_run(producer: TransactionalProducer, tally: Tally, to: int, columns: tuple[Any, Any, Any, Any]) -> None:
    """Produces one run, with delivery reports for its first and last record only: one each is too dear."""
    values, keys, millis, headers = columns
    topic, produce, last = tally.route.destination, producer.produce, len(values) - 1
    header_at = headers.__getitem__ if headers is not None else (lambda _: None)
    if tally.records == 0:
        _patiently(producer, topic, values[0], keys[0], to, tally.delivered_first, None, millis[0], header_at(0))
        done = 1
    else:
        done = 0
    if headers is None:
        for value, key, at in zip(values[done:last], keys[done:last], millis[done:last], strict=True):
            try:
                produce(topic, value, key, to, None, None, at)
            except BufferError:
                _patiently(producer, topic, value, key, to, None, None, at)
    else:
        rows = zip(values[done:last], keys[done:last], millis[done:last], headers[done:last], strict=True)
        for value, key, at, own in rows:
            try:
                produce(topic, value, key, to, None, None, at, own)
            except BufferError:
                _patiently(producer, topic, value, key, to, None, None, at, own)
    if last >= done:
        final = (values[last], keys[last], to, tally.delivered, None, millis[last], header_at(last))
        _patiently(producer, topic, *final)
    tally.records += len(values)


def _patiently(producer: TransactionalProducer, *record: Any) -> None:
    """Produces one record, waiting while librdkafka's queue is full."""
    while True:
        try:
            return producer.produce(*record)
        except BufferError:
            producer.poll(0.02)


def _tally(tallies: dict[tuple[int, int], Tally], route: Route, partition: int, offsets: Any) -> Tally:
    """The tally of a source partition, moved past these offsets; they must follow what was written before."""
    first, following = int(offsets[0]), int(offsets[-1]) + 1
    tally = tallies.setdefault((route.number, partition), Tally(route, partition, first, first))
    if first < tally.next or bool((np.diff(offsets) <= 0).any()):
        raise Refused(f"{route.source}-{partition}: offset {first} came after {tally.next - 1}; order would be lost")
    tally.next = following
    return tally


def _run_starts(routes: Any, partitions: Any) -> list[int]:
    changes = (np.diff(routes) != 0) | (np.diff(partitions) != 0)
    return [0, *(np.flatnonzero(changes) + 1).tolist()]


def _lengths(column: pa.BinaryArray) -> Any:
    """Bytes of each value, 0 for null."""
    return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _timestamps(task: WriteTask, batch: pa.RecordBatch, offsets: Any) -> Any:
    """Milliseconds. librdkafka takes 0 for "now", so a record of the first millisecond of 1970 needs a decision."""
    millis = batch.column("millis").to_numpy()
    zero = millis == 0
    if not zero.any():
        return millis
    if task.zero_timestamps == "as_one":
        return np.where(zero, 1, millis)
    at = int(np.flatnonzero(zero)[0])
    route = task.routes.get(int(batch.column("route")[at].as_py()))
    partition = f"{route.source if route else '?'}-{batch.column('partition')[at]}"
    raise BadRecord(
        f'mirror "{task.mirror}": {partition} offset {offsets[at]} '
        f"has timestamp 0, which the Kafka client cannot write; set `zero_timestamps: as_one` to write 1 instead"
    )


def _headers(column: pa.ListArray) -> Callable[[int, int], list[list[tuple[str, bytes | None]]]] | None:
    """A function from rows [start, end) to their headers, or None when no row of the batch has any.

    Flattens once and slices by offsets: a list of structs turned into Python row by row costs ten times as much.
    """
    flat = column.flatten()
    if len(flat) == 0:
        return None
    names = flat.field(0)
    if bool(pc.any(pc.match_substring(names, _REPLACEMENT)).as_py()):
        raise BadRecord(f"a header's name is not UTF-8; Spark cannot bring it as it was: {_damaged(names)!r}")
    pairs = list(zip(names.to_pylist(), flat.field(1).to_pylist(), strict=True))
    at = column.offsets.to_pylist()
    base = at[0]

    def of(start: int, end: int) -> list[list[tuple[str, bytes | None]]]:
        return [pairs[at[row] - base : at[row + 1] - base] for row in range(start, end)]

    return of


def _damaged(names: pa.StringArray) -> str:
    return str(next(name for name in names.to_pylist() if _REPLACEMENT in name))


def _receipts(tallies: list[Tally]) -> pa.RecordBatch:
    columns: dict[str, tuple[list[int], Any]] = {
        "route": ([t.route.number for t in tallies], pa.int64()),
        "partition": ([t.partition for t in tallies], pa.int32()),
        "first": ([t.first for t in tallies], pa.int64()),
        "next": ([t.next for t in tallies], pa.int64()),
        "records": ([t.records for t in tallies], pa.int64()),
        "bytes": ([t.bytes for t in tallies], pa.int64()),
        "destination_first": ([t.destination_first for t in tallies], pa.int64()),
        "destination_last": ([t.destination_last for t in tallies], pa.int64()),
        "commit_millis": ([t.commit_millis for t in tallies], pa.int64()),
    }
    return pa.RecordBatch.from_pydict({name: pa.array(rows, kind) for name, (rows, kind) in columns.items()})
