"""Source logs that change behind a mirror's back: cut off and grown again, or compacted while nobody followed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.cut_logs import cut_log
from tests.kafka_io import Record, create_topic, delete_topics, ends, produce, read_all, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]


@pytest.fixture(scope="module")
def brittle(lab_directory: Path) -> Iterator[KafkaCluster]:
    """A source of one broker, whose logs the tests cut and whose cleaner does not rest."""
    with KafkaCluster(lab_directory, "brittle", properties={"log.cleaner.backoff.ms": "100"}) as cluster:
        yield cluster


def some(word: str, count: int) -> list[Record]:
    return [Record(b"k", f"{word}-{i}".encode(), (), 1000) for i in range(count)]


def there(cluster: KafkaCluster, topic: str) -> list[str]:
    return [(record.value or b"").decode() for record in read_all(cluster.bootstrap, topic)]


def last_of_each_key(cluster: KafkaCluster, topic: str) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in read_all(cluster.bootstrap, topic)}


def named(word: str, count: int) -> list[str]:
    return [f"{word}-{i}" for i in range(count)]


def test_a_log_that_was_cut_off_and_has_grown_past_the_position_again_is_a_loss(
    brittle: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topics = {policy: topic_names(f"cut-{policy}") for policy in ("stop", "record", "restart")}
    mirrors = [{"name": f"m-{topic}", "from": topic, "on_loss": policy} for policy, topic in topics.items()]
    whole = topic_names("whole")
    mirrors.append({"name": f"m-{whole}", "from": whole})
    for topic in (*topics.values(), whole):
        create_topic(brittle.bootstrap, topic)
        produce(brittle.bootstrap, topic, some("kept", 100))
        produce(brittle.bootstrap, topic, some("cut", 100))
    host.catch_up(brittle.bootstrap, destination.bootstrap, *mirrors)

    brittle.kill()
    for topic in topics.values():
        cut_log(brittle, topic, at=100)
    brittle.start_broker(0)
    for topic in (*topics.values(), whole):
        produce(brittle.bootstrap, topic, some("new", 150))
        assert ends(brittle.bootstrap, topic) == {0: (0, 350 if topic == whole else 250)}
    file = write_configuration(tmp_path / "c.yaml", brittle.bootstrap, destination.bootstrap, mirrors)
    code, plan = ran(tmp_path, "plan", "-c", file)
    assert code == 1 and "cut off at 100, before our position 200" in plan.messages + plan.output

    ended = host.catch_up(brittle.bootstrap, destination.bootstrap, *mirrors)
    stopped = ended[f"m-{topics['stop']}"]
    assert stopped["state"] == "refused" and "cut off at 100, before our position 200" in stopped["error"]
    assert there(destination, topics["stop"]) == named("kept", 100) + named("cut", 100)
    for policy in ("record", "restart"):
        assert ended[f"m-{topics[policy]}"]["state"] == "done"
        copy = named("kept", 100) + named("cut", 100) + named("new", 150)
        assert there(destination, topics[policy]) == copy, "what stands in the place of the cut records is copied"
    assert ended[f"m-{whole}"]["state"] == "done", "a new leader alone is no loss"
    again = host.catch_up(brittle.bootstrap, destination.bootstrap, *mirrors[1:])
    assert {(it["state"], it["records"]) for it in again.values()} == {("done", 0)}, "it is noted once"


@pytest.mark.slow
def test_a_log_that_is_cut_off_while_its_mirror_runs_ends_the_epoch_and_is_a_loss(
    brittle: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("running")
    create_topic(brittle.bootstrap, topic)
    produce(brittle.bootstrap, topic, some("kept", 100))
    produce(brittle.bootstrap, topic, some("cut", 100))
    mirror = {"name": f"m-{topic}", "from": topic}
    run = host.start(brittle.bootstrap, destination.bootstrap, [mirror])
    ledger = f"_barnabas.m-{topic}"

    def noted() -> bool:
        keys = [
            record.key for record in read_all(destination.bootstrap, ledger) if b'"next":200' in (record.value or b"")
        ]
        return any(b'"followed"' in (key or b"") for key in keys)

    run.wait_until(lambda: count_of(destination.bootstrap, topic) == 200 and noted(), 240, "the driver to look")
    brittle.kill()
    cut_log(brittle, topic, at=100)
    brittle.start_broker(0)
    produce(brittle.bootstrap, topic, some("new", 150))
    ended = run.wait(240)[f"m-{topic}"]
    assert ended["state"] == "refused"
    # what the new log has past our position may have been copied before the driver looked
    assert "cut off at 100, before our position 2" in ended["error"]


DAY = 24 * 3600 * 1000


def test_deletions_that_a_compacted_source_dropped_while_nobody_followed_are_a_loss(
    brittle: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topics = {policy: topic_names(f"compacted-{policy}") for policy in ("stop", "record", "restart")}
    kept = topic_names("kept")  # its deletions are kept for a day
    first = 1_000_000  # a broker takes no record from the future
    settings: dict[str, Any] = {"cleanup_policy": "compact", "segment_ms": "1000", "min_cleanable_dirty_ratio": "0.01"}
    for topic in (*topics.values(), kept):
        create_topic(brittle.bootstrap, topic, delete_retention_ms=str(DAY if topic == kept else 1000), **settings)
        produce(brittle.bootstrap, topic, [Record(b"stays", b"1", (), first), Record(b"goes", b"1", (), first)])
    mirrors = [{"name": f"m-{topic}", "from": topic, "on_loss": policy} for policy, topic in topics.items()]
    mirrors.append({"name": f"m-{kept}", "from": kept})
    host.catch_up(brittle.bootstrap, destination.bootstrap, *mirrors)
    for topic in (*topics.values(), kept):
        produce(brittle.bootstrap, topic, [Record(b"goes", None, (), first + 1)])
    number = 0

    def cleaned() -> bool:
        nonlocal number
        number += 1  # a record that is an hour younger closes the segment before it, for the cleaner
        for topic in (*topics.values(), kept):
            produce(brittle.bootstrap, topic, [Record(b"later", b"%d" % number, (), first + number * 3_600_000)])
        return all(b"goes" not in {r.key for r in read_all(brittle.bootstrap, topic)} for topic in topics.values())

    wait_until(cleaned, 60, "the cleaner to drop the deletions")
    ended = host.catch_up(brittle.bootstrap, destination.bootstrap, *mirrors)

    stopped = ended[f"m-{topics['stop']}"]
    assert stopped["state"] == "refused"
    assert "deletions may be gone" in stopped["error"] and "delete.retention.ms=1000" in stopped["error"]
    for policy in ("record", "restart"):
        assert ended[f"m-{topics[policy]}"]["state"] == "done"
        copy = [(r.key, r.value) for r in read_all(destination.bootstrap, topics[policy])]
        assert copy[:2] == [(b"stays", b"1"), (b"goes", b"1")] and copy[-1] == (b"later", b"%d" % number)
        assert (b"goes", None) not in copy, "the loss is real: the key stays at the destination"
    assert ended[f"m-{kept}"]["state"] == "done", "who keeps deletions for a day has them"
    file = write_configuration(tmp_path / "c.yaml", brittle.bootstrap, destination.bootstrap, mirrors)
    status = {m["name"]: m for m in ran(tmp_path, "status", "-c", file, "--format", "json")[1].answer()["mirrors"]}
    for policy in ("record", "restart"):
        (loss,) = status[f"m-{topics[policy]}"]["losses"]
        assert (loss["what"], loss["first"]) == ("deletions", 2)
    assert status[f"m-{kept}"]["losses"] == []

    delete_topics(destination.bootstrap, [topics["stop"]])
    assert ran(tmp_path, "position", "reset", "-c", file, "--mirror", f"m-{topics['stop']}")[0] == 0
    again = host.catch_up(brittle.bootstrap, destination.bootstrap, mirrors[0])[f"m-{topics['stop']}"]
    assert again["state"] == "done", again
    last = [last_of_each_key(cluster, topics["stop"]) for cluster in (brittle, destination)]
    assert last == [{b"stays": b"1", b"later": b"%d" % number}] * 2, "the remedy that the error names"
