"""What waits in a quarantine, and how it is written on: with patience, and into a topic that takes every size."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.copied_settings import QUARANTINE_SETTINGS
from barnabas.errors import Refused
from barnabas.model import Offsets, Position
from barnabas.quarantine import MOST_BYTES, MOST_RECORDS, SetAside, batches, waiting
from barnabas.worker.writer import patiently


@pytest.mark.parametrize(
    ("position", "first"),
    [(None, 2), (Position(5, "this"), 5), (Position(1, "this"), 2), (Position(5, "an earlier one"), 2)],
    ids=["never replayed", "replayed", "retention", "made anew"],
)
def test_what_was_not_replayed_of_this_very_topic_waits(position: Position | None, first: int) -> None:
    assert waiting(Offsets(2, 9), position, "this") == (first, 9)


def test_a_replay_writes_no_more_at_once_than_a_transaction_has_time_for() -> None:
    def aside(size: int) -> SetAside:
        return SetAside(0, "t", 0, 0, "", (("h", b"x" * (size // 2)),), None, b"x" * (size - size // 2), 0)

    small, half, large = aside(10), aside(MOST_BYTES // 2), aside(2 * MOST_BYTES)
    assert [len(batch) for batch in batches([small] * (2 * MOST_RECORDS + 1))] == [MOST_RECORDS, MOST_RECORDS, 1]
    assert list(batches([half, half, small, large, small])) == [[half, half], [small, large], [small]]
    assert list(batches([])) == []


def test_a_full_queue_is_waited_for() -> None:
    """A client without a broker gives its one record up after a moment; until then its queue is full."""
    nowhere = {"bootstrap.servers": "127.0.0.1:9", "queue.buffering.max.messages": 1, "message.timeout.ms": 300}
    producer, told = Producer({**nowhere, "log_level": 0}), []

    def given_up(_error: KafkaError | None, message: Message) -> None:
        told.append(message.value())

    producer.produce("t", b"first", None, -1, given_up)
    with pytest.raises(BufferError):
        producer.produce("t", b"second", None, -1, given_up)
    patiently(producer, "t", b"second", None, -1, given_up)
    assert told == [b"first"], "the second went in when the first had left"
    assert producer.flush(30) == 0
    assert told == [b"first", b"second"]


def test_a_record_that_not_even_an_empty_queue_holds_is_refused_with_the_remedy() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:9", "queue.buffering.max.kbytes": 1, "log_level": 0})
    with pytest.raises(Refused, match=r"t: a record of 2,000 bytes is larger .* raise `queue.buffering.max.kbytes`"):
        patiently(producer, "t", b"x" * 2_000)


def test_a_quarantine_takes_records_of_any_size() -> None:
    assert int(QUARANTINE_SETTINGS["max.message.bytes"]) == 2**31 - 1
