"""What a cluster says of a topic that is deleted between two questions: nothing, rather than half."""

import socket
import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from barnabas.errors import Refused, Unavailable
from barnabas.kafka.admin import Admin, _id_of
from barnabas.kafka.producer import TransactionalProducer, plain_producer
from barnabas.model import Connection, Partition, Properties

NOWHERE: Properties = {"bootstrap.servers": "127.0.0.1:9", "log_level": 0}


def answer(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class Client:
    """Still knows both topics; of one the settings are gone."""

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        partition = SimpleNamespace(replicas=[1])
        return {n: answer(SimpleNamespace(topic_id=n, partitions=[partition])) for n in ("kept", "deleted")}

    def describe_configs(self, resources: Any, **_: Any) -> dict[Any, Future[Any]]:
        gone = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        setting = {"retention.ms": SimpleNamespace(value="5", source=1)}
        return {r: answer(gone if r.name == "deleted" else setting) for r in resources}


def test_a_topic_whose_settings_are_gone_is_gone_and_not_without_settings() -> None:
    admin = Admin(Connection("c", "127.0.0.1:9", NOWHERE))
    admin._client = Client()  # type: ignore[assignment]
    found = admin.topics(["kept", "deleted"])
    assert {name: topic.settings for name, topic in found.items()} == {"kept": {"retention.ms": "5"}}


def test_a_file_that_is_being_replaced_is_waited_for() -> None:
    connection = Connection("c", "127.0.0.1:9", {**NOWHERE, "security.protocol": "SSL", "ssl.ca.location": "/no/ca"})
    for make in (lambda: plain_producer(connection), lambda: TransactionalProducer(connection, "id")):
        with pytest.raises(Unavailable, match="is a file being replaced"):
            make()


def test_brokers_without_topic_ids_are_too_old_and_named_so() -> None:
    admin = Admin(Connection("orange", "b0:9092", NOWHERE))
    with pytest.raises(
        Refused, match=r'"orange" \(b0:9092\): topic kept: it has no topic id, .* older than Kafka 2[.]8'
    ):
        described(admin, Uuid(0, 0))
    assert described(admin, Uuid(0, 1)) == str(Uuid(0, 1))


def test_the_ends_of_a_silent_clusters_logs_cost_no_more_time_than_was_given_for_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections, and never answers
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        admin = Admin(Connection("c", address, {**NOWHERE, "bootstrap.servers": address}))
        began = time.monotonic()
        assert admin.ends([Partition("orders", number) for number in range(8)], 1.0) == {}
        assert time.monotonic() - began < 2.0


def described(admin: Admin, topic_id: Uuid) -> str:
    return _id_of(topic_id, f"{admin.where}: topic kept")
