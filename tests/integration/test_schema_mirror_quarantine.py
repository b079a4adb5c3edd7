"""Promise: what cannot be translated is set aside exactly once, says where from and why, and moves on when mended."""

import re
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

from barnabas.schemas.schema import Schema
from barnabas.schemas.wire import prefixed
from tests.barnabas_runs import Run, no_open_transaction, ran
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.registries import avro
from tests.schema_mirrors import Lands, id_of, rest_of, value_of, written

pytest_plugins = ["tests.schema_lands"]

RECORDS = 20_000
PARTITIONS = 2
EVERY = 100  # one record of so many is poisoned
REASONS = {
    "unknown": r"value: schema id \d+ is unknown to the registry of \"source\"",
    "short": "the value is too short to hold a schema id",
    "magic": "the value does not start with the magic byte 0 of a schema id",
}
KINDS = tuple(REASONS)


@dataclass(frozen=True)
class Poisoned:
    """A topic of good records and bad ones; `bad` has the kind of each bad record by its key."""

    lands: Lands
    topic: str
    records: list[Record]
    bad: dict[bytes, str]
    missing: int
    later: Schema

    def keys(self, *kinds: str) -> set[bytes]:
        return {key for key, kind in self.bad.items() if kind in kinds}

    def mend(self) -> None:
        """The schema whose id the records have already is registered at last."""
        assert self.lands.registries.source.register(f"{self.topic}-value", self.later) == self.missing


@pytest.fixture(scope="module")
def poisoned(lands: Lands) -> Poisoned:
    topic = lands.topic("orders")
    schema, later = (avro(f"Order_{lands.mark}", *names) for names in (("number",), ("number", "added")))
    serializer = AvroSerializer(lands.clients()[0], schema.text)
    first = serializer({"number": 0}, value_of(topic))
    missing = id_of(first) + 1  # ids are given out one by one: the next schema to come
    bodies = {"unknown": prefixed(missing, b"\x02\x04"), "short": b"\x00\x01", "magic": b'{"number": 1}'}
    records: list[Record] = []
    bad: dict[bytes, str] = {}
    for number in range(RECORDS):
        key = b"%d" % number
        value = serializer({"number": number}, value_of(topic))
        if number % EVERY == EVERY // 2:
            bad[key] = KINDS[(number // EVERY) % len(KINDS)]
            value = bodies[bad[key]]
        headers = (("trace", key),) if number % 10 == 0 else ()
        records.append(Record(key, value, headers, 1_700_000_000_000 + number, number % 7 % PARTITIONS))
    create_topic(lands.source.bootstrap, topic, PARTITIONS)
    produce(lands.source.bootstrap, topic, records)
    return Poisoned(lands, topic, records, bad, missing, later)


def test_bad_records_are_set_aside_exactly_once_also_after_sigkill_and_replay_moves_the_mended_on(
    poisoned: Poisoned, tmp_path: Path
) -> None:
    lands, topic, there = poisoned.lands, poisoned.topic, poisoned.lands.destination.bootstrap
    names = {policy: f"{policy}-{topic}" for policy in ("quarantine", "stop")}
    mirrors = [_mirror(name, topic, policy) for policy, name in names.items()]
    file = lands.configuration(tmp_path / "c.yaml", mirrors)
    only = ("-c", file, "--mirror", names["quarantine"])
    good, aside = f"{topic}.quarantine-bad", f"{names['quarantine']}.quarantine"
    create_topic(there, good, PARTITIONS)

    with Run(tmp_path, "run", *only) as run:
        wait_until(lambda: written(there, good) > RECORDS // 8 or run.ended, 300, "the copying to be on its way")
        run.signal(signal.SIGKILL, group=True)
        run.wait()
    arrived = len(read_all(there, good))
    assert 0 < arrived < RECORDS - len(poisoned.bad), f"not killed in the middle: {run.messages}"

    code, second = ran(tmp_path, "run", "-c", file, "--until-caught-up")
    assert code == 1, "one of the two mirrors stops at a bad record"
    _names_the_first_bad_record(poisoned, second.messages, names["stop"])
    assert {r.key for r in read_all(there, f"{topic}.stop-bad")}.isdisjoint(poisoned.bad), "nothing bad has passed"

    _all_good_arrived(poisoned, good, set())
    _set_aside_once(poisoned, aside)
    assert no_open_transaction(there, good, aside)
    _is_listed(poisoned, tmp_path, only)

    poisoned.mend()
    mended = len(poisoned.keys("unknown"))
    left = len(poisoned.bad) - mended
    code, replay = ran(tmp_path, "quarantine", "replay", *only)
    assert f"{mended:,} records moved on, {left:,} set aside again" in replay.output, replay.messages
    assert code == 1, "some are still bad"
    _all_good_arrived(poisoned, good, poisoned.keys("unknown"))
    code, replay = ran(tmp_path, "quarantine", "replay", *only)
    assert (code, f"0 records moved on, {left:,} set aside again" in replay.output) == (1, True), replay.messages
    _all_good_arrived(poisoned, good, poisoned.keys("unknown"))
    listed = ran(tmp_path, "quarantine", "list", *only, "--format", "json")[1].answer()
    assert listed["records"] == left and len(listed["shown"]) == 100
    assert not any(re.search(REASONS["unknown"], record["reason"]) for record in listed["shown"])
    assert no_open_transaction(there, good, aside)


def _mirror(name: str, topic: str, policy: str) -> dict[str, object]:
    rules = {"schemas": {}, "on_bad_schema": policy, "batch": {"records": 800}}
    return {"name": name, "from": topic, "to": f"{{topic}}.{policy}-bad", **rules}


def _names_the_first_bad_record(poisoned: Poisoned, messages: str, mirror: str) -> None:
    found = re.search(rf'mirror "{mirror}": {poisoned.topic}-(\d) offset (\d+): (.*?); set `on_bad_schema', messages)
    assert found is not None, messages
    partition, offset = int(found[1]), int(found[2])
    [record] = [r for r in _at_source(poisoned) if (r.partition, r.offset) == (partition, offset)]
    assert record.key is not None
    assert re.search(REASONS[poisoned.bad[record.key]], found[3])


def _at_source(poisoned: Poisoned) -> list[Record]:
    return read_all(poisoned.lands.source.bootstrap, poisoned.topic)


def _all_good_arrived(poisoned: Poisoned, topic: str, replayed: set[bytes]) -> None:
    """Every good record once, in order; then the replayed ones once, each in its partition and as it was."""
    there = read_all(poisoned.lands.destination.bootstrap, topic)
    here = {record.key: record for record in poisoned.records}
    read = AvroDeserializer(poisoned.lands.clients()[1])
    for partition in range(PARTITIONS):
        own = [record for record in there if record.partition == partition]
        straight = [record.key for record in own if record.key not in replayed]
        assert straight == [r.key for r in poisoned.records if r.partition == partition and r.key not in poisoned.bad]
    for record in there:
        original = here[record.key]
        assert record._replace(value=None, offset=-1) == original._replace(value=None)
        assert rest_of(record.value) == rest_of(original.value) and id_of(record.value) != id_of(original.value)
    assert Counter(record.key for record in there if record.key in poisoned.bad) == Counter(replayed)
    for record in there[:: len(there) // 200]:
        assert read(record.value, value_of(topic)) is not None
    for record in there:
        if record.key in replayed:
            assert read(record.value, value_of(topic)) == {"number": 1, "added": 2}


def _set_aside_once(poisoned: Poisoned, topic: str) -> None:
    there = read_all(poisoned.lands.destination.bootstrap, topic)
    assert Counter(record.key for record in there) == Counter(list(poisoned.bad))
    here = {record.key: record for record in _at_source(poisoned)}
    for record in there:
        assert record.key is not None
        original = here[record.key]
        assert (record.value, record.timestamp) == (original.value, original.timestamp), "byte for byte"
        count = len(original.headers)
        assert record.headers[:count] == original.headers
        said = {name.removeprefix("barnabas.quarantine."): value or b"" for name, value in record.headers[count:]}
        place = poisoned.topic, b"%d" % original.partition, b"%d" % original.offset
        assert (said["topic"].decode(), said["partition"], said["offset"]) == place
        assert re.search(REASONS[poisoned.bad[record.key]], said["reason"].decode())


def _is_listed(poisoned: Poisoned, directory: Path, only: tuple[Any, ...]) -> None:
    code, listing = ran(directory, "quarantine", "list", *only, "--format", "json", "--most", "1000")
    shown = listing.answer()["shown"]
    assert (code, listing.answer()["records"]) == (0, len(poisoned.bad))
    here = {record.key: record for record in _at_source(poisoned)}
    expected = {(poisoned.topic, here[key].partition, here[key].offset): kind for key, kind in poisoned.bad.items()}
    assert len(shown) == len(expected)
    for record in shown:
        kind = expected.pop((record["topic"], record["partition"], record["offset"]))
        assert re.search(REASONS[kind], record["reason"]), record
    words = ran(directory, "quarantine", "list", *only, "--most", "3")[1].output
    assert f"{len(poisoned.bad):,} records set aside" in words
    assert len(re.findall(rf"{poisoned.topic}-\d offset \d+: \S+", words)) == 3
