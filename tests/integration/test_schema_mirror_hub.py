"""Promise: a mux carries bytes and a demux translates, with the ids looked up in the registry of the spoke."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

from tests.barnabas_runs import count_of
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.registries import avro
from tests.replicator_host import Host
from tests.schema_mirrors import Lands, hosted, id_of, rest_of, translated, value_of

pytest_plugins = ["tests.hosted", "tests.schema_lands"]

RECORDS = 200
PARTITIONS = 2


@pytest.fixture
def orders(lands: Lands) -> tuple[str, list[Record]]:
    """A topic of the spoke, written by Confluent's serializer with the ids of the spoke's registry."""
    topic = lands.topic("orders")
    serializer = AvroSerializer(lands.clients()[0], avro(f"Order_{lands.mark}", "number").text)
    values = [serializer({"number": number}, value_of(topic)) for number in range(RECORDS)]
    records = [Record(b"k", v, (("own", b"1"),), 1_700_000_000_000 + n, n % PARTITIONS) for n, v in enumerate(values)]
    create_topic(lands.source.bootstrap, topic, PARTITIONS)
    produce(lands.source.bootstrap, topic, records)
    return topic, records


def through_the_hub(lands: Lands, file: Path, topic: str) -> Path:
    """The first of the two lands is a spoke, the second is the hub."""
    spokes: dict[str, Any] = {
        "hub": "destination",
        "from": topic,
        "demux": {"schemas": {"mode": "ids"}},
        "members": [{"cluster": "source", "identifier": lands.mark}],
    }
    return lands.configuration(file, [], groups=[], spokes=spokes)


def test_a_demux_gives_the_hubs_consumers_the_schemas_that_the_spokes_producers_meant(
    lands: Lands, host: Host, orders: tuple[str, list[Record]], tmp_path: Path
) -> None:
    topic, records = orders
    there = lands.destination.bootstrap
    other = lands.clients()[1].get_schema(id_of(records[0].value))
    assert "Ballast" in (other.schema_str or ""), "the hub knows the spoke's id, as another schema"
    run = hosted(host, through_the_hub(lands, tmp_path / "c.yaml", topic))
    wait_until(lambda: run.ended or count_of(there, topic) >= RECORDS, 240, "the records at the hub")
    ended = run.stop()
    assert {mirror["state"] for mirror in ended.values()} == {"stopped"}, ended
    copy = read_all(there, topic)
    ids = translated(read_all(lands.source.bootstrap, topic), copy)
    assert len(ids) == 1 and not set(ids) & set(ids.values())
    read = AvroDeserializer(lands.clients()[1])
    written = {rest_of(record.value): number for number, record in enumerate(records)}
    assert all(read(r.value, value_of(topic)) == {"number": written[rest_of(r.value)]} for r in copy)
    (version,) = lands.registries.destination.history(f"{topic}-value")
    assert version.id == id_of(copy[0].value)
