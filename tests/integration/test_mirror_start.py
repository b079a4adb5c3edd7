"""Where a mirror begins: earliest, latest, a moment or an offset, each to the record, and once only."""

import signal
from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, read_all
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]

MIDDAY = 1_750_000_000_000
MIDDAY_WRITTEN = "2025-06-15T15:06:40Z"


def test_each_starting_point_takes_exactly_its_records_and_only_the_first_time(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("clicks")
    create_topic(source.bootstrap, topic, partitions=2)
    hours = [Record(b"k", b"%d" % i, (), MIDDAY + (i - 50) * 1000, i % 2) for i in range(100)]
    produce(source.bootstrap, topic, hours)
    starts = {
        "earliest": "earliest",
        "latest": "latest",
        "millis": MIDDAY,
        "written": MIDDAY_WRITTEN,
        "future": MIDDAY + 10_000_000,
        "offsets": {"offsets": {topic: {0: 45}}},
    }
    mirrors = [
        {"name": f"{name}-{topic}", "from": topic, "to": f"{{topic}}.{name}", "start": start}
        for name, start in starts.items()
    ]

    def counts() -> dict[str, int]:
        return {name: len(read_all(destination.bootstrap, f"{topic}.{name}")) for name in starts}

    ended = host.catch_up(source.bootstrap, destination.bootstrap, *mirrors)
    assert {mirror["state"] for mirror in ended.values()} == {"done"}, ended
    assert counts() == {"earliest": 100, "latest": 0, "millis": 50, "written": 50, "future": 0, "offsets": 55}
    produce(source.bootstrap, topic, [Record(b"k", b"new", (), MIDDAY - 100_000, i % 2) for i in range(10)])
    host.catch_up(source.bootstrap, destination.bootstrap, *mirrors)
    assert counts() == {"earliest": 110, "latest": 10, "millis": 60, "written": 60, "future": 10, "offsets": 65}


def test_a_mirror_that_starts_at_the_end_and_is_killed_before_any_record_loses_nothing_written_meanwhile(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("clicks")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, [Record(b"k", b"before", (), MIDDAY)] * 20)
    mirror = {"name": f"m-{topic}", "from": topic, "start": "latest"}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    with Run(tmp_path, "run", "-c", file) as run:
        run.wait_says(f"m-{topic}: copying")
        run.signal(signal.SIGKILL, group=True)
        run.wait()
    produce(source.bootstrap, topic, [Record(b"k", b"meanwhile", (), MIDDAY)] * 30)
    assert ran(tmp_path, "run", "-c", file, "--until-caught-up")[0] == 0
    assert [r.value for r in read_all(destination.bootstrap, topic)] == [b"meanwhile"] * 30
