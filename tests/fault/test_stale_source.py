"""A source leader that was paused answers with the end it knew; no position moves and no mirror stops because of it."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.config.load import load
from barnabas.errors import Unavailable
from barnabas.kafka.producer import append
from barnabas.lab.cluster import KafkaCluster
from barnabas.ledger import records, topic
from barnabas.ledger.takeover import take_over
from barnabas.losses import Doubts
from barnabas.model import Followed, Offsets, Partition, Position
from barnabas.plan import Survey, found_losses, planned
from barnabas.survey import Surveyor
from tests.barnabas_runs import write_configuration
from tests.kafka_io import Record, create_topic, produce, wait_until
from tests.paused_broker import leader, unread, without

pytestmark = pytest.mark.slow
P0 = Partition("orders", 0)


@pytest.fixture
def trio(lab_directory: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(lab_directory, "trio", brokers=3, heap_megabytes=256) as cluster:
        yield cluster


def position_noted(surveyor: Surveyor, at: int, leader_epoch: int) -> None:
    """As a run leaves it that has copied up to there."""
    connection, ledger = surveyor.to_destination, surveyor.mirror.ledger_topic
    topic.prepared(surveyor.destination, ledger, 1)
    epoch = take_over(connection, ledger, run="before", source_id=surveyor.source.cluster_id())
    topic_id = surveyor.topics()["orders"].topic_id
    position = records.position_value(Position(at, topic_id, epoch.number))
    seen = records.followed_value(Followed(at, topic_id, leader_epoch, records.now()))
    append(connection, ledger, [(records.position_key(P0), position), (records.followed_key(P0), seen)])


def answer_of_a_paused_leader(cluster: KafkaCluster, surveyor: Surveyor) -> Offsets:
    """What the surveyor's client, which knows the old leader, is told while a new one has a hundred records more."""
    surveyor.source.offsets([P0])
    paused = leader(cluster, "orders")
    pid = cluster.pids[paused]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: leader(cluster, "orders", paused) not in (-1, paused), 60, "another leader")
        produce(without(cluster, paused), "orders", [Record(b"k", b"v", (), 1000)] * 100)
        answers: list[Offsets] = []
        asking = threading.Thread(target=lambda: answers.append(surveyor.source.offsets([P0])[P0]))
        before = unread(cluster.ports[paused])
        asking.start()
        wait_until(lambda: unread(cluster.ports[paused]) > before, 30, "the request to lie before the paused broker")
    finally:
        os.kill(pid, signal.SIGCONT)
    asking.join(60)
    wait_until(lambda: len(cluster.admin().list_topics(timeout=30).brokers) == 3, 60, "the broker to be back")
    return answers[0]


def test_an_old_answer_about_the_sources_end_is_no_loss(
    trio: KafkaCluster, destination: KafkaCluster, tmp_path: Path
) -> None:
    create_topic(trio.bootstrap, "orders", replication=3)
    produce(trio.bootstrap, "orders", [Record(b"k", b"v", (), 1000)] * 100)
    mirrors = [{"name": "stale-source", "from": "orders", "on_loss": "record"}]
    configuration = load(write_configuration(tmp_path / "c.yaml", trio.bootstrap, destination.bootstrap, mirrors))
    (mirror,) = configuration.mirrors
    stale = 0
    for _ in range(3):
        surveyor = Surveyor(configuration, mirror)
        old = answer_of_a_paused_leader(trio, surveyor)
        anew = Surveyor(configuration, mirror)
        truth = anew.source.offsets([P0])[P0]
        position_noted(anew, truth.end, truth.leader_epoch)
        right = anew.survey()
        assert planned(mirror, right).losses == () and right.offsets[P0].end == truth.end
        if old.end < truth.end:
            stale += 1
            survey: Survey = replace(right, offsets={P0: old})
            assert old.leader_epoch < truth.leader_epoch
            assert found_losses(survey)[P0].evidence == "outdated"
            with pytest.raises(Unavailable, match="is not the last leader we know"):
                Doubts().settle(found_losses(survey).values(), "m")
    assert stale, "a paused leader gave no old answer in three rounds: nothing was tried"
