"""The ledger: positions stand in the transaction of their records (A), and nobody else writes there."""

import json
from itertools import pairwise

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, count_of
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, delete_topics, ends, produce, read_all, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]


def test_every_transaction_with_records_has_its_position_and_every_position_its_records(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % 2) for i in range(3000)])
    mirror = {"name": f"m-{topic}", "from": topic, "batch": {"records": 400}}
    host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    assert copied(source.bootstrap, destination.bootstrap, topic) == 3000
    records = read_all(destination.bootstrap, topic)
    told = [
        (json.loads(r.key or b""), json.loads(r.value or b"{}"))
        for r in read_all(destination.bootstrap, f"_barnabas.m-{topic}")
    ]
    for partition in (0, 1):
        own = [record.offset for record in records if record.partition == partition]
        # a transaction's marker takes an offset: behind each gap another one begins; the source's offsets have none
        ends_of_transactions = [n for n, (here, following) in enumerate(pairwise(own), 1) if following > here + 1]
        positions = [
            value["next"] for key, value in told if key["kind"] == "position" and key["partition"] == partition
        ]
        assert len(positions) > 5
        assert positions == [0, *ends_of_transactions, len(own)]
        assert {value["topic_id"] for key, value in told if key["kind"] == "position"} != {""}


def test_a_ledger_that_is_deleted_or_written_by_somebody_else_while_running_stops_its_mirror_and_no_other(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host
) -> None:
    topics = {what: topic_names(what) for what in ("deleted", "stranger", "good")}
    for topic in topics.values():
        create_topic(source.bootstrap, topic)
        produce(source.bootstrap, topic, [Record(b"k", b"old", (), 1000)] * 50)
    mirrors = [{"name": f"m-{topic}", "from": topic} for topic in topics.values()]
    run = host.start(source.bootstrap, destination.bootstrap, mirrors)

    def there(what: str) -> int:
        return count_of(destination.bootstrap, topics[what])

    for what in topics:
        wait_until(lambda what=what: there(what) == 50, 240, f"{what} to be copied")  # type: ignore[misc]
    strange = f"_barnabas.m-{topics['stranger']}"
    offset = ends(destination.bootstrap, strange)[0][1]
    produce(destination.bootstrap, strange, [Record(b"hello", b"you", (), 1000)])
    delete_topics(destination.bootstrap, [f"_barnabas.m-{topics['deleted']}"])
    wait_until(
        lambda: [s for s, _ in host.states(run).values()].count("refused") == 2, 240, "two mirrors to be refused"
    )
    produce(source.bootstrap, topics["good"], [Record(b"k", b"new", (), 1000)] * 50)
    wait_until(lambda: there("good") == 100, 240, "the third mirror to go on")
    ended = run.stop()
    by_name = {what: ended[f"m-{topic}"] for what, topic in topics.items()}
    assert {what: mirror["state"] for what, mirror in by_name.items()} == {
        "deleted": "refused",
        "stranger": "refused",
        "good": "stopped",
    }
    assert f"_barnabas.m-{topics['deleted']}" in by_name["deleted"]["error"]
    assert f"{strange}: offset {offset} is not JSON" in by_name["stranger"]["error"]
    assert there("deleted") == 50, "beginning again would copy everything twice"
