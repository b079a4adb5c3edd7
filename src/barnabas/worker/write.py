"""A task: Arrow batches in, a Kafka transaction or several, receipts out.

begin → every row in order, as it was → one position per source partition → commit → receipts
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, ClassVar

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message

from barnabas.errors import BarnabasError, Refused, Unavailable
from barnabas.kafka.errors import explained
from barnabas.ledger import records
from barnabas.ledger.registration import Writer
from barnabas.model import Partition, Position, Receipt, Route
from barnabas.worker.rows import BadRow, Rows, Run, rows
from barnabas.worker.sealed import SealedTask, opened
from barnabas.worker.task import WriteTask, marked
from barnabas.worker.writer import dropped, patiently, writer

TRANSACTION = 1.0  # seconds, after which readers see what is there
LONGEST_TRANSACTION = 20.0  # where commits take long: the broker gives up on one after 180
COMMIT_SHARE = 5  # a transaction lasts at least so many times as long as its commit
GARBAGE = 500_000  # a batch with headers is tens of thousands of tuples, none of them in a circle
FREEZES = 2
ALIVE = 300  # values of a batch that are Python objects at a time
RECEIPT_SCHEMA = ", ".join(f"{name} long" for name in Receipt.__dataclass_fields__)

_tasks = itertools.count()


def write(task: SealedTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: writes all rows in transactions and yields a receipt per source partition."""
    _spare_the_collector()
    try:
        _refuse_second_attempt()
        yield _receipts(_written(opened(task), batches))
    except BarnabasError as error:
        raise marked(error) from None


def ready(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: nothing, in a worker that has then imported all that `write` needs."""
    yield from batches


def _spare_the_collector() -> None:
    """What a worker has imported is not looked through again, which PySpark asks for after each task.

    Twice, because a first task ends with imports too. Not each time: what is frozen and becomes a circle stays.
    """
    if next(_tasks) < FREEZES:
        gc.set_threshold(GARBAGE)
        gc.freeze()


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
    quarantined: int = 0
    destination_first: int = -1
    destination_last: int = -1
    commit_millis: int = 0

    def delivered_first(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.destination_first = self.destination_last = message.offset() or 0

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.destination_last = message.offset() or 0

    def receipt(self) -> Receipt:
        return Receipt(
            route=self.route.number,
            partition=self.partition,
            first=self.first,
            next=self.next,
            records=self.records,
            bytes=self.bytes,
            quarantined=self.quarantined,
            destination_first=self.destination_first,
            destination_last=self.destination_last,
            commit_millis=self.commit_millis,
        )


def _written(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> list[Receipt]:
    """Writes every batch in one transaction, or in several if it takes long: readers wait for the end of each.

    Each holds the positions past its own records, so where one ends makes no difference. Nothing is opened when there
    is no row.
    """
    tallies: dict[tuple[int, int], Tally] = {}
    transaction: _Transaction | None = None
    since = time.monotonic()
    try:
        for batch in batches:
            ready, bad = _copyable(task, batch)  # the first before any begin: a registry may take long to answer
            if ready is not None:
                transaction = transaction or _Transaction(task, tallies, since)
                transaction.write(ready)
            if transaction is not None and (bad or transaction.is_long()):
                transaction.commit()
                transaction, since = None, time.monotonic()
            if bad is not None:
                raise bad
        if transaction is not None:
            transaction.commit()
        return [tally.receipt() for tally in tallies.values()]
    except KafkaException as error:
        where = f'mirror "{task.mirror}": write'
        failure = transaction.producer.explained(error, where) if transaction else explained(error, where)
        _give_up(task, transaction)
        raise failure from None
    except BaseException:  # whatever it was: this transaction must not be gone on with
        _give_up(task, transaction)
        raise


def _copyable(task: WriteTask, batch: pa.RecordBatch) -> tuple[Rows | None, BadRow | None]:
    """The rows before the first that cannot be copied, and why it cannot.

    They are committed before the mirror stops: whoever then sets its position past that one leaves out no other.
    """
    bad: BadRow | None = None
    while batch.num_rows:
        try:
            return rows(task, batch), bad
        except BadRow as earlier:
            bad, batch = earlier, batch.slice(0, earlier.row)
    return None, bad


def _give_up(task: WriteTask, transaction: _Transaction | None) -> None:
    """Ends the transaction and its producer: a commit whose outcome is unknown is never guessed."""
    dropped(task)
    if transaction is not None:
        with contextlib.suppress(BarnabasError):  # the next epoch fences what an abort could not reach
            transaction.producer.abort()


class _Transaction:
    """One Kafka transaction: records and the positions past them, together or not at all (A)."""

    commit_seconds: ClassVar[dict[str, float]] = {}  # by mirror, of its last commit in this worker

    def __init__(self, task: WriteTask, tallies: dict[tuple[int, int], Tally], since: float) -> None:
        self.task = task
        self.tallies = tallies
        self.touched: dict[tuple[int, int], Tally] = {}
        self.writer: Writer = writer(task)
        self.producer = self.writer.producer
        self.producer.begin()
        self._since = since  # waiting for its first batch counts: the next may take as long

    def is_long(self) -> bool:
        """A worker's first ends with its first batch: after a restart readers see at once that it goes on."""
        commit_seconds = self.commit_seconds.get(self.task.mirror)
        if commit_seconds is None:
            return True
        enough = max(TRANSACTION, COMMIT_SHARE * commit_seconds)
        return time.monotonic() - self._since > min(enough, LONGEST_TRANSACTION)

    def write(self, ready: Rows) -> None:
        """Hands every row to the producer, in a loop of the interpreter's own: a fifth quicker than one in Python."""
        told, unused = self._tell(ready), [None] * len(ready.topics)
        lists = (ready.keys, ready.partitions, told, unused, ready.millis, ready.headers)
        feeds = [iter(ready.topics), _few_at_a_time(ready.values), *(iter(column) for column in lists)]
        while True:
            try:
                deque(itertools.starmap(self.producer.produce, zip(*feeds, strict=True)), maxlen=0)
                break
            except BufferError:  # the queue is full: once more with the row that was taken last
                row = len(ready.topics) - length_hint(feeds[0]) - 1
                patiently(
                    self.producer, ready.topics[row], ready.values[row].as_py(), *(column[row] for column in lists)
                )
        self.producer.poll(0)

    def commit(self) -> None:
        for tally in self.touched.values():
            partition = Partition(tally.route.source, tally.partition)
            position = Position(tally.next, tally.route.topic_id, self.task.epoch)
            ours = records.position_value(position), records.position_key(partition)
            patiently(self.producer, self.task.ledger, *ours, 0, self.writer.end.delivered)
        started = time.monotonic()
        self.writer.commit()
        seconds = time.monotonic() - started
        # The first connects to every broker and says nothing about those that follow.
        self.commit_seconds[self.task.mirror] = seconds if self.task.mirror in self.commit_seconds else 0.0
        millis = int(seconds * 1000)
        for tally in self.touched.values():
            tally.commit_millis = max(tally.commit_millis, millis)

    def _tell(self, ready: Rows) -> list[Any]:
        """Counts the runs, and asks for delivery reports of the first and last record of each: more is too dear."""
        told: list[Any] = [None] * len(ready.topics)
        for run in ready.runs:
            tally = self._tally(run, ready.offsets[run.start : run.end])
            told[run.end - 1] = tally.delivered
            if tally.records == 0:
                told[run.start] = tally.delivered_first
            tally.records += run.end - run.start
            tally.bytes += ready.bytes_of(run)
            tally.quarantined += ready.quarantined_of(run)
        return told

    def _tally(self, run: Run, offsets: Any) -> Tally:
        """The tally of a source partition, moved past these offsets; they must follow what was written before."""
        first = int(offsets[0])
        place = run.route.number, run.partition
        tally = self.touched[place] = self.tallies.setdefault(place, Tally(run.route, run.partition, first, first))
        if first < tally.next or bool((offsets[1:] <= offsets[:-1]).any()):
            raise Refused(f"{run.route.source}-{run.partition}: offset {first} came after {tally.next - 1}")
        tally.next = int(offsets[-1]) + 1
        return tally


def _few_at_a_time(column: pa.BinaryArray) -> Iterator[bytes | None]:
    """A column's values as Python objects, of which never more than a few are alive."""
    lists = (column.slice(first, ALIVE).to_pylist() for first in range(0, len(column), ALIVE))
    return itertools.chain.from_iterable(lists)


def _receipts(receipts: list[Receipt]) -> pa.RecordBatch:
    columns = {name: [getattr(r, name) for r in receipts] for name in Receipt.__dataclass_fields__}
    return pa.RecordBatch.from_pydict({name: pa.array(column, pa.int64()) for name, column in columns.items()})
