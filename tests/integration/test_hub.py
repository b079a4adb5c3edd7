"""Hub and spokes: each spoke's records are at the hub once, in order, as they were; what does not travel is absent."""

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from tests.barnabas_runs import QUICK, Run, copied, count_of, end_of, ran
from tests.flow import flowing
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until

TOPICS = {"topic": 3, "topic2": 1, "clicks": 2, "bills": 4}  # and their partitions
UNREPLICATED = "nonreplicated"
SPOKES = ("spoke1", "spoke2", "spoke3")
COUNT = 600


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, KafkaCluster]]:
    directory = tmp_path_factory.mktemp("hub")
    guard = Guard(directory)
    made = {name: KafkaCluster(directory, name, heap_megabytes=384) for name in ("hub", *SPOKES)}
    try:
        for cluster in made.values():
            cluster.start()
        for name in SPOKES:
            for topic, partitions in {**TOPICS, UNREPLICATED: 1}.items():
                create_topic(made[name].bootstrap, topic, partitions=partitions)
                produce(made[name].bootstrap, topic, written(name, topic, partitions))
        yield made
    finally:
        guard.end()


def written(spoke: str, topic: str, partitions: int, wave: int = 0) -> list[Record]:
    own = (("own", b"1"), ("own", None), ("MUX_LIKE", b"x"))
    key = f"{spoke}/{topic}".encode()
    return [
        Record(key, b"%d %d" % (wave, i), own, 1_700_000_000_000 + i if i else -1, i % partitions) for i in range(COUNT)
    ]


def configuration(file: Path, clusters: dict[str, KafkaCluster], **settings: object) -> Path:
    content = {
        "clusters": {name: {"bootstrap": cluster.bootstrap} for name, cluster in clusters.items()},
        "spark": QUICK,
        "spokes": {"hub": "hub", "from": {"match": ".*", "except": [UNREPLICATED]}, **settings},
    }
    file.write_text(yaml.safe_dump(content))
    return file


def check_spoke(hub: KafkaCluster, spoke: str, name: str, topic: str) -> None:
    """Every record of the spoke's topic once, in its partition's order, with its own timestamp and headers."""
    partitions = TOPICS[topic]
    there = [record for record in read_all(hub.bootstrap, name) if record.key == f"{spoke}/{topic}".encode()]
    for partition in range(partitions):
        expected = [r for r in written(spoke, topic, partitions) if r.partition == partition]
        found = [record._replace(offset=-1) for record in there if record.partition == partition]
        assert found == expected, f"{spoke} {topic}-{partition}: {len(found)} of {len(expected)}"
    assert len(there) == COUNT


def test_spokes_share_the_topics_of_a_hub_and_a_new_spoke_disturbs_no_other(
    tmp_path: Path, clusters: dict[str, KafkaCluster]
) -> None:
    hub = clusters["hub"]
    first, third = [{"cluster": "spoke1"}, {"cluster": "spoke2", "identifier": "eu"}], [{"cluster": "spoke3"}]
    file = configuration(tmp_path / "two.yaml", clusters, members=first)
    with Run(tmp_path / "two", "run", "-c", file) as run:
        wait_until(lambda: all(count_of(hub.bootstrap, t) == 2 * COUNT for t in TOPICS), 240, "two spokes at the hub")
        added = configuration(tmp_path / "third.yaml", clusters, members=third)
        with Run(tmp_path / "third", "run", "-c", added) as other:
            wait_until(lambda: all(count_of(hub.bootstrap, t) == 3 * COUNT for t in TOPICS), 240, "the third spoke")
            other.signal(signal.SIGTERM)
            assert other.wait() == 0, other.messages
        assert not run.ended
        run.signal(signal.SIGTERM)
        assert run.wait() == 0, run.messages
    assert "refused" not in run.messages
    assert [line.split(", ")[-1] for line in run.output.splitlines() if line.startswith("mux")] == ["0 restarts"] * 2
    for topic in TOPICS:
        assert len(hub.admin().list_topics(topic, timeout=30).topics[topic].partitions) == TOPICS[topic]
        for spoke in SPOKES:
            check_spoke(hub, spoke, topic, topic)
    names = hub.admin().list_topics(timeout=30).topics
    assert UNREPLICATED not in names
    assert {"mux-replication_spoke1", "mux-replication_eu", "mux-replication_spoke3"} <= set(names)


def test_one_run_that_catches_up_brings_records_all_the_way_to_the_hub(
    tmp_path: Path, clusters: dict[str, KafkaCluster]
) -> None:
    given = {"members": [{"cluster": "spoke1", "identifier": "once"}], "to": "{identifier}.{topic}", "from": ["topic2"]}
    file = configuration(tmp_path / "once.yaml", clusters, intermediate="spoke", **given)
    code, drawn = ran(tmp_path, "plan", "-c", file, "--format", "mermaid")
    assert code == 0, drawn.messages
    assert all(f"-- {stage}_once -->" in drawn.output for stage in ("mux", "relay", "demux")), drawn.output
    code, run = ran(tmp_path, "run", "--until-caught-up", "-c", file)
    assert code == 0, run.messages
    check_spoke(clusters["hub"], "spoke1", "once.topic2", "topic2")


@pytest.mark.slow  # a dozen starts of Spark; the writer is the same one that tests/fault kills
def test_a_demux_killed_ten_times_under_load_loses_and_doubles_nothing(
    tmp_path: Path, clusters: dict[str, KafkaCluster]
) -> None:
    """Topics of its own by `{identifier}.{topic}`, through an intermediate topic on the spoke itself."""
    hub, spoke = clusters["hub"].bootstrap, clusters["spoke1"].bootstrap
    loads = {"load-a": 3, "load-b": 2}
    for topic, partitions in loads.items():
        create_topic(spoke, topic, partitions=partitions)
    members, to = [{"cluster": "spoke1", "identifier": "far"}], "{identifier}.{topic}"
    given = {"members": members, "to": to, "from": list(loads)}
    file = configuration(tmp_path / "far.yaml", clusters, intermediate="spoke", **given)
    code, drawn = ran(tmp_path, "plan", "-c", file, "--mirror", "mux_far", "--format", "mermaid")
    assert code == 0, drawn.messages
    assert drawn.output.startswith("flowchart LR")
    assert "-- mux_far -->" in drawn.output
    chosen = ("--mirror", "mux_far", "--mirror", "relay_far")
    chance = random.Random(0)
    with ExitStack() as stack:
        for topic, partitions in loads.items():
            stack.enter_context(flowing(spoke, topic, partitions))
        carrier = stack.enter_context(Run(tmp_path / "carrier", "run", "-c", file, *chosen))
        for _ in range(10):
            before, more = end_of(hub, "_barnabas.demux_far"), chance.randrange(3, 40)
            with Run(tmp_path / "killed", "run", "-c", file, "--mirror", "demux_far") as run:
                wait_until(lambda b=before + more: end_of(hub, "_barnabas.demux_far") > b, 240, "the demux to work")  # type: ignore[misc]
                run.signal(signal.SIGKILL, group=True)
        assert not carrier.ended, carrier.messages
    for mirror in ("mux_far", "relay_far", "demux_far"):
        code, last = ran(tmp_path, "run", "--until-caught-up", "-c", file, "--mirror", mirror)
        assert code == 0, last.messages
    for topic in loads:
        assert copied(spoke, hub, topic, f"far.{topic}") > 1000


def test_a_record_that_does_not_say_where_it_belongs_is_stopped_at_or_set_aside(
    tmp_path: Path, clusters: dict[str, KafkaCluster]
) -> None:
    hub = clusters["hub"]
    create_topic(hub.bootstrap, "mux-replication_odd")
    good = tuple((name, value) for name, value in MUX_HEADERS)
    produce(
        hub.bootstrap,
        "mux-replication_odd",
        [
            Record(b"k", b"good", good, 1000),
            Record(b"k", b"bad", (("own", b"1"),), 1000),
            Record(b"k", b"good", good, 1000),
        ],
    )
    mirror = {
        "name": "demux_odd",
        "kind": "demux",
        "source": "hub",
        "destination": "hub",
        "from": "mux-replication_odd",
    }
    content = {
        "clusters": {"hub": {"bootstrap": hub.bootstrap}},
        "spark": QUICK,
        "groups": [{"name": "odd", "mirrors": [mirror]}],
    }
    file = tmp_path / "odd.yaml"
    file.write_text(yaml.safe_dump(content))
    code, stopped = ran(tmp_path, "run", "--until-caught-up", "-c", file)
    assert code == 1
    assert "mux-replication_odd-0 offset 1" in stopped.messages
    assert "MUX_* headers are missing or broken" in stopped.messages
    assert count_of(hub.bootstrap, "odd-topic") == 1, "what is before it"
    file.write_text(
        yaml.safe_dump({**content, "groups": [{"name": "odd", "on_bad_record": "quarantine", "mirrors": [mirror]}]})
    )
    code, done = ran(tmp_path, "run", "--until-caught-up", "-c", file)
    assert code == 0, done.messages
    assert [(r.value, r.timestamp, r.partition) for r in read_all(hub.bootstrap, "odd-topic")] == [(b"good", 77, 1)] * 2
    (aside,) = read_all(hub.bootstrap, "demux_odd.quarantine")
    assert (aside.value, aside.headers[0]) == (b"bad", ("own", b"1"))
    assert ("barnabas.quarantine.offset", b"1") in aside.headers


def test_records_of_another_multiplexer_arrive_and_what_has_no_place_or_orders_too_much_is_set_aside(
    tmp_path: Path, clusters: dict[str, KafkaCluster]
) -> None:
    """Six headers behind the record's own, the time as RFC 3339, a record that came through it twice.

    One names no partition, and one a topic that nobody has, with 10,000 partitions.
    """
    hub = clusters["hub"].bootstrap
    create_topic(hub, "mux-replication_other", 2)
    moments = [b"2026-01-02T03:04:05Z", b"2026-01-02T05:04:05.678+02:00", b"0001-01-01T00:00:00Z"]
    given = [Record(b"k", b"%d" % i, others(b"1", moment), 7_000 + i) for i, moment in enumerate(moments)]
    given.append(Record(b"k", b"twice", (*others(b"0", b"yesterday"), *others(b"1", moments[0])), 8_000))
    given.append(Record(b"k", b"lost", others(b"first", moments[0]), 9_000))
    invented = {"MUX_SOURCE_TOPIC": b"invented", "MUX_SOURCE_TOPIC_PARTITIONS": b"10000"}
    given.insert(0, Record(b"k", b"?", tuple({**dict(others(b"1", moments[0])), **invented}.items()), 9_000))
    produce(hub, "mux-replication_other", given)
    mirror: dict[str, object] = {
        "name": "demux_other",
        "from": "mux-replication_other",
        "kind": "demux",
        "on_bad_record": "quarantine",
    }
    mirror["topics"] = {"create_at_most": 9}
    group = {"name": "other", "source": "hub", "destination": "hub", "mirrors": [mirror]}
    file = tmp_path / "other.yaml"
    content = {"clusters": {"hub": {"bootstrap": hub}}, "spark": QUICK, "groups": [group]}
    file.write_text(yaml.safe_dump(content))
    code, run = ran(tmp_path, "run", "--until-caught-up", "-c", file)
    assert code == 0, run.messages
    second = 1_767_323_045_000
    found = [(r.value, r.timestamp, r.partition, r.headers) for r in read_all(hub, "other-topic")]
    own = (("own", b"1"),)
    times = {b"0": second, b"1": second + 678, b"2": 7_002}
    assert found == [*((value, at, 1, own) for value, at in times.items()), (b"twice", second, 1, own * 2)]
    code, listed = ran(tmp_path, "quarantine", "list", "-c", file, "--mirror", "demux_other")
    assert code == 0, listed.messages
    assert "header MUX_SOURCE_TOPIC_PARTITION holds 'first', no partition" in listed.output
    assert "topic invented with 10,000 partitions is beyond what this demux may make" in listed.output
    assert "invented" not in clusters["hub"].admin().list_topics(timeout=30).topics


def others(partition: bytes, moment: bytes) -> tuple[tuple[str, bytes], ...]:
    """The headers of a record with one of its own, as that multiplexer writes them."""
    said = (b"other-topic", partition, moment, b"localhost:9092", b"mux-replication_other", b"other")
    source = ("TOPIC", "TOPIC_PARTITION", "TIMESTAMP", "BOOTSTRAP_SERVERS")
    names = (*(f"SOURCE_{name}" for name in source), "INTERMEDIATE_TOPIC", "SOURCE_IDENTIFIER")
    return (("own", b"1"), *((f"MUX_{name}", value) for name, value in zip(names, said, strict=True)))


MUX_HEADERS = (
    ("MUX_SOURCE_TOPIC", b"odd-topic"),
    ("MUX_SOURCE_TOPIC_PARTITION", b"1"),
    ("MUX_SOURCE_TIMESTAMP", b"77"),
)
