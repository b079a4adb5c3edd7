"""A transactional source: the committed arrives, the aborted never does, the open follows when it commits."""

from pathlib import Path
from typing import Any

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, ends, produce, read_all, wait_until
from tests.replicator_host import Host
from tests.transactions import Transaction

pytest_plugins = ["tests.hosted"]


def numbered(prefix: str, count: int, partitions: int = 1) -> list[Record]:
    return [Record(b"k", f"{prefix}-{i}".encode(), (), 1000 + i, i % partitions) for i in range(count)]


def test_only_committed_records_arrive_and_those_of_an_open_transaction_follow_when_it_commits(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("payments")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, numbered("committed", 100, 2), transaction=f"{topic}-1")
    Transaction(source.bootstrap, f"{topic}-2").write(topic, numbered("aborted", 240, 2)).abort()
    held = Transaction(source.bootstrap, f"{topic}-3").write(topic, numbered("open", 40))
    Transaction(source.bootstrap, f"{topic}-2").write(topic, numbered("aborted", 20, 2)).abort()
    produce(source.bootstrap, topic, numbered("behind", 30, 2), transaction=f"{topic}-1")

    def there(prefix: str) -> int:
        found = [record.value or b"" for record in read_all(destination.bootstrap, topic)]
        return sum(value.startswith(f"{prefix}-".encode()) for value in found)

    mirror = {"name": f"m-{topic}", "from": topic}
    once = host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    assert once[mirror["name"]]["state"] == "done", "an open transaction must not keep a run from ending"
    assert (there("committed"), there("behind"), there("open"), there("aborted")) == (100, 15, 0, 0)

    run = host.start(source.bootstrap, destination.bootstrap, [mirror])
    produce(source.bootstrap, topic, [r._replace(partition=1) for r in numbered("beside", 10)])
    wait_until(lambda: there("beside") == 10, 240, "the other partition to move on")
    assert (there("open"), there("behind")) == (0, 15)
    held.commit()
    wait_until(lambda: there("behind") == 30, 240, "the open transaction's records and those behind them")
    run.stop()
    assert (there("open"), there("aborted")) == (40, 0)
    assert copied(source.bootstrap, destination.bootstrap, topic) == 100 + 30 + 10 + 40


def test_lag_reaches_0_when_a_topic_ends_in_aborted_records_or_holds_nothing_else(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    tail, only, later = topic_names("tail"), topic_names("only"), topic_names("later")
    for topic in (tail, only, later):
        create_topic(source.bootstrap, topic)
    produce(source.bootstrap, tail, numbered("committed", 10))
    for topic in (tail, only):
        Transaction(source.bootstrap, f"{topic}-1").write(topic, numbered("aborted", 25)).abort()
    mirrors = [{"name": f"m-{topic}", "from": topic} for topic in (tail, only, later)]
    ended = host.catch_up(source.bootstrap, destination.bootstrap, *mirrors)
    assert {mirror["state"] for mirror in ended.values()} == {"done"}, ended
    assert sum(mirror["lag"] for mirror in ended.values()) == 0

    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)

    def partitions() -> dict[str, dict[str, Any]]:
        code, status = ran(tmp_path, "status", "-c", file, "--format", "json")
        assert code == 0, status.messages
        return {p["topic"]: p for mirror in status.answer()["mirrors"] for p in mirror["partitions"]}

    before = partitions()
    for topic in (tail, only):
        end = ends(source.bootstrap, topic)[0][1]
        assert (before[topic]["position"], before[topic]["end"], before[topic]["lag"]) == (end, end, 0)

    run = host.start(source.bootstrap, destination.bootstrap, mirrors)
    produce(source.bootstrap, later, numbered("committed", 5))
    wait_until(lambda: count_of(destination.bootstrap, later) == 5, 240, "the run to copy")
    Transaction(source.bootstrap, f"{later}-1").write(later, numbered("aborted", 25)).abort()
    wait_until(lambda: partitions()[later]["lag"] == 0, 240, "a running mirror to move past aborted records")
    run.stop()
    assert len(read_all(destination.bootstrap, later)) == 5
