"""What waits in a quarantine, and how it is written on: with patience, and into a topic that takes every size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.copied_settings import QUARANTINE_SETTINGS
from barnabas.errors import Refused
from barnabas.model import Connection, Offsets, Position, Route
from barnabas.quarantine import (
    MOST_BYTES,
    MOST_RECORDS,
    STRANGE,
    UNJUDGED,
    SetAside,
    batches,
    put_back,
    stated,
    stuck,
    waiting,
)
from barnabas.spoke import Spoke
from barnabas.worker.aside import written_aside
from barnabas.worker.headers import Headers
from barnabas.worker.task import Limits, WriteTask
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


TASK = WriteTask("m", "l", 1, "r", Connection("c", "h:1", {}), {7: Route(7, "t", "id", "d", 3)}, quarantine="q")


def read_back(*, headers: Headers, place: tuple[int, int] = (1, 5), millis: int = 9, unread: bool = False) -> SetAside:
    """A record as it is set aside and read again."""
    aside = written_aside(
        TASK,
        place=("t", *place),
        reason="why",
        key=b"k",
        value_bytes=1,
        headers=headers,
        millis=millis,
        unread=unread,
    )
    return stated("q", 77, aside.headers, key=aside.key, value=b"v", millis=aside.millis)


def test_headers_of_another_quarantine_are_the_records_own() -> None:
    foreign = ("topic", "partition", "offset", "reason", "timestamp", "left_out", "unread")
    own: Headers = [("a", b"1"), *((f"barnabas.quarantine.{name}", b"3") for name in foreign)]
    assert read_back(headers=own) == SetAside(77, "t", 1, 5, "why", tuple(own), b"k", b"v", 9)
    assert stated("q", 77, [*own, ("z", None)], key=None, value=None, millis=9).reason == STRANGE, "not at the end"


@pytest.mark.parametrize("place", [(2**31, 5), (-1, 5), (1, 2**63), (1, -1)], ids=str)
def test_a_place_that_no_record_has_is_a_strangers(place: tuple[int, int]) -> None:
    found = read_back(headers=[("a", b"1")], place=place)
    assert (found.topic, found.offset, found.reason, found.headers[0]) == ("q", 77, STRANGE, ("a", b"1"))
    assert stuck(TASK, found, puts_back=False) == stuck(TASK, found, puts_back=True) == STRANGE


@pytest.mark.parametrize("millis", [2**63, -(2**63) - 1])
def test_a_timestamp_that_no_record_has_is_a_strangers(millis: int) -> None:
    assert read_back(headers=[], millis=millis).reason == STRANGE
    assert read_back(headers=[], millis=2**63 - 1).millis == 2**63 - 1


def test_a_partition_that_is_not_there_keeps_its_record_from_blocking_the_others() -> None:
    last, beyond = read_back(headers=[], place=(2, 5)), read_back(headers=[], place=(3, 5))
    spread = replace(TASK, spread=2, spoke=Spoke("eu", "b:1", "cluster", "d"))
    assert stuck(TASK, last, puts_back=False) is None
    assert stuck(TASK, beyond, puts_back=False) == "topic t has no partition 3 now, only 3"
    assert [stuck(task, beyond, puts_back=False) for task in (replace(TASK, partitioning="key"), spread)] == [None] * 2
    assert stuck(replace(TASK, partitioning="key"), beyond, puts_back=True) == "topic t has no partition 3 now, only 3"


def test_what_where_and_provenance_have_not_judged_is_not_written_by_a_replay() -> None:
    unread, read = (read_back(headers=[], unread=is_so) for is_so in (True, False))
    selects = replace(TASK, selects=True)
    assert stuck(selects, unread, puts_back=False) == UNJUDGED
    assert [stuck(TASK, unread, puts_back=False), stuck(selects, read, puts_back=False)] == [None, None]
    assert stuck(selects, unread, puts_back=True) is None, "the demux' next run judges it"


def test_what_is_set_aside_once_more_says_all_it_said_before() -> None:
    again = put_back(replace(TASK, limits=Limits({"t": 10}, 10, 10, 9_999)), [read_back(headers=[], unread=True)])[0][0]
    assert again[0] == "q" and stated("q", 78, again[-1], key=None, value=None, millis=9).unread


def test_nothing_without_a_key_is_put_back_into_a_compacted_topic() -> None:
    task = replace(TASK, limits=Limits({}, 9_999, 9_999, 9_999, compacted=frozenset({"t"})))
    keyed = read_back(headers=[])
    outgoing, again = put_back(task, [keyed, replace(keyed, key=None)])
    assert [(line[0], line[2]) for line in outgoing] == [("t", b"k"), ("q", None)]
    assert list(again) == ["topic t is compacted and takes no record without a key"]
