"""What a run does about a ledger that is not as it left it: late epoch records, a lost tail, clocks, other ledgers."""

import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.errors import Fenced, Refused, Unavailable
from barnabas.kafka.admin import Admin
from barnabas.kafka.producer import append
from barnabas.lab.cluster import KafkaCluster
from barnabas.ledger import records
from barnabas.ledger.alive import give_one, runs
from barnabas.ledger.registration import Writer, opened_writer
from barnabas.ledger.tail import LedgerTail
from barnabas.ledger.takeover import Epoch, release, take_over
from barnabas.ledger.topic import prepared, read_state
from barnabas.ledger.witness import Witness
from barnabas.model import Connection, Partition, Position
from tests.barnabas_runs import copied, count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.cut_logs import cut_log
from tests.kafka_io import Record, create_topic, ends, produce, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]
P0 = Partition("orders", 0)


@pytest.fixture(scope="module")
def forgetful(lab_directory: Path) -> Iterator[KafkaCluster]:
    """A destination of one broker, whose ledgers the tests cut."""
    with KafkaCluster(lab_directory, "forgetful", heap_megabytes=320) as cluster:
        yield cluster
    shutil.rmtree(lab_directory / "forgetful", ignore_errors=True)


def connected(cluster: KafkaCluster) -> Connection:
    return Connection("d", cluster.bootstrap, {"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def new_ledger(to: Connection) -> str:
    ledger = f"_barnabas.m-{secrets.token_hex(4)}"
    prepared(Admin(to), ledger, 1)
    return ledger


def writer(to: Connection, ledger: str, epoch: Epoch, slot: int = 0) -> Writer:
    mirror = ledger.removeprefix("_barnabas.")
    return opened_writer(
        to, ledger, epoch=epoch.number, run=epoch.run, transactional_id=f"barnabas.{mirror}.0123456789abcdef.{slot}"
    )


def commit(ours: Writer, ledger: str, at: int, epoch: Epoch) -> None:
    ours.producer.begin()
    value = records.position_value(Position(at, "id", epoch.number))
    ours.producer.produce(ledger, value, records.position_key(P0), 0, ours.end.delivered)
    ours.commit()


def followed(tail: LedgerTail) -> int:
    """Looks once; how many records the ledger has had."""
    tail.refuse_newer_epoch()
    return tail.records


def test_an_epoch_record_that_arrives_late_fences_nobody(destination: KafkaCluster) -> None:
    to = connected(destination)
    ledger = new_ledger(to)
    seen = ends(destination.bootstrap, ledger)[0][1]
    epoch = take_over(to, ledger, run="ours", source_id="S")
    tail = LedgerTail(to, epoch)
    for run in ("ours", "a dead one"):
        append(to, ledger, [(records.epoch_key(run), records.epoch_value(run, "S", seen))])
    commit(writer(to, ledger, epoch), ledger, 5, epoch)
    end = ends(destination.bootstrap, ledger)[0][1]
    wait_until(lambda: followed(tail) >= 4, 30, "the tail to be read")
    assert read_state(to, ledger, end, committed=True).epoch == epoch.number
    release(to, ledger, epoch, ends=True)
    after = take_over(to, ledger, run="next", source_id="S")
    assert after.state.positions()[P0].next == 5
    with pytest.raises(Fenced, match="was begun by next"):
        wait_until(lambda: followed(tail) < 0, 30, "the tail to see the next epoch")
    tail.close()


def test_of_two_runs_that_begin_at_once_the_later_one_wins_and_knows_the_earlier(destination: KafkaCluster) -> None:
    to = connected(destination)
    ledger = new_ledger(to)
    first = take_over(to, ledger, run="first", source_id="S")
    early = read_state(to, ledger, ends(destination.bootstrap, ledger)[0][1], committed=True)
    second = take_over(to, ledger, run="second", source_id="S", known=early)
    commit(writer(to, ledger, second), ledger, 7, second)
    third = take_over(to, ledger, run="third", source_id="S", known=early)
    assert third.state.positions()[P0].next == 7, "it had surveyed the ledger before the second began"
    with pytest.raises(Fenced, match="was begun by third"):
        take_over(to, ledger, run="first", source_id="S", known=early, after=first.number)
    assert take_over(to, ledger, run="third", source_id="S", after=third.number).number > third.number


def test_a_ledger_that_lost_its_tail_is_found_by_every_one_who_knows_more(forgetful: KafkaCluster) -> None:
    to = connected(forgetful)
    ledger = new_ledger(to)
    epoch = take_over(to, ledger, run="ours", source_id="S")
    commit(writer(to, ledger, epoch), ledger, 100, epoch)
    cut_at = ends(forgetful.bootstrap, ledger)[0][1]
    later = writer(to, ledger, epoch, slot=1)
    commit(later, ledger, 200, epoch)
    witness = Witness(epoch=epoch.number, positions={P0: Position(200, "id", epoch.number)})
    tail = LedgerTail(to, epoch)
    wait_until(lambda: followed(tail) >= 4, 30, "the tail to be read")

    forgetful.kill()
    cut_log(forgetful, ledger, at=cut_at)
    forgetful.start_broker(0)
    with pytest.raises(Unavailable, match="lost records"):
        wait_until(lambda: followed(tail) < 0, 60, "the tail to see that it is ahead of the ledger")
    with pytest.raises(Unavailable):
        commit(later, ledger, 300, epoch)
    later.producer.abort()  # as a task does after any error
    again = take_over(to, ledger, run="ours", source_id="S", after=epoch.number)
    with pytest.raises(Refused, match=r"orders-0 has position 100 and this run saw 200 committed: the ledger lost"):
        witness.refuse_lost(again.state)
    tail.close()


def test_a_survey_that_ended_before_our_own_epoch_does_not_make_a_run_stop(destination: KafkaCluster) -> None:
    to = connected(destination)
    ledger = new_ledger(to)
    take_over(to, ledger, run="before", source_id="S")
    old = read_state(to, ledger, ends(destination.bootstrap, ledger)[0][1], committed=True)
    ours = take_over(to, ledger, run="ours", source_id="S")
    assert take_over(to, ledger, run="ours", source_id="S", known=old, after=ours.number).number > ours.number


def test_a_run_whose_epoch_the_ledger_has_forgotten_does_not_go_on(forgetful: KafkaCluster) -> None:
    to = connected(forgetful)
    ledger = new_ledger(to)
    take_over(to, ledger, run="before", source_id="S")
    cut_at = ends(forgetful.bootstrap, ledger)[0][1]
    epoch = take_over(to, ledger, run="ours", source_id="S")
    known = read_state(to, ledger, ends(forgetful.bootstrap, ledger)[0][1], committed=True)
    forgetful.kill()
    cut_log(forgetful, ledger, at=cut_at)
    forgetful.start_broker(0)
    now = read_state(to, ledger, ends(forgetful.bootstrap, ledger)[0][1], committed=True)
    with pytest.raises(Refused, match="there: the ledger lost records"):
        take_over(to, ledger, run="ours", source_id="S", known=now, after=epoch.number)
    with pytest.raises(Refused, match="was read before: the ledger lost records"):
        take_over(to, ledger, run="another", source_id="S", known=known)


def test_a_mirror_whose_ledger_loses_its_tail_stops_and_copies_nothing_twice(
    source: KafkaCluster, forgetful: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("orders")
    ledger = f"_barnabas.m-{topic}"
    create_topic(source.bootstrap, topic)
    run = host.start(source.bootstrap, forgetful.bootstrap, [{"name": f"m-{topic}", "from": topic}])
    produce(source.bootstrap, topic, [Record(b"k", b"a%d" % i, (), 1000) for i in range(100)])
    wait_until(lambda: count_of(forgetful.bootstrap, topic) >= 100, 240, "the first records")
    cut_at = ends(forgetful.bootstrap, ledger)[0][1]
    produce(source.bootstrap, topic, [Record(b"k", b"b%d" % i, (), 1000) for i in range(100)])
    wait_until(lambda: count_of(forgetful.bootstrap, topic) == 200, 240, "the rest")
    forgetful.kill()
    cut_log(forgetful, ledger, at=cut_at)
    forgetful.start_broker(0)
    mirror = run.wait(240)[f"m-{topic}"]
    assert mirror["state"] == "refused" and "the ledger lost records" in mirror["error"]
    assert copied(source.bootstrap, forgetful.bootstrap, topic) == 200


def test_signs_of_life_are_judged_by_the_brokers_clock_and_not_by_ours(
    destination: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = connected(destination)
    ledger = new_ledger(to)
    epoch = take_over(to, ledger, run="r", source_id="S")
    give_one(to, ledger, "r", epoch.number)
    monkeypatch.setattr("time.time", lambda: 10_000_000_000.0)  # this machine is centuries ahead
    state = read_state(to, ledger, ends(destination.bootstrap, ledger)[0][1], committed=True)
    assert runs(to, state)
    assert not runs(to, replace(state, alive=(epoch.number, 0)))


def test_a_mirror_that_was_renamed_is_warned_that_it_begins_anew(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path, host: Host
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, [Record(b"k", b"v", (), 1000)])
    host.catch_up(source.bootstrap, destination.bootstrap, {"name": f"old-{topic}", "from": topic})

    def warned(name: str) -> bool:
        mirror = {"name": name, "from": topic}
        file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
        code, plan = ran(tmp_path, "plan", "-c", file)
        assert code == 0
        return f"_barnabas.old-{topic}" in plan.messages and "was the mirror renamed?" in plan.messages

    assert warned(f"new-{topic}")
    assert not warned(f"old-{topic}")


def test_a_ledger_with_fewer_replicas_than_are_possible_is_refused_with_the_remedy(destination: KafkaCluster) -> None:
    to = connected(destination)
    with pytest.raises(Refused, match=r"has 1 replicas where 3 are possible.*`ledger: \{replication: 1\}`"):
        prepared(Admin(to), new_ledger(to), 3)
