"""Promise: a record that cannot be copied is set aside with its origin and a reason, and stops no mirror."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import no_open_transaction, ran, write_configuration
from tests.kafka_io import Record, create_topic, delete_topics, produce, read_all
from tests.raw_kafka import RawRecord, produce_raw
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]

YEAR_2025 = 1_750_000_000_000
SMALL, HUGE = 10_000, 1_500_000  # bytes that the destination topic takes; more than the producer's queue does
QUEUE = {"queue.buffering.max.kbytes": 1024}
OVERHEAD = 61 + 8 + 4  # of a batch, and of one record with a key of 1 byte and a value below 16 kB


def aside(record: Record) -> dict[str, str]:
    """What the headers of a quarantined record say."""
    prefix = "barnabas.quarantine."
    return {n.removeprefix(prefix): (v or b"").decode() for n, v in record.headers if n.startswith(prefix)}


@dataclass
class Field:
    """A topic of good records with every kind of bad one between them, and the mirrors that copied it."""

    source: str
    destination: str
    mark: str
    host: Host

    def name(self, stem: str) -> str:
        return f"{stem}-{self.mark}"

    def mirror(self, stem: str, *topics: str, **settings: Any) -> dict[str, Any]:
        names = [self.name(topic) for topic in topics or ("bad",)]
        policy = {"on_bad_record": "quarantine", "producer": QUEUE}
        return {"name": self.name(stem), "from": names, **policy, **settings}

    def configuration(self, directory: Path, *mirrors: dict[str, Any]) -> Path:
        return write_configuration(directory / "c.yaml", self.source, self.destination, mirrors)


def written(here: str, topic: str) -> None:
    usual = RawRecord(b"k", b"good", YEAR_2025)
    produce_raw(here, topic, [usual, RawRecord(b"k", b"x", YEAR_2025, ((b"caf\xe9", b"1"), (b"own", b"2"))), usual])
    produce_raw(here, topic, [RawRecord(b"k", b"x", YEAR_2025, ((b"caf\0e", b"1"),)), RawRecord(b"k", b"zero", 0)])
    produce_raw(here, topic, [usual, RawRecord(b"k", b"old", -12_219_292_800_001), usual])
    fits, tight = b"f" * (SMALL - OVERHEAD), b"t" * (SMALL - OVERHEAD + 1)
    rest = [fits, tight, b"good", b"l" * 50_000, b"good", b"h" * HUGE, b"good"]
    produce(
        {"bootstrap.servers": here, "message.max.bytes": "3000000"},
        topic,
        [Record(b"k", v, (), YEAR_2025) for v in rest],
    )


KINDS = {
    1: "not UTF-8 or holds a zero byte",
    3: "not UTF-8 or holds a zero byte",
    4: "timestamp 0 cannot be written by the Kafka client; `zero_timestamps: as_one` writes 1 instead",
    6: "a timestamp before 15 October 1582",
    9: "10,001 bytes with its headers are more than topic",
    11: "50,0.. bytes with its headers are more than topic .* raise max.message.bytes",
    13: "raise `queue.buffering.max.kbytes` under `producer`|raise max.message.bytes",
}
GOOD = [b"good"] * 4 + [b"f" * (SMALL - OVERHEAD)] + [b"good"] * 3


@pytest.fixture(scope="module")
def field(source: KafkaCluster, destination: KafkaCluster, host: Host) -> Iterator[Field]:
    made = Field(source.bootstrap, destination.bootstrap, secrets.token_hex(4), host)
    for stem in ("bad", "gone"):
        create_topic(made.source, made.name(stem), 1, max_message_bytes="3000000")
        create_topic(made.destination, made.name(stem), 1, max_message_bytes=str(SMALL))
    written(made.source, made.name("bad"))
    produce_raw(made.source, made.name("gone"), [RawRecord(b"k", b"zero", 0)])
    yield made
    for cluster in (source, destination):
        names = cluster.admin().list_topics(timeout=30).topics
        delete_topics(cluster.bootstrap, [name for name in names if made.mark in name])


def test_what_cannot_be_copied_is_set_aside_with_its_origin_and_its_neighbours_arrive(
    field: Field, tmp_path: Path
) -> None:
    mirror = field.mirror("aside", "bad", "gone")
    code, drawn = ran(tmp_path, "plan", "-c", field.configuration(tmp_path, mirror))
    assert code == 0 and f"{mirror['name']}.quarantine" in drawn.output, drawn.output
    mux = field.mirror("mux", "gone", kind="mux", identifier=field.mark)
    runs = field.host.catch_up(field.source, field.destination, mirror, mux)
    assert {run["state"]: run["restarts"] for run in runs.values()} == {"done": 0}, runs
    assert [r.value for r in read_all(field.destination, field.name("bad"))] == GOOD
    _set_aside_as_they_came(field, mirror["name"])
    _are_counted(field, tmp_path, mirror, mux)
    _replayed(field, tmp_path, mirror["name"])
    _replayed_by_a_mux(field, tmp_path, mux)


def test_a_record_that_only_the_broker_can_judge_is_set_aside_after_it_was_refused_once(field: Field) -> None:
    """The producer compresses: what is too large before may fit behind, and does, until one does not."""
    topic, name = field.name("packed"), field.name("packs")
    for bootstrap, largest in ((field.source, 3_000_000), (field.destination, SMALL)):
        create_topic(bootstrap, topic, 1, max_message_bytes=str(largest))
    mirror = field.mirror("packs", "packed", producer={"compression.type": "lz4"})
    packed, noise = b"p" * 50_000, secrets.token_bytes(50_000)
    produce(field.source, topic, [Record(b"k", packed, (), YEAR_2025)])
    run = field.host.catch_up(field.source, field.destination, mirror)[name]
    assert (run["state"], run["records"]) == ("done", 1), run
    produce(field.source, topic, [Record(b"k", value, (), YEAR_2025) for value in (b"a", noise, b"b")])
    run = field.host.catch_up(field.source, field.destination, mirror)[name]
    assert run["state"] == "done", run
    assert [r.value for r in read_all(field.destination, topic)] == [packed, b"a", b"b"]
    (record,) = read_all(field.destination, f"{name}.quarantine")
    assert record.value == noise and "raise max.message.bytes" in aside(record)["reason"]


def test_a_timestamp_that_spark_cannot_bring_is_set_aside_and_the_mirror_goes_on(field: Field, tmp_path: Path) -> None:
    """Nanoseconds where milliseconds belong; before and behind it, and in the other partition, all is copied."""
    topic, name, nanos = field.name("nanos"), field.name("goes-on"), YEAR_2025 * 1_000_000
    create_topic(field.source, topic, 2, message_timestamp_after_max_ms=str(2**63 - 1))
    numbers = [b"%d" % n for n in range(6)]
    produce(field.source, topic, [Record(b"k", value, (), YEAR_2025, n % 2) for n, value in enumerate(numbers)])
    bad = [RawRecord(b"k", b"nanos", nanos, ((b"own", b"1"),)), RawRecord(b"k", b"behind", YEAR_2025)]
    produce_raw(field.source, topic, bad)
    mirror = field.mirror("goes-on", "nanos", topics={"settings": {"message.timestamp.after.max.ms": 3_600_000}})
    run = field.host.catch_up(field.source, field.destination, mirror)[name]
    assert (run["state"], run["restarts"]) == ("done", 0), run
    arrived = [(r.partition, r.value) for r in read_all(field.destination, topic)]
    assert arrived == [*((0, value) for value in (b"0", b"2", b"4", b"behind")), *((1, b) for b in numbers[1::2])]
    (record,) = read_all(field.destination, f"{name}.quarantine")
    assert (record.key, record.value, record.headers[0]) == (b"k", b"nanos", ("own", b"1"))
    said = aside(record)
    assert (said["topic"], said["partition"], said["offset"], said["timestamp"]) == (topic, "0", "3", str(nanos))
    assert "beyond what Spark can bring" in said["reason"]
    only = ("-c", field.configuration(tmp_path, {**mirror, "where": "value is not null"}), "--mirror", name)
    code, replay = ran(tmp_path, "quarantine", "replay", *only)
    assert (code, "1 × neither `where` nor `provenance` has judged it" in replay.output) == (1, True), replay.messages


def test_a_compacted_topic_gets_no_record_without_a_key_and_its_mirror_goes_on(field: Field, tmp_path: Path) -> None:
    topic, name = field.name("keyless"), field.name("compacts")
    create_topic(field.source, topic, 1)
    create_topic(field.destination, topic, 1, cleanup_policy="compact")
    produce(field.source, topic, [Record(key, b"v", (), YEAR_2025) for key in (b"a", None, b"b")])
    mirror = field.mirror("compacts", "keyless")
    run = field.host.catch_up(field.source, field.destination, mirror)[name]
    assert (run["state"], run["restarts"]) == ("done", 0), run
    for _ in range(2):
        assert [r.key for r in read_all(field.destination, topic)] == [b"a", b"b"]
        (record,) = list(read_all(field.destination, f"{name}.quarantine"))[-1:]
        assert (record.key, record.value, aside(record)["offset"]) == (None, b"v", "1")
        only = ("-c", field.configuration(tmp_path, mirror), "--mirror", name)
        code, replay = ran(tmp_path, "quarantine", "replay", *only)
        says = f"1 × topic {topic} is compacted and takes no record without a key"
        assert (code, says in replay.output) == (1, True), replay.messages


def _are_counted(field: Field, directory: Path, mirror: dict[str, Any], mux: dict[str, Any]) -> None:
    file = field.configuration(directory, mirror, mux, field.mirror("never-run", to="{topic}.never"))
    code, listed = ran(directory, "quarantine", "list", "-c", file, "--format", "json")
    counts = [(each["name"], each["records"]) for each in listed.answer()["mirrors"]]
    expected = [(mirror["name"], len(KINDS) + 1), (mux["name"], 1), (field.name("never-run"), 0)]
    assert (code, counts) == (0, expected), listed.messages


def _replayed_by_a_mux(field: Field, directory: Path, mux: dict[str, Any]) -> None:
    only = ("-c", field.configuration(directory, {**mux, "zero_timestamps": "as_one"}), "--mirror", mux["name"])
    code, replay = ran(directory, "quarantine", "replay", *only)
    assert (code, "1 records moved on, 0 set aside again" in replay.output) == (0, True), replay.messages
    (record,) = read_all(field.destination, f"mux-replication_{field.mark}")
    assert (record.value, record.headers[0]) == (b"zero", ("MUX_SOURCE_TOPIC", field.name("gone").encode()))
    assert dict(record.headers)["MUX_SOURCE_TIMESTAMP"] == b"0", "the time that it had"


def _set_aside_as_they_came(field: Field, name: str) -> None:
    import re

    all_ = read_all(field.destination, f"{name}.quarantine")
    found = {int(aside(r)["offset"]): r for r in all_ if aside(r)["topic"] == field.name("bad")}
    assert sorted(found) == sorted(KINDS) and len(all_) == len(KINDS) + 1
    for offset, record in found.items():
        assert re.search(KINDS[offset], aside(record)["reason"]), aside(record)
        assert (record.key, aside(record)["partition"]) == (b"k", "0")
    assert [found[at].value for at in (1, 4, 6, 9, 11)] == [
        b"x",
        b"zero",
        b"old",
        GOOD[4][:1].replace(b"f", b"t") * (SMALL - OVERHEAD + 1),
        b"l" * 50_000,
    ]
    assert found[1].headers[:2] == (("caf\ufffd", b"1"), ("own", b"2"))
    assert [aside(found[at]).get("timestamp") for at in (4, 11)] == ["0", None]
    assert found[4].timestamp > YEAR_2025 == found[11].timestamp
    assert found[13].value is None and aside(found[13])["left_out"] == "value and headers"


def _replayed(field: Field, directory: Path, name: str) -> None:
    """One that may be copied now goes on; those that still cannot, and a stranger's, block no replay."""
    from barnabas.kafka.admin import Admin
    from barnabas.model import Connection

    there = field.destination
    produce(there, f"{name}.quarantine", [Record(b"?", b"a stranger's", (), YEAR_2025)])
    Admin(Connection("destination", there, {"bootstrap.servers": there})).change(
        field.name("bad"), {"max.message.bytes": "100000"}
    )
    mirror = field.mirror("aside", "bad", zero_timestamps="as_one")  # and `gone` is not in `from` any more
    only = ("-c", field.configuration(directory, mirror), "--mirror", name)
    for moved, left in ((3, 6), (0, 6)):
        code, replay = ran(directory, "quarantine", "replay", *only)
        says = f"{moved} records moved on, {left} set aside again"
        assert (code, says in replay.output) == (1, True), replay.messages
        assert replay.output.count("1 × header name") == 2, replay.output
        assert f"1 × topic {field.name('gone')} is not in `from`" in replay.output
        assert "1 × it does not state where it came from" in replay.output
        found = [(r.value, r.timestamp) for r in read_all(there, field.name("bad"))][len(GOOD) :]
        assert [(value[:4], at) for value, at in found if value] == [
            (b"zero", 1),
            (b"tttt", YEAR_2025),
            (b"llll", YEAR_2025),
        ]
        listed = ran(directory, "quarantine", "list", *only, "--format", "json")[1].answer()
        assert listed["records"] == left
        assert no_open_transaction(there, f"{name}.quarantine", field.name("bad"))
