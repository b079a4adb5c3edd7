"""The fixture `lands`, for test files that name this module in `pytest_plugins`."""

import secrets
from collections.abc import Iterator

import pytest

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.registry import Registry
from tests.kafka_io import delete_topics
from tests.registries import Registries, avro, settings_of
from tests.schema_mirrors import MARGIN, Lands, fill_up


@pytest.fixture(scope="module")
def lands(
    source: KafkaCluster, destination: KafkaCluster, source_registry: Registry, destination_registry: Registry
) -> Iterator[Lands]:
    """The destination's ids are far beyond the source's, so that every id differs; topics are deleted at the end."""
    registries = Registries(settings_of(source_registry), settings_of(destination_registry))
    mark = secrets.token_hex(4)
    last = registries.source.register(f"first-{mark}", avro(f"First_{mark}", "a"))
    fill_up(registries, mark, last + MARGIN)
    yield Lands(source, destination, registries, (source_registry.url, destination_registry.url), mark)
    for cluster in (source, destination):
        existing = cluster.admin().list_topics(timeout=30).topics
        delete_topics(cluster.bootstrap, [topic for topic in existing if mark in topic])
