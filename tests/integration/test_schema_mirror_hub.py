"""Promise: a mux carries bytes and a demux translates, with the ids looked up in the registry of the spoke."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

from barnabas.schemas.schema import Schema
from barnabas.schemas.wire import prefixed
from tests.barnabas_runs import count_of, ran
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.registries import avro
from tests.replicator_host import Host
from tests.schema_mirrors import Lands, hosted, id_of, rest_of, translated, value_of

pytest_plugins = ["tests.hosted", "tests.schema_lands"]

RECORDS = 200
PARTITIONS = 2
MOMENT = 1_700_000_000_000
OWN = ("own", b"1")


@dataclass(frozen=True)
class Orders:
    """A topic of the spoke, written by Confluent's serializer; its last record has the id of a schema yet to come."""

    topic: str
    records: list[Record]
    later: Schema

    @property
    def odd(self) -> Record:
        return self.records[-1]


@pytest.fixture
def orders(lands: Lands) -> Orders:
    topic = lands.topic("orders")
    schema, later = (avro(f"Order_{lands.mark}", *names) for names in (("number",), ("number", "added")))
    serializer = AvroSerializer(lands.clients()[0], schema.text)
    values = [serializer({"number": number}, value_of(topic)) for number in range(RECORDS)]
    values.append(prefixed(id_of(values[0]) + 1, b"\x02\x04"))  # ids are given out one by one
    records = [Record(b"k", value, (OWN,), MOMENT + n, n % PARTITIONS) for n, value in enumerate(values)]
    create_topic(lands.source.bootstrap, topic, PARTITIONS)
    produce(lands.source.bootstrap, topic, records)
    return Orders(topic, records, later)


def through_the_hub(lands: Lands, file: Path, topic: str) -> Path:
    """The first of the two lands is a spoke, the second is the hub."""
    spokes: dict[str, Any] = {
        "hub": "destination",
        "from": topic,
        "demux": {"schemas": {"mode": "ids"}, "on_bad_schema": "quarantine"},
        "members": [{"cluster": "source", "identifier": lands.mark}],
    }
    return lands.configuration(file, [], groups=[], spokes=spokes)


def test_a_demux_gives_the_hubs_consumers_the_schemas_that_the_spokes_producers_meant(
    lands: Lands, host: Host, orders: Orders, tmp_path: Path
) -> None:
    topic, there = orders.topic, lands.destination.bootstrap
    other = lands.clients()[1].get_schema(id_of(orders.records[0].value))
    assert "Ballast" in (other.schema_str or ""), "the hub knows the spoke's id, as another schema"
    file = through_the_hub(lands, tmp_path / "c.yaml", topic)
    demux = f"demux_{lands.mark}"
    _copied(host, file, lambda: count_of(there, topic) == RECORDS and count_of(there, f"{demux}.quarantine") == 1)
    copy = read_all(there, topic)
    here = [record for record in read_all(lands.source.bootstrap, topic) if record.value != orders.odd.value]
    ids = translated(here, copy)
    assert len(ids) == 1 and not set(ids) & set(ids.values())
    read = AvroDeserializer(lands.clients()[1])
    written = {rest_of(record.value): number for number, record in enumerate(orders.records[:-1])}
    assert all(read(r.value, value_of(topic)) == {"number": written[rest_of(r.value)]} for r in copy)
    (version,) = lands.registries.destination.history(f"{topic}-value")
    assert version.id == id_of(copy[0].value)
    _set_aside_as_it_came(lands, orders, f"{demux}.quarantine")

    assert lands.registries.source.register(f"{topic}-value", orders.later) == id_of(orders.odd.value)
    code, replay = ran(tmp_path, "quarantine", "replay", "-c", file, "--mirror", demux)
    assert (code, "1 records put back" in replay.output) == (0, True), replay.messages
    _copied(host, file, lambda: count_of(there, topic) == RECORDS + 1)
    (moved,) = [record for record in read_all(there, topic) if rest_of(record.value) == rest_of(orders.odd.value)]
    assert read(moved.value, value_of(topic)) == {"number": 1, "added": 2}
    assert moved._replace(value=None, offset=-1) == orders.odd._replace(value=None)
    produce(there, f"{demux}.quarantine", [Record(b"?", b"a stranger's", (), 1)])
    code, replay = ran(tmp_path, "quarantine", "replay", "-c", file, "--mirror", demux)
    assert (code, "0 records put back to be tried by the next run, 1 set aside again" in replay.output) == (1, True)
    assert "1 × it does not state where it came from" in replay.output


def _copied(host: Host, file: Path, arrived: Callable[[], bool]) -> None:
    run = hosted(host, file)
    wait_until(lambda: run.ended or arrived(), 240, "the records at the hub")
    ended = run.stop()
    assert {mirror["state"] for mirror in ended.values()} == {"stopped"}, ended


def _set_aside_as_it_came(lands: Lands, orders: Orders, quarantine: str) -> None:
    """It is the record of the intermediate topic, byte for byte, and what the quarantine says of it."""
    (aside,) = read_all(lands.destination.bootstrap, quarantine)
    carried = read_all(lands.destination.bootstrap, f"mux-replication_{lands.mark}")
    (came,) = [record for record in carried if record.value == orders.odd.value]
    assert (aside.key, aside.value, aside.timestamp) == (came.key, came.value, came.timestamp)
    assert aside.headers[: len(came.headers)] == came.headers
    assert came.headers[:2] == (OWN, ("MUX_SOURCE_TOPIC", orders.topic.encode()))
    assert ("barnabas.quarantine.offset", b"%d" % came.offset) in aside.headers
