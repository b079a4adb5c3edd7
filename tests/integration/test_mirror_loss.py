"""Loss is never silent: records that are gone before they were copied stop the mirror, or are written down."""

from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, delete_topics, produce, read_all, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]


def some(word: str, count: int) -> list[Record]:
    return [Record(b"k", f"{word}-{i}".encode(), (), 1000) for i in range(count)]


def forget(cluster: KafkaCluster, topic: str, before: int) -> None:
    """What retention does."""
    admin = cluster.admin()  # named, or it would be gone before its answer
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)


def remake(cluster: KafkaCluster, topic: str) -> None:
    delete_topics(cluster.bootstrap, [topic])
    wait_until(lambda: topic not in cluster.admin().list_topics(timeout=30).topics, 30, f"{topic} to be gone")
    create_topic(cluster.bootstrap, topic)


class Scene:
    """One topic and one mirror for each way to lose records and each policy, a hundred records copied of each."""

    def __init__(self, source: KafkaCluster, destination: KafkaCluster, names: TopicNames, host: Host) -> None:
        self.source, self.destination, self.host = source, destination, host
        self.topics = {
            (way, policy): names(f"{way}-{policy}")
            for way in ("retention", "shorter", "longer")
            for policy in ("stop", "record", "restart")
        } | {("retention", "latest"): names("retention-latest")}
        self.mirrors = []
        for (_, policy), topic in self.topics.items():
            create_topic(source.bootstrap, topic)
            produce(source.bootstrap, topic, some("old", 100))
            rules = {"on_loss": "restart"} if policy == "latest" else {"on_loss": policy}
            self.mirrors.append({"name": f"m-{topic}", "from": topic, **rules})

    def run(self) -> dict[tuple[str, str], dict[str, Any]]:
        ended = self.host.catch_up(self.source.bootstrap, self.destination.bootstrap, *self.mirrors)
        return {what: ended[f"m-{topic}"] for what, topic in self.topics.items()}

    def there(self, way: str, policy: str) -> list[str]:
        return [(r.value or b"").decode() for r in read_all(self.destination.bootstrap, self.topics[way, policy])]


OLD = [f"old-{i}" for i in range(100)]
NEW = [f"new-{i}" for i in range(60)]


def test_retention_that_overtakes_and_a_topic_made_anew_are_refused_or_written_down_as_the_policy_says(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    scene = Scene(source, destination, topic_names, host)
    assert {mirror["state"] for mirror in scene.run().values()} == {"done"}
    for (way, policy), topic in scene.topics.items():
        if way == "retention":
            produce(source.bootstrap, topic, some("new", 60))
            forget(source, topic, before=120)
        else:
            remake(source, topic)
            produce(source.bootstrap, topic, some("new", 60 if way == "shorter" else 300))
        if policy == "latest":
            (mirror,) = (m for m in scene.mirrors if m["from"] == topic)
            mirror["start"] = "latest"
    ended = scene.run()

    for way in ("retention", "shorter", "longer"):
        assert ended[way, "stop"]["state"] == "refused", way
        assert "position 100" in ended[way, "stop"]["error"]
        assert "on_loss" in ended[way, "stop"]["error"]
        assert scene.there(way, "stop") == OLD, "nothing is copied before a person has looked"
        assert ended[way, "record"]["state"] == "done", ended[way, "record"]
    assert "log [120, 160)" in ended["retention", "stop"]["error"]
    assert "made anew" in ended["longer", "stop"]["error"]

    longer = [f"new-{i}" for i in range(300)]
    for policy in ("record", "restart"):
        assert scene.there("retention", policy) == OLD + NEW[20:]
        assert scene.there("shorter", policy) == OLD + NEW
        assert scene.there("longer", policy) == OLD + longer
    assert scene.there("retention", "latest") == OLD, "restart begins as `start` says, here at the end"

    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, scene.mirrors)
    status = {m["name"]: m for m in ran(tmp_path, "status", "-c", file, "--format", "json")[1].answer()["mirrors"]}
    (loss,) = status[f"m-{scene.topics['retention', 'record']}"]["losses"]
    assert (loss["first"], loss["next"]) == (100, 120)
    assert len(status[f"m-{scene.topics['longer', 'record']}"]["losses"]) == 1


def test_a_topic_made_anew_while_its_mirror_runs_is_noticed(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("anew")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, some("old", 100))
    run = host.start(source.bootstrap, destination.bootstrap, [{"name": f"m-{topic}", "from": topic}])

    wait_until(lambda: count_of(destination.bootstrap, topic) == 100, 240, "the topic to be copied")
    remake(source, topic)
    produce(source.bootstrap, topic, some("new", 300))
    ended = run.wait(240)[f"m-{topic}"]
    assert ended["state"] == "refused"
    assert "made anew" in ended["error"]
    assert [r.value for r in read_all(destination.bootstrap, topic)][:100] == [r.value for r in some("old", 100)]
