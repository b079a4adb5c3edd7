"""Mirrors between two clusters with registries, and the serializers that applications use, by Confluent."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.lab.cluster import KafkaCluster
from barnabas.schemas.schema import Schema
from barnabas.schemas.wire import PREFIX_BYTES, schema_id
from tests.barnabas_runs import QUICK
from tests.kafka_io import Record, ends, wait_until
from tests.registries import Registries, avro
from tests.replicator_host import Host, HostedRun

MARGIN = 100  # more schemas than a test file registers
# A new topic is known before its leader knows that it is the leader.
NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_numbers = itertools.count(1_000_000)  # apart from those the host itself gives

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Lands:
    """Both clusters with their registries; every topic and subject that is made here has `mark` in its name."""

    source: KafkaCluster
    destination: KafkaCluster
    registries: Registries
    urls: tuple[str, str]
    mark: str

    def topic(self, stem: str) -> str:
        return f"{stem}-{self.mark}"

    def configuration(
        self, file: Path, mirrors: Sequence[Settings], *, access: tuple[Settings, Settings] = ({}, {}), **rest: Any
    ) -> Path:
        """A configuration file; `access` is laid over the two `registry` blocks, `rest` is more of the document."""
        registries = [{"url": url, **given} for url, given in zip(self.urls, access, strict=True)]
        clusters = {
            "source": {"bootstrap": self.source.bootstrap, "registry": registries[0]},
            "destination": {"bootstrap": self.destination.bootstrap, "registry": registries[1]},
        }
        group = {"name": "tests", "source": "source", "destination": "destination", "mirrors": list(mirrors)}
        document = {"clusters": clusters, "groups": [group], "spark": QUICK, **rest}
        file.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
        return file

    def clients(self) -> tuple[SchemaRegistryClient, SchemaRegistryClient]:
        """Confluent's own clients of both registries."""
        return SchemaRegistryClient({"url": self.urls[0]}), SchemaRegistryClient({"url": self.urls[1]})


def fill_up(registries: Registries, mark: str, beyond: int) -> None:
    """Schemas of its own at the destination until its ids are beyond a number."""
    for number in itertools.count():
        if registries.destination.register(f"ballast-{mark}-{number}", avro(f"Ballast_{mark}_{number}", "a")) > beyond:
            return


def hosted(host: Host, file: Path, *, until_caught_up: bool = False) -> HostedRun:
    """A run of this configuration inside the host."""
    number = next(_numbers)
    host.order({"id": number, "configuration": str(file), "until_caught_up": until_caught_up})
    return HostedRun(host, number)


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, [])


def key_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.KEY, [])


def id_of(payload: bytes | None) -> int:
    """The schema id a payload must have."""
    number = schema_id(payload or b"")
    assert number is not None, f"no schema id in {payload!r}"
    return number


def rest_of(payload: bytes | None) -> bytes:
    """What follows the schema id."""
    return (payload or b"")[PREFIX_BYTES:]


def written(where: str, topic: str) -> int:
    """Offsets given out in a topic so far, committed records and markers."""
    found: list[int] = []

    def answered() -> bool:
        try:
            found.append(sum(end for _, end in ends(where, topic).values()))
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET:
                raise
        return bool(found)

    wait_until(answered, 30, f"the ends of {topic}")
    return found[0]


def translated(here: Sequence[Record], there: Sequence[Record]) -> dict[int, int]:
    """Source id → destination id of the values, after the records were found equal in everything else."""
    assert len(here) == len(there), f"{len(here)} records at the source, {len(there)} at the destination"
    ids: dict[int, int] = {}
    for original, copy in zip(here, there, strict=True):
        assert copy._replace(value=None, offset=0) == original._replace(value=None, offset=0)
        assert rest_of(copy.value) == rest_of(original.value)
        assert ids.setdefault(id_of(original.value), id_of(copy.value)) == id_of(copy.value)
    return ids


def texts(history: Sequence[Any]) -> list[str]:
    """The canonical texts of a subject's versions."""
    return [version.schema.canonical() for version in history]


def canonical(schemas: Sequence[Schema]) -> list[str]:
    return [schema.canonical() for schema in schemas]
