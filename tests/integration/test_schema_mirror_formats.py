"""Promise: what Confluent's serializers wrote at the source its deserializers read at the destination.

Avro, JSON Schema and Protobuf, keys and values, five versions of each that come while one mirror runs. The topics and
their subjects have other names at the destination, and no schema has the same id at both ends.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from barnabas.schemas.schema import Reference
from barnabas.schemas.schema import Schema as OwnSchema
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.registries import avro, versions
from tests.replicator_host import Host
from tests.schema_mirrors import (
    Lands,
    canonical,
    hosted,
    id_of,
    key_of,
    rest_of,
    texts,
    translated,
    value_of,
    written,
)

pytest_plugins = ["tests.hosted", "tests.schema_lands"]

VERSIONS = range(1, 6)
SECOND_REFERENCE = 3  # from this version on schemas refer to the second version of what they refer to
RECORDS = 150  # of each version
PARTITIONS = 3
PATIENCE_SECONDS = 240
MESSAGES = ("shop.Note", "shop.Order", "shop.Order.Line")
INDEXES = {"shop.Note": b"\x00", "shop.Order": b"\x02\x02", "shop.Order.Line": b"\x04\x02\x00"}


@dataclass
class Copied:
    """What was written, and both topics as they were at the end."""

    topic: str
    objects: list[Any] = field(default_factory=list)
    here: list[Record] = field(default_factory=list)
    there: list[Record] = field(default_factory=list)

    def add(self, at: int, key: bytes | None, value: bytes | None, written_as: Any) -> None:
        self.objects.append(written_as)
        number = len(self.objects)
        headers = (("number", b"%d" % number),)
        self.here.append(Record(key, value, headers, 1_700_000_000_000 + number, at % PARTITIONS))

    def object_of(self, record: Record) -> Any:
        """What a record was made of."""
        return self.objects[int(record.headers[0][1] or b"") - 1]


def protobuf_classes(lands: Lands, version: int) -> dict[str, type[Message]]:
    """Messages of two files, as protoc would make them of the version's .proto files."""
    pool = descriptor_pool.DescriptorPool()
    money = FileDescriptorProto(name=money_file(lands), package="shop", syntax="proto3")
    amounts = ("cents", "rounding")[: 1 if version < SECOND_REFERENCE else 2]
    money.message_type.add(name="Money").field.extend(_int(name, at) for at, name in enumerate(amounts, 1))
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3", dependency=[money.name])
    file.message_type.add(name="Note").field.append(_int("number", 1))
    order = file.message_type.add(name="Order")
    order.field.extend(_int(f"f{at}", at) for at in range(1, version + 1))
    kind, optional = FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.LABEL_OPTIONAL
    order.field.add(name="total", number=100, type=kind, label=optional, type_name=".shop.Money")
    order.nested_type.add(name="Line").field.append(_int("number", 1))
    pool.Add(money)
    pool.Add(file)
    names = (*MESSAGES, "shop.Money")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


def _int(name: str, number: int) -> FieldDescriptorProto:
    kind, optional = FieldDescriptorProto.TYPE_INT64, FieldDescriptorProto.LABEL_OPTIONAL
    return FieldDescriptorProto(name=name, number=number, type=kind, label=optional)


def orders(lands: Lands) -> list[OwnSchema]:
    """The versions of an order; no other test has the same schema."""
    return versions(f"Order_{lands.mark}", len(VERSIONS))


def money_file(lands: Lands) -> str:
    return f"shop/money-{lands.mark}.proto"


def address_subject(lands: Lands) -> str:
    return f"address-{lands.mark}"


def avro_records(lands: Lands, copied: Copied, version: int) -> None:
    """Orders with keys of a schema of their own, and a tombstone now and then."""
    client, _ = lands.clients()
    keys = AvroSerializer(client, avro(f"Key_{lands.mark}", "id").text)
    values = AvroSerializer(client, orders(lands)[version - 1].text)
    for number in range(RECORDS):
        key = keys({"id": number}, key_of(copied.topic))
        order = None if number % 50 == 49 else {f"f{at}": number + at for at in range(version)}
        copied.add(number, key, values(order, value_of(copied.topic)), order)


def json_records(lands: Lands, copied: Copied, version: int) -> None:
    client, _ = lands.clients()
    referred = 1 if version < SECOND_REFERENCE else 2
    if version in (1, SECOND_REFERENCE):
        properties = {f"line{at}": {"type": "string"} for at in range(referred)}
        address = json.dumps({"title": f"Address_{lands.mark}", "type": "object", "properties": properties})
        client.register_schema(address_subject(lands), Schema(address, "JSON"))
    numbers = {f"f{at}": {"type": "integer"} for at in range(version)}
    text = {
        "title": f"Customer_{lands.mark}",
        "type": "object",
        "properties": {"home": {"$ref": "address.json"}, **numbers},
    }
    reference = SchemaReference("address.json", address_subject(lands), referred)
    serializer = JSONSerializer(Schema(json.dumps(text), "JSON", [reference]), client)
    for number in range(RECORDS):
        customer = {"home": {"line0": f"{number} Rue Barnabas"}, f"f{version - 1}": number}
        copied.add(number, b"%d" % number, serializer(customer, value_of(copied.topic)), customer)


def protobuf_records(lands: Lands, copied: Copied, version: int) -> None:
    client, _ = lands.clients()
    classes = protobuf_classes(lands, version)
    serializers = {name: ProtobufSerializer(classes[name], client) for name in MESSAGES}
    for number in range(RECORDS):
        name = MESSAGES[number % 3]
        message: Any = classes[name]()
        if name == "shop.Order":
            setattr(message, f"f{version}", number + 1)
            message.total.cents = number
        else:
            message.number = number + 1
        copied.add(number, b"%d" % number, serializers[name](message, value_of(copied.topic)), (version, message))


FEEDS: dict[str, Callable[[Lands, Copied, int], None]] = {
    "orders": avro_records,
    "customers": json_records,
    "messages": protobuf_records,
}


@pytest.fixture(scope="module")
def evolved(lands: Lands, host: Host, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Copied]:
    """Three mirrors that ran while five versions of each schema came, and what they copied."""
    made = {stem: Copied(lands.topic(stem)) for stem in FEEDS}
    mirrors = [
        {
            "name": f"m-{copied.topic}",
            "from": copied.topic,
            "to": "{topic}.copy",
            "schemas": {"key": "registry" if stem == "orders" else "none"},
        }
        for stem, copied in made.items()
    ]
    for copied in made.values():
        for cluster, name in ((lands.source, copied.topic), (lands.destination, f"{copied.topic}.copy")):
            create_topic(cluster.bootstrap, name, PARTITIONS)
    run = hosted(host, lands.configuration(tmp_path_factory.mktemp("evolved") / "c.yaml", mirrors))
    for version in VERSIONS:
        before = {stem: written(lands.destination.bootstrap, f"{each.topic}.copy") for stem, each in made.items()}
        for stem, feed in FEEDS.items():
            fresh = len(made[stem].here)
            feed(lands, made[stem], version)
            produce(lands.source.bootstrap, made[stem].topic, made[stem].here[fresh:])
        for stem, copied in made.items():
            beyond = before[stem] + RECORDS
            if not _arrived(lands, copied, beyond):
                raise AssertionError(f"version {version} of {copied.topic} did not arrive: {run.stop()}")
    ended = run.stop()
    assert {(mirror["state"], mirror["lag"]) for mirror in ended.values()} == {("stopped", 0)}, ended
    for copied in made.values():
        copied.here = read_all(lands.source.bootstrap, copied.topic)
        copied.there = read_all(lands.destination.bootstrap, f"{copied.topic}.copy")
    return made


def _arrived(lands: Lands, copied: Copied, beyond: int) -> bool:
    """Whether so many offsets of the copy are given out before the patience of this test ends."""
    try:
        place = lands.destination.bootstrap, f"{copied.topic}.copy"
        wait_until(lambda: written(*place) >= beyond, PATIENCE_SECONDS, "records")
    except AssertionError:
        return False
    return True


def test_the_real_avro_deserializer_reads_every_order_and_only_the_ids_have_changed(
    lands: Lands, evolved: dict[str, Copied]
) -> None:
    copied = evolved["orders"]
    keys, values = AvroDeserializer(lands.clients()[1]), AvroDeserializer(lands.clients()[1])
    assert len(copied.here) == len(copied.there) == RECORDS * len(VERSIONS)
    topic, differing = f"{copied.topic}.copy", 0
    for here, there in zip(copied.here, copied.there, strict=True):
        assert (there.headers, there.timestamp, there.partition) == (here.headers, here.timestamp, here.partition)
        assert rest_of(there.key) == rest_of(here.key) and id_of(there.key) != id_of(here.key)
        assert keys(there.key, key_of(topic)) == keys_of(here)
        assert values(there.value, value_of(topic)) == copied.object_of(there)
        if here.value is None:
            assert there.value is None, "a tombstone stays one"
            continue
        assert rest_of(there.value) == rest_of(here.value)
        differing += id_of(there.value) != id_of(here.value)
    assert differing == sum(record.value is not None for record in copied.here) == len(VERSIONS) * (RECORDS - 3)


def keys_of(record: Record) -> dict[str, int]:
    """The key that was written with a record: its number within its version."""
    return {"id": (int(record.headers[0][1] or b"") - 1) % RECORDS}


def test_the_real_json_deserializer_reads_every_customer_by_the_destinations_references(
    lands: Lands, evolved: dict[str, Copied]
) -> None:
    copied = evolved["customers"]
    values = JSONDeserializer(None, schema_registry_client=lands.clients()[1])
    ids = translated(copied.here, copied.there)
    assert len(ids) == len(VERSIONS) and not set(ids) & set(ids.values())
    for there in copied.there:
        assert values(there.value, value_of(f"{copied.topic}.copy")) == copied.object_of(there)
    assert len(lands.registries.destination.history(address_subject(lands))) == 2


def test_the_real_protobuf_deserializer_reads_every_message_and_message_indexes_stay(
    lands: Lands, evolved: dict[str, Copied]
) -> None:
    copied = evolved["messages"]
    ids = translated(copied.here, copied.there)
    assert len(ids) == len(VERSIONS) and not set(ids) & set(ids.values())
    destination = lands.clients()[1]
    readers: dict[type[Message], Any] = {}
    seen = set()
    for there in copied.there:
        version, message = copied.object_of(there)
        kind = type(message)
        if kind not in readers:
            readers[kind] = ProtobufDeserializer(kind, schema_registry_client=destination)
        assert readers[kind](there.value, value_of(f"{copied.topic}.copy")) == message
        name = message.DESCRIPTOR.full_name
        assert rest_of(there.value) == INDEXES[name] + message.SerializeToString()
        seen.add((version, name))
    assert len(seen) == len(VERSIONS) * len(MESSAGES)


@pytest.mark.parametrize("stem", FEEDS)
def test_the_renamed_subject_has_the_five_versions_in_order_with_references_to_the_destinations(
    lands: Lands, evolved: dict[str, Copied], stem: str
) -> None:
    topic = evolved[stem].topic
    here = lands.registries.source.history(f"{topic}-value")
    there = lands.registries.destination.history(f"{topic}.copy-value")
    assert [version.number for version in there] == list(VERSIONS)
    assert texts(there) == texts(here)
    assert lands.registries.destination.history(f"{topic}-value") == ()
    referred = {"customers": ("address.json", address_subject(lands)), "messages": (money_file(lands),) * 2}
    if stem in referred:
        name, subject = referred[stem]
        expected = [(Reference(name, subject, 1 if n < SECOND_REFERENCE else 2),) for n in VERSIONS]
        assert [version.schema.references for version in there] == expected
        assert texts(lands.registries.destination.history(subject)) == texts(lands.registries.source.history(subject))
    else:
        assert texts(there) == canonical(orders(lands))
        assert len(lands.registries.destination.history(f"{topic}.copy-key")) == 1
