"""A broker that dies and comes back, at either end and under load, or has no room left on its disk: the mirror recovers
by itself, nothing is lost.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.kafka.admin import Admin
from barnabas.lab.cluster import KafkaCluster
from barnabas.ledger.state import LedgerState
from barnabas.ledger.topic import ledger_partition, read_state
from barnabas.model import Connection
from tests.barnabas_runs import copied, end_of, no_open_transaction
from tests.flow import flowing
from tests.kafka_io import create_topic, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]

TOPIC = "orders"


@pytest.fixture
def mortal(lab_directory: Path) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Two clusters of this test's own: others must not see them die. One takes small batches only, by its defaults."""
    with (
        KafkaCluster(lab_directory, "mortal-source", heap_megabytes=384) as source,
        KafkaCluster(
            lab_directory, "mortal-destination", heap_megabytes=384, properties={"message.max.bytes": "60000"}
        ) as destination,
    ):
        yield source, destination


def kill(cluster: KafkaCluster) -> None:
    cluster.kill_broker(0)


def leave_no_room(cluster: KafkaCluster) -> None:
    """The topic's longest log may not grow: a write fails in its middle, as on a full disk, and the broker gives up."""
    longest = max(log.stat().st_size for log in cluster.directory.glob(f"broker-0/{TOPIC}-*/*.log"))
    broker = cluster.pids[0]
    assert broker is not None
    resource.prlimit(broker, resource.RLIMIT_FSIZE, (longest, longest))
    wait_until(lambda: cluster.pids[0] is None, 60, "the broker to end for want of room")


def test_a_broker_that_dies_at_either_end_under_load_or_has_no_room_left_is_survived_without_help(
    mortal: tuple[KafkaCluster, KafkaCluster], host: Host
) -> None:
    source, destination = mortal
    create_topic(source.bootstrap, TOPIC, partitions=2)
    mirror = {"name": TOPIC, "from": TOPIC}

    def moved(before: int, what: str, by: int = 2000) -> None:
        def more() -> bool:
            assert not run.ended, run.wait()
            return end_of(destination.bootstrap, TOPIC) > before + by

        run.wait_until(more, 300, f"records to flow {what}")

    with flowing(source.bootstrap, TOPIC, 2):
        run = host.start(source.bootstrap, destination.bootstrap, [mirror])
        moved(0, "at first")
        for cluster, ends in ((destination, kill), (source, kill), (destination, leave_no_room)):
            before = end_of(destination.bootstrap, TOPIC)
            moved(before, f"right before {ends.__name__} of {cluster.name}, so that it ends under load", by=200)
            before = end_of(destination.bootstrap, TOPIC)
            ends(cluster)
            cluster.start_broker(0)
            moved(before, f"again after {ends.__name__} of {cluster.name}")
    ended = run.stop()[TOPIC]
    assert ended["state"] == "stopped"
    assert host.catch_up(source.bootstrap, destination.bootstrap, mirror)[TOPIC]["state"] == "done"
    assert copied(source.bootstrap, destination.bootstrap, TOPIC) > 6000
    _stopped_while_it_waits(source, destination, mirror, host)
    assert no_open_transaction(destination.bootstrap, TOPIC, f"_barnabas.{TOPIC}")


def _stopped_while_it_waits(
    source: KafkaCluster, destination: KafkaCluster, mirror: dict[str, str], host: Host
) -> None:
    """For a source that is gone: it does not count as running any more, so that positions may be set."""
    hasty = {**mirror, "consumer": {"default.api.timeout.ms": 3000, "request.timeout.ms": 2000}}
    run = host.start(source.bootstrap, destination.bootstrap, [hasty])
    run.wait_until(lambda: host.states(run)[TOPIC][0] == "copying", 120, "the mirror to run")
    kill(source)
    run.wait_until(lambda: host.states(run)[TOPIC][0] == "waiting", 120, "the mirror to wait for its source")
    assert ledger_of(destination).running()
    assert run.stop()[TOPIC]["state"] == "stopped"
    wait_until(lambda: not ledger_of(destination).running(), 10, "the sign of life to be struck out")


def ledger_of(cluster: KafkaCluster) -> LedgerState:
    connection = Connection(cluster.name, cluster.bootstrap, {"bootstrap.servers": cluster.bootstrap})
    ledger = f"_barnabas.{TOPIC}"
    own = ledger_partition(ledger)
    return read_state(connection, ledger, Admin(connection).high_watermarks([own])[own], committed=True)
