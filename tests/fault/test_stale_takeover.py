"""A ledger leader that was paused during a take-over answers with an old end; no position before it is believed."""

import os
import secrets
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.kafka.admin import Admin
from barnabas.lab.cluster import KafkaCluster
from barnabas.ledger import records
from barnabas.ledger.registration import Writer, opened_writer
from barnabas.ledger.state import LedgerState
from barnabas.ledger.takeover import Epoch, take_over
from barnabas.ledger.topic import ledger_partition, prepared, read_state
from barnabas.model import Connection, Partition, Position
from tests.kafka_io import wait_until
from tests.paused_broker import leader, unread

pytestmark = pytest.mark.slow
LEDGER, P0 = "_barnabas.m", Partition("orders", 0)


@pytest.fixture
def trio(lab_directory: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(lab_directory, f"ledgers-{secrets.token_hex(2)}", brokers=3, heap_megabytes=256) as cluster:
        yield cluster


def connection(bootstrap: str) -> Connection:
    return Connection("d", bootstrap, {"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 20_000})


def commit(writer: Writer, at: int, epoch: int) -> None:
    writer.producer.begin()
    value = records.position_value(Position(at, "id", epoch))
    writer.producer.produce(LEDGER, value, records.position_key(P0), 0, writer.end.delivered)
    writer.commit()


def opened(bootstrap: str, epoch: Epoch) -> Writer:
    transactional_id = "barnabas.m.0123456789abcdef.0"
    return opened_writer(
        connection(bootstrap), LEDGER, epoch=epoch.number, run=epoch.run, transactional_id=transactional_id
    )


def surveyed(to: Connection, admin: Admin) -> LedgerState:
    """What a survey reads of the ledger: up to the end that a broker tells."""
    end = admin.offsets([ledger_partition(LEDGER)])[ledger_partition(LEDGER)].end
    return read_state(to, LEDGER, end, committed=True)


def survey_of_a_paused_leader(cluster: KafkaCluster, old: Epoch, at: int) -> LedgerState:
    """The old run commits one position before its ledger's leader is paused and one after; a survey sees the first."""
    ours = opened(cluster.bootstrap, old)
    commit(ours, at, old.number)
    to = connection(cluster.bootstrap)
    admin = Admin(to)
    surveyed(to, admin)  # its client knows this leader
    paused = leader(cluster, LEDGER)
    pid = cluster.pids[paused]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: leader(cluster, LEDGER, paused) not in (-1, paused), 60, "another leader")
        commit(ours, at + 100, old.number)
        found: list[LedgerState] = []
        before = unread(cluster.ports[paused])
        asking = threading.Thread(target=lambda: found.append(surveyed(to, admin)))
        asking.start()
        wait_until(
            lambda: unread(cluster.ports[paused]) > before or not asking.is_alive(),
            60,
            "an answer or the paused broker",
        )
    finally:
        os.kill(pid, signal.SIGCONT)
    asking.join(120)
    wait_until(lambda: len(cluster.admin().list_topics(timeout=30).brokers) == 3, 60, "the broker to be back")
    return found[0]


def test_a_take_over_reads_the_last_position_although_a_deposed_leader_answers_with_an_old_end(
    trio: KafkaCluster,
) -> None:
    prepared(Admin(connection(trio.bootstrap)), LEDGER, 3)
    stale = 0
    for number in range(10):
        old = take_over(connection(trio.bootstrap), LEDGER, run=f"old {number}", source_id="S")
        known = survey_of_a_paused_leader(trio, old, 1000 * number)
        last = 1000 * number + 100
        found = known.positions().get(P0)
        stale += found is None or found.next < last
        new = take_over(connection(trio.bootstrap), LEDGER, run=f"new {number}", source_id="S", known=known)
        assert new.state.positions()[P0].next == last
    assert stale > 2, "a paused leader gave too few old answers: too little was tried"
