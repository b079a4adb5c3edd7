"""Positions moved by hand: refused while the mirror runs, recorded as an act, and exactly what is copied next."""

from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, wait_until
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]


def test_a_position_is_moved_by_hand_only_while_the_mirror_rests_and_the_act_is_recorded(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000 + i, i % 2) for i in range(100)])
    mirror = {"name": f"m-{topic}", "from": topic}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    move = ("position", "set", "-c", file, "--mirror", mirror["name"], "--topic", topic)

    run = host.start(source.bootstrap, destination.bootstrap, [mirror])
    wait_until(lambda: count_of(destination.bootstrap, topic) == 100, 120, "the copy")

    def refused() -> bool:
        code, tried = ran(tmp_path, *move, "--to", "0")
        return code == 1 and "stop it first" in tried.messages

    wait_until(refused, 60, "a running mirror to refuse")
    run.stop()
    code, outside = ran(tmp_path, *move, "--to", "51")
    assert (code, outside.output) == (1, "")
    assert "outside the log, which is [0, 50)" in outside.messages
    code, moved = ran(tmp_path, *move, "--partition", "1", "--to", "40")
    assert code == 0, moved.messages
    assert moved.output == f"{topic}-1: 50 → 40\n"
    ended = host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    assert ended[mirror["name"]]["records"] == 10
    assert count_of(destination.bootstrap, topic) == 110

    code, reset = ran(tmp_path, "position", "reset", "-c", file, "--mirror", mirror["name"])
    assert code == 0, reset.messages
    assert reset.output == f"{topic}-0: 50 → 0\n{topic}-1: 50 → 0\n"
    code, status = ran(tmp_path, "status", "-c", file, "--format", "json")
    (told,) = status.answer()["mirrors"]
    assert told["lag"] == 100
    assert [act["did"].split(":")[0] for act in told["acts"]] == ["position set", "position reset"]
    code, timed = ran(tmp_path, *move, "--to", "1970-01-01T00:00:01.060Z")
    assert timed.output == f"{topic}-0: 0 → 30\n{topic}-1: 0 → 30\n"


def test_a_position_set_before_the_first_run_leaves_the_other_partitions_to_start(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000 + i, i % 2) for i in range(100)])
    mirror = {"name": f"m-{topic}", "from": topic, "start": "latest"}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    move = ("position", "set", "-c", file, "--mirror", mirror["name"], "--topic", topic, "--partition")
    code, moved = ran(tmp_path, *move, "0", "--to", "10")
    assert code == 0, moved.messages
    assert moved.output == f"{topic}-0: none → 10\n{topic}-1: none → 50\n"
    code, moved = ran(tmp_path, *move, "0", "--to", "20")
    assert moved.output == f"{topic}-0: 10 → 20\n"
    code, plan = ran(tmp_path, "plan", "-c", file, "--format", "json")
    assert code == 0, plan.messages
    assert [(p["position"], p["from_ledger"]) for p in plan.answer()["mirrors"][0]["partitions"]] == [
        (20, True),
        (50, True),
    ]
