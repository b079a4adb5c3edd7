"""A ledger stays small: its brokers remove the markers of old transactions, of ledgers that exist already too."""

import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.errors import Unavailable
from barnabas.kafka import reader
from barnabas.kafka.admin import Admin
from barnabas.kafka.producer import append
from barnabas.lab.cluster import KafkaCluster
from barnabas.ledger import records
from barnabas.ledger.takeover import take_over
from barnabas.ledger.topic import prepared, read_state
from barnabas.model import Connection, Partition
from tests.kafka_io import create_topic, wait_until
from tests.ledger_log import FIRST_NEXT, markers_and_bytes, write_transactions

LEDGER = "_barnabas.m"
OLD_SETTINGS: dict[str, Any] = {  # as ledgers were made before
    "cleanup.policy": "compact",
    "segment.bytes": str(8 * 1024 * 1024),
    "segment.ms": str(6 * 3600 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": str(7 * 24 * 3600 * 1000),
}
PADDING: list[tuple[bytes, bytes | None]] = [  # closes a segment
    (records.barrier_key(), b'{"version":3,"padding":"%s"}' % (b"x" * 700_000))
] * 13


@pytest.fixture(scope="module")
def cluster(lab_directory: Path) -> Iterator[KafkaCluster]:
    name = f"ledger-{secrets.token_hex(2)}"
    quick = {"log.cleaner.backoff.ms": "500", "log.segment.delete.delay.ms": "100"}
    with KafkaCluster(lab_directory, name, heap_megabytes=512, properties=quick) as cluster:
        yield cluster
    shutil.rmtree(lab_directory / name, ignore_errors=True)


def connected(cluster: KafkaCluster) -> Connection:
    return Connection("d", cluster.bootstrap, {"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def old_ledger(cluster: KafkaCluster, ledger: str, transactions: int, *, committed: bool = True) -> Path:
    create_topic(cluster.bootstrap, ledger, replication=1, **OLD_SETTINGS)
    cluster.stop()
    (directory,) = cluster.directory.glob(f"broker-0/{ledger}-0")
    write_transactions(directory, transactions, committed=committed)
    try:
        cluster.start()
    except Unavailable:  # the broker reads all of a log that has no index
        cluster.wait_until_up(seconds=600)
    return directory


def seconds_of_a_take_over(to: Connection, ledger: str) -> float:
    """The shorter of two: the first connects."""
    took = []
    for _ in range(2):
        started = time.monotonic()
        take_over(to, ledger, run=secrets.token_hex(4), source_id="S")
        took.append(time.monotonic() - started)
    return min(took)


@pytest.mark.parametrize("transactions", [200_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_an_old_ledger_of_many_transactions_becomes_small_and_is_taken_over_as_fast_as_a_new_one(
    cluster: KafkaCluster, transactions: int
) -> None:
    directory = old_ledger(cluster, LEDGER, transactions)
    assert markers_and_bytes(directory)[0] == transactions
    to, admin = connected(cluster), Admin(connected(cluster))
    prepared(admin, LEDGER, 1)
    assert admin.settings(LEDGER)["delete.retention.ms"] == "600000"
    admin.change(LEDGER, {"delete.retention.ms": "1000"})  # the broker keeps this time exactly; no test waits for it

    def few_are_left() -> bool:
        append(to, LEDGER, PADDING)  # what a mirror writes in a while
        time.sleep(1.5)
        return markers_and_bytes(directory)[0] < transactions // 100

    wait_until(few_are_left, 600, "the cleaner to remove the markers")
    assert markers_and_bytes(directory)[1] < 50_000_000
    prepared(admin, f"{LEDGER}-new", 1)
    usual, here = seconds_of_a_take_over(to, f"{LEDGER}-new"), seconds_of_a_take_over(to, LEDGER)
    assert here < usual + 1.0
    state = take_over(to, LEDGER, run="last", source_id="S").state
    expected = {Partition("orders", n): FIRST_NEXT + transactions - 8 + n for n in range(8)}
    assert {partition: position.next for partition, position in state.positions().items()} == expected


def test_a_long_stretch_without_a_record_is_read_as_long_as_the_reader_moves(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, transactions = f"{LEDGER}-aborted", 100_000
    old_ledger(cluster, ledger, transactions, committed=False)
    to = connected(cluster)
    slow = replace(to, properties={**to.properties, "fetch.message.max.bytes": 20_000})
    monkeypatch.setattr(reader, "READ_SECONDS", 0.3)
    started = time.monotonic()
    assert read_state(slow, ledger, 2 * transactions, committed=True).positions() == {}
    assert time.monotonic() - started > 0.6, "it was too fast to prove anything"


def test_a_ledger_keeps_the_settings_of_an_operator_who_wants_it_smaller(destination: KafkaCluster) -> None:
    to = connected(destination)
    admin, ledger = Admin(to), f"_barnabas.small-{secrets.token_hex(4)}"
    prepared(admin, ledger, 1)
    admin.change(ledger, {"delete.retention.ms": "5000", "segment.bytes": str(2**20)})
    prepared(admin, ledger, 1)
    now = admin.settings(ledger)
    assert (now["delete.retention.ms"], now["segment.bytes"]) == ("5000", str(2**20))
    assert now["unclean.leader.election.enable"] == "false"
    admin.delete(ledger)
