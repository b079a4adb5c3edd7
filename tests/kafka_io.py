"""Reading and writing topics in tests, by a client that knows nothing of Barnabas."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

SECONDS = 60.0
BATCH = 10_000

Headers = Sequence[tuple[str, bytes | None]]
Settings = str | dict[str, str]  # a bootstrap, or a client's whole configuration


class Record(NamedTuple):
    """A record to write or one that was read; `offset` is meaningless for writing."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0  # milliseconds; 0 lets the producer choose
    partition: int = 0
    offset: int = -1


def settings(where: Settings) -> dict[str, Any]:
    """A client's configuration from a bootstrap or from one that is complete."""
    given = {"bootstrap.servers": where} if isinstance(where, str) else where
    return {**given, "log_level": 0}


def create_topic(where: Settings, name: str, partitions: int = 1, replication: int = -1, **config: str) -> None:
    """Creates a topic and returns when it can be written; settings as keywords, `_` for `.`."""
    admin = AdminClient(settings(where))
    named = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=replication, config=named)
    for future in admin.create_topics([topic], operation_timeout=SECONDS).values():
        future.result(SECONDS)

    def has_leaders() -> bool:
        known = admin.list_topics(timeout=SECONDS).topics.get(name)
        return known is not None and len(known.partitions) == partitions and _led(known.partitions.values())

    wait_until(has_leaders, SECONDS, f"topic {name} to have leaders")


def _led(partitions: Iterable[Any]) -> bool:
    return all(partition.leader >= 0 for partition in partitions)


def delete_topics(where: Settings, names: Iterable[str]) -> None:
    """Deletes those of the topics that exist."""
    names = list(names)
    if not names:
        return
    admin = AdminClient(settings(where))
    for future in admin.delete_topics(names, operation_timeout=SECONDS).values():
        try:
            future.result(SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def produce(where: Settings, topic: str, records: Iterable[Record], transaction: str | None = None) -> None:
    """Writes the records, each to its partition, in order; all in one committed transaction if an id is given."""
    extra: dict[str, Any] = {"transactional.id": transaction} if transaction else {"enable.idempotence": True}
    extra["delivery.report.only.error"] = True  # a call per record would cost more than the record
    producer = Producer({**settings(where), "linger.ms": 20, "queue.buffering.max.messages": 200_000, **extra})
    if transaction:
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    for key, value, headers, timestamp, partition, _ in records:
        while True:
            try:
                producer.produce(topic, value, key, partition, delivered, None, timestamp, list(headers))
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(SECONDS)
    if failures or left:
        raise AssertionError(f"{topic}: {left} records not delivered in {SECONDS:g} s, failures: {failures[:3]}")
    if transaction:
        producer.commit_transaction(SECONDS)


def ends(where: Settings, topic: str) -> dict[int, tuple[int, int]]:
    """First and next offset of each partition; next is the last stable offset, behind the last committed record."""
    consumer = _consumer(where, "read_committed")
    try:
        return _ends(consumer, topic)
    finally:
        consumer.close()


def read_all(where: Settings, topic: str, isolation: str = "read_committed", seconds: float = SECONDS) -> list[Record]:
    """Every record there is now, by partition and offset."""
    by_partition: dict[int, list[Record]] = {}
    for record in read_each(where, topic, isolation, seconds):
        by_partition.setdefault(record.partition, []).append(record)
    return [record for partition in sorted(by_partition) for record in by_partition[partition]]


def read_each(
    where: Settings, topic: str, isolation: str = "read_committed", seconds: float = SECONDS
) -> Iterator[Record]:
    """Every record there is now, each partition in order, partitions mixed; for more than memory should hold."""
    consumer = _consumer(where, isolation)
    try:
        bounds = _ends(consumer, topic)
        left = {partition: end for partition, (first, end) in bounds.items() if end > first}
        consumer.assign([TopicPartition(topic, partition, bounds[partition][0]) for partition in left])
        deadline = time.monotonic() + seconds
        while left:
            if time.monotonic() > deadline:
                raise AssertionError(f"{topic}: not read up to {left} in {seconds:g} s")
            for message in consumer.consume(BATCH, 0.1):
                record = _record(message)
                if _is_record(message):
                    yield record
                # A range may end in markers and aborted records, which no message shows: then its end is announced.
                if record.partition in left and _reached(message, left[record.partition]):
                    del left[record.partition]
    finally:
        consumer.close()


def wait_until(predicate: Callable[[], bool], timeout: float, what: str) -> None:
    """Returns as soon as the predicate is true; fails, saying what was waited for, when the time is over."""
    deadline = time.monotonic() + timeout
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for {what}")
        time.sleep(0.05)


def _consumer(where: Settings, isolation: str) -> Consumer:
    own = {
        "group.id": "tests",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
        "queued.max.messages.kbytes": 262_144,
    }
    return Consumer({**settings(where), **own})


def _ends(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    metadata = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    if metadata.error is not None:
        raise KafkaException(metadata.error)
    found = {}
    for partition in sorted(metadata.partitions):
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=SECONDS)
        found[partition] = (first, end)
    return found


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() == KafkaError._PARTITION_EOF or error.retriable():
        return False
    raise KafkaException(error)


def _reached(message: Message, end: int) -> bool:
    offset = message.offset()
    if offset is None:
        return False
    return offset + 1 >= end if message.error() is None else offset >= end


def _record(message: Message) -> Record:
    # The client's types allow None where a received message never has it, and headers in other shapes than it gives.
    received: Any = message
    return Record(
        received.key(),
        received.value(),
        tuple(received.headers() or ()),
        received.timestamp()[1],
        received.partition(),
        received.offset(),
    )
