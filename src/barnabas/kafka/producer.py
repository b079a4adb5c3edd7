"""Producers: a plain one that appends to a ledger, and one that writes in transactions.

librdkafka speaks the transaction protocol without KIP-890: an EndTxn that a network held back, and that was sent once
more meanwhile, could end a later transaction of the same producer epoch. It does not tell when it sends one again, but
it never does so sooner than its back-off. So a producer is used again only after a commit that succeeded at the first
call and took less than that; its successor's `init` makes a new epoch, in which a late EndTxn means nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message, Producer

from barnabas.errors import BarnabasError, ConfigError, Unavailable
from barnabas.kafka.errors import explained
from barnabas.model import Connection, Properties

SOCKET_SECONDS = 20
INIT_SECONDS = 60
CONNECT_SECONDS = 1.0
MESSAGE_SECONDS = 100  # what is in a full queue must get through a slow link in this time, or no transaction ever ends
TRANSACTION_SECONDS = 180
RETRY_SECONDS = 1.0  # before a request is sent again; a fifth more or less, by chance
ONCE_SECONDS = 0.75  # what took no longer was sent once
FLUSHED_RECORDS = 500  # of fewer it does not matter
DRAIN_SECONDS = 0.03  # without any answer, until what is left is flushed
LOOK_SECONDS = 1.0

THROUGHPUT: Properties = {
    # A commit flushes at once, whatever the linger. Longer than a full queue takes to be sent, on a slow machine too:
    # the client's thread asks without a pause whether it may send what is older, as long as an answer for that
    # partition is outstanding.
    "linger.ms": 5000,
    "batch.size": 400_000,  # what a broker's collector does not call humongous, and its caches hold
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 64 * 1024,  # what is under way to many partitions, and the largest record
    "message.max.bytes": 1_000_000_000,  # the broker's limit counts, not librdkafka's
}
DURABILITY: Properties = {
    "enable.idempotence": True,
    "acks": "all",
    "socket.timeout.ms": SOCKET_SECONDS * 1000,
    "message.timeout.ms": MESSAGE_SECONDS * 1000,
    "retry.backoff.ms": int(RETRY_SECONDS * 1000),
    "retry.backoff.max.ms": int(RETRY_SECONDS * 1000),
}


def plain_producer(connection: Connection, *, once: bool = False) -> Producer:
    """For a few records outside of any transaction, acknowledged by all.

    `once`: never twice, for a record whose offset means something.
    """
    settings = {**connection.properties, **DURABILITY, "linger.ms": 0, "enable.idempotence": once}
    return _made(settings, f'cluster "{connection.cluster}"')


def _made(settings: dict[str, Any], where: str) -> Producer:
    """A producer; Unavailable where there can be none now: its settings were taken before, a file may not be."""
    try:
        return Producer(settings)
    except KafkaException as error:
        said = error.args[0].str()
        raise Unavailable(f"{where}: a client cannot be made now: {said}: is a file being replaced?") from None


@dataclass(frozen=True)
class Appended:
    """Where a record of ours stands, as the broker acknowledged it."""

    offset: int
    at: int | None  # milliseconds by the broker's clock, where the topic stamps what is appended


def append(
    connection: Connection, topic: str, records: list[tuple[bytes, bytes | None]], *, once: bool = False
) -> list[Appended]:
    """Appends to partition 0, as a plain producer does it; returns what the broker acknowledged."""
    where = f'cluster "{connection.cluster}": append to {topic}'
    producer = plain_producer(connection, once=once)
    if once:
        connect(producer, topic)
    outcomes: list[tuple[KafkaError | None, int | None, int | None]] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        kind, millis = message.timestamp()
        outcomes.append((error, message.offset(), millis if kind == TIMESTAMP_LOG_APPEND_TIME else None))

    for key, value in records:
        producer.produce(topic, value, key, 0, on_delivery=delivered)
    if producer.flush(MESSAGE_SECONDS + 5) or len(outcomes) < len(records):
        raise Unavailable(f"{where}: not acknowledged in {MESSAGE_SECONDS} s")
    acknowledged: list[Appended] = []
    for error, offset, at in outcomes:
        if error is not None:
            raise explained(error, where)
        if offset is None or offset < 0:
            raise Unavailable(f"{where}: acknowledged without an offset, so nobody knows where the record stands")
        acknowledged.append(Appended(offset, at))
    return acknowledged


def connect(producer: Producer, known_topic: str) -> None:
    """Any topic that is there serves to connect: one that needs an id and has no connection yet waits for half a second
    before it looks again."""
    with suppress(KafkaException):  # what is wrong, the first call that needs the cluster will say
        producer.list_topics(known_topic, timeout=CONNECT_SECONDS)


def refuse_unknown(connection: Connection, extra: Properties, where: str) -> None:
    """ConfigError when librdkafka does not know a producer setting, before a mirror is taken over."""
    try:
        Producer({**THROUGHPUT, **connection.properties, **extra, **DURABILITY})
    except KafkaException as error:
        raise ConfigError(f"{where}: producer: {error.args[0].str()}") from None


class TransactionalProducer:
    """One transactional id: init once, then begin, produce, commit as often as commits stay clean."""

    def __init__(self, connection: Connection, transactional_id: str, extra: Properties | None = None) -> None:
        self.where = f'cluster "{connection.cluster}": writer {transactional_id}'
        self.clean = True
        settings: dict[str, Any] = {**THROUGHPUT, **connection.properties, **(extra or {}), **DURABILITY}
        settings |= {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_SECONDS * 1000}
        self._producer = _made(settings, self.where)
        self.produce = self._producer.produce
        self.poll = self._producer.poll
        self.flush = self._producer.flush

    def __len__(self) -> int:
        """Records that are not acknowledged yet."""
        return len(self._producer)

    def __bool__(self) -> bool:
        return True

    def init(self, known_topic: str, seconds: float = INIT_SECONDS) -> None:
        """Aborts what this id left open, and fences whoever used it before."""
        started = time.monotonic()
        connect(self._producer, known_topic)
        left = seconds - (time.monotonic() - started)
        self._call(self._producer.init_transactions, "init transactions", left)

    def begin(self) -> None:
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            self.clean = False
            raise explained(error, f"{self.where}: begin transaction") from None

    def commit(self, check: Callable[[], None] | None = None) -> None:
        """Commits. After any error the outcome is unknown to us: only the ledger tells.

        `check` runs when every record is acknowledged and nothing is committed yet.
        """
        self._drain()
        self._call(self._flush, "flush", MESSAGE_SECONDS + 5)
        if check is not None:
            check()
        started = time.monotonic()
        self._call(self._producer.commit_transaction, "commit", SOCKET_SECONDS * 2)
        if time.monotonic() - started > ONCE_SECONDS:
            self.clean = False
        self._producer.poll(0)

    def abort(self) -> None:
        """Gives the transaction up and this producer with it."""
        self.clean = False
        self._call(self._producer.abort_transaction, "abort", SOCKET_SECONDS)

    def explained(self, error: KafkaException, where: str) -> BarnabasError:
        """Why a record is not taken: where the client speaks of its state only, an earlier one has failed."""
        cause = self._lost() if error.args[0].code() == KafkaError._STATE else None
        return explained(cause or error, where)

    def _drain(self) -> None:
        """Lets full batches go: while it flushes, the client's thread asks without a pause whether it may send."""
        left, before = len(self), 0
        while left > FLUSHED_RECORDS and left != before:
            self._producer.poll(DRAIN_SECONDS)
            left, before = len(self), left

    def _flush(self, timeout: float) -> None:
        """Waits until every record is acknowledged, or one has failed: the others are not sent then, and why it did the
        commit itself will tell."""
        limit = time.monotonic() + timeout
        while self._producer.flush(LOOK_SECONDS) and not self._lost():
            if time.monotonic() > limit:
                raise Unavailable(
                    f"{self.where}: records were not acknowledged in {timeout:.0f} s; if the link to the destination "
                    f"is that slow, lower `batch.lanes`"
                )

    def _lost(self) -> KafkaException | None:
        """Why this transaction can only be aborted any more: to begin another is refused in any case, and tells it."""
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            final = error.args[0].txn_requires_abort() or error.args[0].fatal()
            return error if final else None
        return None

    def _call(self, function: Callable[[float], None], what: str, seconds: float) -> None:
        """Order of librdkafka's errors: must abort → may be called again → final."""
        limit = time.monotonic() + seconds
        while True:
            try:
                return function(max(1.0, limit - time.monotonic()))
            except KafkaException as error:
                self.clean = False
                cause = error.args[0]
                again = cause.retriable() and not cause.txn_requires_abort() and not cause.fatal()
                if not again or time.monotonic() > limit:
                    raise explained(error, f"{self.where}: {what}") from None
                time.sleep(0.05)
