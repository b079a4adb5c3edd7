"""A broker that dies and comes back, at either end and under load: the mirror recovers by itself, nothing is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, end_of, no_open_transaction
from tests.flow import flowing
from tests.kafka_io import create_topic
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]

TOPIC = "orders"


@pytest.fixture
def mortal(lab_directory: Path) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Two clusters of this test's own: others must not see them die."""
    with (
        KafkaCluster(lab_directory, "mortal-source", heap_megabytes=384) as source,
        KafkaCluster(lab_directory, "mortal-destination", heap_megabytes=384) as destination,
    ):
        yield source, destination


def test_a_broker_killed_and_restarted_at_either_end_under_load_is_survived_without_help(
    mortal: tuple[KafkaCluster, KafkaCluster], host: Host
) -> None:
    source, destination = mortal
    create_topic(source.bootstrap, TOPIC, partitions=2)
    mirror = {"name": TOPIC, "from": TOPIC}

    def moved(before: int, what: str) -> None:
        def more() -> bool:
            assert not run.ended, run.wait()
            return end_of(destination.bootstrap, TOPIC) > before + 2000

        run.wait_until(more, 300, f"records to flow {what}")

    with flowing(source.bootstrap, TOPIC, 2):
        run = host.start(source.bootstrap, destination.bootstrap, [mirror])
        moved(0, "at first")
        for name, cluster in (("destination", destination), ("source", source)):
            before = end_of(destination.bootstrap, TOPIC)
            cluster.kill_broker(0)
            cluster.start_broker(0)
            moved(before, f"again after the {name}'s broker was killed")
    ended = run.stop()[TOPIC]
    assert ended["state"] == "stopped"
    assert ended["restarts"] >= 1, "the killed broker went unnoticed: it was not killed under load"
    assert host.catch_up(source.bootstrap, destination.bootstrap, mirror)[TOPIC]["state"] == "done"
    assert copied(source.bootstrap, destination.bootstrap, TOPIC) > 6000
    assert no_open_transaction(destination.bootstrap, TOPIC, f"_barnabas.{TOPIC}")
