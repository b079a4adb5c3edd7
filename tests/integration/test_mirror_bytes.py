"""Byte for byte: key, value, headers, timestamp and partition arrive as they were, or are refused by name."""

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, ran, records_of, write_configuration
from tests.kafka_io import Record, create_topic, delete_topics, produce, read_all
from tests.raw_kafka import RawRecord, produce_raw
from tests.replicator_host import Host, Mirrors

pytest_plugins = ["tests.hosted"]

YEAR_9999 = 253_402_300_799_999
GREGORIAN = -12_219_292_800_000
YEAR_2025 = 1_750_000_000_000
LARGEST_VALUE = 1_048_588 - 61 - 11  # what a broker takes by default, less what a batch and a record need themselves

ODD_RECORDS = [
    Record(None, None, (), YEAR_2025),
    Record(b"", b"", (), YEAR_2025),
    Record(b"key", None, (("why", b"deleted"),), YEAR_2025),
    Record(None, b"value", (), YEAR_2025),
    Record(b"", b"value", (), YEAR_2025),
    Record(b"key", b"", (), YEAR_2025),
    Record(b"\x00\xff\xfe", bytes(range(256)), (), YEAR_2025),
    Record(b"twice", b"", (("h", b"1"), ("h", b"2"), ("h", b"1")), YEAR_2025),
    Record(b"order", b"", (("b", b"1"), ("a", b"2"), ("c", b"3"), ("a", b"4")), YEAR_2025),
    Record(b"null-header", b"", (("none", None), ("empty", b""), ("some", b"\x00")), YEAR_2025),
    Record(b"unicode", b"", (("Brno·ž", b"1"), ("日本", b"2"), ("😀", b"3"), ("", b"4")), YEAR_2025),
    Record(b"many", b"", tuple((f"h{i}", b"%d" % i) for i in range(200)), YEAR_2025),
    Record(b"no-timestamp", b"", (), -1),
    Record(b"1970", b"", (), 1),
    Record(b"9999", b"", (), YEAR_9999),
    Record(b"late", b"", (), YEAR_2025 - 86_400_000),
]


@dataclass
class Copied:
    """What one run made of every topic of this file."""

    source: str
    destination: str
    mark: str
    mirrors: Mirrors
    host: Host

    def name(self, stem: str) -> str:
        return f"{stem}-{self.mark}"

    def equal(self, stem: str) -> int:
        assert self.mirrors[self.name(stem)]["state"] == "done", self.mirrors[self.name(stem)]
        return copied(self.source, self.destination, self.name(stem))

    def refusal(self, stem: str) -> str:
        mirror = self.mirrors[self.name(stem)]
        assert mirror["state"] == "refused", mirror
        return str(mirror["error"])


@pytest.fixture(scope="module")
def run(source: KafkaCluster, destination: KafkaCluster, host: Host) -> Iterator[Copied]:
    mark = secrets.token_hex(4)
    here, there = source.bootstrap, destination.bootstrap

    stems: list[str] = []

    def made(stem: str, partitions: int = 1, **settings: str) -> str:
        stems.append(stem)
        create_topic(here, f"{stem}-{mark}", partitions, -1, **settings)
        return f"{stem}-{mark}"

    odd = made("odd", 2, message_timestamp_after_max_ms=str(2**62))
    produce(here, odd, [r._replace(partition=p) for p in (0, 1) for r in ODD_RECORDS])
    compacted = made("compacted", cleanup_policy="compact")
    # of now: a segment ends when its first record is a week older than the marker of its transaction, and is compacted
    now = int(time.time() * 1000)
    produce(here, compacted, [Record(b"a", b"1", (), now), Record(b"a", None, (), now)])
    values = [b"x" * 1_000_000, b"y" * 1_048_000, b"z" * LARGEST_VALUE]
    big: dict[str, str] = {"bootstrap.servers": here, "message.max.bytes": "2000000"}
    produce(big, made("large"), [Record(None, value, (), YEAR_2025) for value in values])
    produce(here, made("stamped", message_timestamp_type="LogAppendTime"), [Record(b"k", b"v", (), 1)] * 3)
    small = {"bootstrap.servers": here, "batch.size": "10000"}
    produce(small, made("narrow", max_message_bytes="20000"), [Record(b"k", b"v" * 200, (), YEAR_2025)] * 5000)
    numbered = [Record(b"k", b"%d" % n, (), YEAR_2025 + n, n % 2) for n in range(12_001)]
    produce(here, made("crowded", 2), numbered)
    zero = [RawRecord(b"k", b"before", YEAR_2025), RawRecord(b"k", b"zero", 0), RawRecord(b"k", b"after", YEAR_2025)]
    produce_raw(here, made("zero"), zero)
    produce_raw(here, made("zero-as-one"), zero)
    usual = RawRecord(b"k", b"v", YEAR_2025)
    produce_raw(here, made("not-utf8"), [usual, RawRecord(b"k", b"x", YEAR_2025, ((b"caf\xe9", b"1"),)), usual])
    produce_raw(here, made("zero-byte"), [usual, RawRecord(b"k", b"x", YEAR_2025, ((b"caf\0e", b"1"),)), usual])
    produce_raw(here, made("julian"), [usual, RawRecord(b"k", b"x", GREGORIAN - 1), usual])
    produce_raw(here, made("gregorian"), [RawRecord(b"k", b"v", at) for at in (GREGORIAN, GREGORIAN + 1, -2)])
    sizes = [10] * 30_000 + [50_000] + [20] * 30_000  # what comes behind it must not hide why it is not taken
    produce(here, made("too-large"), [Record(b"k", b"s" * n, (), YEAR_2025) for n in sizes])
    create_topic(there, f"too-large-{mark}", max_message_bytes="10000")

    extra: dict[str, dict[str, Any]] = {"zero-as-one": {"zero_timestamps": "as_one"}}
    extra["crowded"] = {"producer": {"queue.buffering.max.messages": 100}}
    mirrors = [{"name": f"{s}-{mark}", "from": f"{s}-{mark}", **extra.get(s, {})} for s in stems]
    yield Copied(here, there, mark, host.catch_up(here, there, *mirrors), host)
    for cluster in (source, destination):
        names = cluster.admin().list_topics(timeout=30).topics
        delete_topics(cluster.bootstrap, [name for name in names if mark in name])


def test_null_and_empty_duplicate_headers_unicode_and_timestamps_from_none_to_year_9999_arrive_as_they_were(
    run: Copied,
) -> None:
    assert run.equal("odd") == 2 * len(ODD_RECORDS)
    first = [r for r in records_of(run.destination, run.name("odd")) if r.partition == 0]
    assert first == ODD_RECORDS, "and as they were written, not only as the source gives them back"


def test_tombstones_of_a_compacted_topic_are_copied_and_the_copy_is_compacted_too(run: Copied) -> None:
    assert run.equal("compacted") == 2
    assert read_all(run.destination, run.name("compacted"))[-1].value is None


def test_records_as_large_as_a_broker_takes_by_default_are_copied(run: Copied) -> None:
    assert run.equal("large") == 3


def test_a_topic_stamped_by_its_broker_keeps_its_timestamps_at_the_destination(run: Copied) -> None:
    assert run.equal("stamped") == 3


def test_small_records_of_a_topic_that_takes_small_batches_only_are_copied(run: Copied) -> None:
    assert run.equal("narrow") == 5000


def test_records_that_find_the_producers_queue_full_are_copied_in_their_order(run: Copied) -> None:
    assert run.equal("crowded") == 12_001


def test_timestamp_0_is_refused_with_its_place_and_the_remedy(run: Copied) -> None:
    said = run.refusal("zero")
    assert f"{run.name('zero')}-0 offset 1" in said
    assert "zero_timestamps: as_one" in said
    assert [r.value for r in read_all(run.destination, run.name("zero"))] == [b"before"], "and no other"


def test_timestamp_0_is_written_as_1_when_asked_for(run: Copied) -> None:
    assert run.mirrors[run.name("zero-as-one")]["state"] == "done"
    found = [(r.value, r.timestamp) for r in read_all(run.destination, run.name("zero-as-one"))]
    assert found == [(b"before", YEAR_2025), (b"zero", 1), (b"after", YEAR_2025)]


@pytest.mark.parametrize(
    ("stem", "says"),
    [("not-utf8", "not UTF-8"), ("zero-byte", "holds a zero byte"), ("julian", "before 15 October 1582")],
)
def test_what_would_arrive_altered_is_refused_with_its_place_and_the_way_around_it_which_leaves_out_no_other(
    stem: str, says: str, run: Copied, tmp_path: Path
) -> None:
    said, name = run.refusal(stem), run.name(stem)
    assert says in said
    assert f"{name}-0 offset 1" in said
    assert [r.value for r in read_all(run.destination, name)] == [b"v"], "what is before it was copied"
    advice = f"barnabas position set --mirror {name} --topic {name} --partition 0 --to 2"
    assert said.endswith(advice)
    mirror = {"name": name, "from": name}
    file = write_configuration(tmp_path / "c.yaml", run.source, run.destination, [mirror])
    code, moved = ran(tmp_path, *advice.split()[1:], "-c", file)
    assert code == 0 and moved.output == f"{name}-0: 1 → 2\n", moved.messages
    assert run.host.catch_up(run.source, run.destination, mirror)[name]["state"] == "done"
    assert [r.value for r in read_all(run.destination, name)] == [b"v", b"v"]


def test_the_oldest_timestamps_of_our_calendar_arrive_as_they_were(run: Copied) -> None:
    assert run.equal("gregorian") == 3
    found = [record.timestamp for record in read_all(run.destination, run.name("gregorian"))]
    assert found == [GREGORIAN, GREGORIAN + 1, -2]


def test_a_record_too_large_for_the_destination_is_refused_by_name_and_copied_once_the_topic_takes_it(
    run: Copied, destination: KafkaCluster
) -> None:
    from barnabas.kafka.admin import Admin
    from barnabas.model import Connection

    topic = run.name("too-large")
    said = run.refusal("too-large")
    assert "max.message.bytes" in said
    assert topic in said
    assert run.mirrors[topic]["restarts"] == 0, "it was tried again before it was refused"
    assert {record.value for record in read_all(run.destination, topic)} <= {b"s" * 10}
    admin = Admin(Connection("destination", run.destination, {"bootstrap.servers": run.destination}))
    admin.change(topic, {"max.message.bytes": "100000"})
    again = run.host.catch_up(run.source, run.destination, {"name": topic, "from": topic})
    assert again[topic]["state"] == "done", again
    assert copied(run.source, run.destination, topic) == 60_001
