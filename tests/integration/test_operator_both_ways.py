"""Two-way mirrors of one topic name: no record travels in a circle, both sides end with the union."""

from pathlib import Path

import yaml

from barnabas.lab.cluster import KafkaCluster
from barnabas.provenance import ORIGIN
from tests.barnabas_runs import count_of
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.replicator_host import Host, HostedRun

pytest_plugins = ["tests.hosted"]


def started(host: Host, file: Path, content: object) -> HostedRun:
    """A run of any configuration in the host."""
    file.write_text(yaml.safe_dump(content))
    number = 100_000 + hash(str(file)) % 100_000
    host.order({"id": number, "configuration": str(file), "until_caught_up": False})
    return HostedRun(host, number)


def test_two_way_mirrors_of_one_name_end_with_the_union_on_both_sides(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topic = topic_names("orders")
    sides = {b"A": source, b"B": destination}
    for cluster in sides.values():
        create_topic(cluster.bootstrap, topic, partitions=2)
    content = {
        "clusters": {"a": {"bootstrap": source.bootstrap}, "b": {"bootstrap": destination.bootstrap}},
        "groups": [
            {
                "name": "ways",
                "provenance": True,
                "mirrors": [
                    {"name": f"there-{topic}", "source": "a", "destination": "b", "from": topic},
                    {"name": f"back-{topic}", "source": "b", "destination": "a", "from": topic},
                ],
            }
        ],
    }
    run = started(host, tmp_path / "both.yaml", content)
    for wave in range(3):
        for side, cluster in sides.items():
            wanted = [
                Record(side, b"%s %d %d" % (side, wave, i), (("own", b"1"),), 1000 + i, i % 2) for i in range(100)
            ]
            produce(cluster.bootstrap, topic, wanted)
        for cluster in sides.values():
            wait_until(
                lambda c=cluster, n=200 * (wave + 1): count_of(c.bootstrap, topic) == n,  # type: ignore[misc]
                120,
                f"the union after wave {wave}",
            )
    ended = run.stop()
    assert {mirror["state"] for mirror in ended.values()} == {"stopped"}, ended
    assert {mirror["records"] for mirror in ended.values()} == {300}, "each way carries one side's records, once"
    for side, cluster in sides.items():
        records = read_all(cluster.bootstrap, topic)
        assert len(records) == len({record.value for record in records}) == 600
        for record in records:
            names = [name for name, _ in record.headers]
            assert names == (["own"] if record.key == side else ["own", ORIGIN])
        for other in sides:
            for partition in (0, 1):
                order = [r.value for r in records if r.key == other and r.partition == partition]
                assert order == sorted(order, key=lambda v: [int(x) for x in (v or b"").split()[1:]])
