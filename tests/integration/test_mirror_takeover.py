"""The same mirror started twice: the newer run takes over, the older one stops, nothing is lost or doubled (B, C)."""

from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, copied, end_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.flow import flowing
from tests.kafka_io import create_topic, wait_until


def test_a_newer_run_takes_over_while_records_flow_and_the_older_exits_1_and_says_why(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=3)
    mirror = {"name": f"m-{topic}", "from": topic, "on_loss": "record"}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])

    def moved(beyond: int) -> bool:
        return end_of(destination.bootstrap, topic) > beyond

    with flowing(source.bootstrap, topic, 3), Run(tmp_path, "run", "-c", file) as older:
        older.wait_says("copying")
        wait_until(lambda: moved(2000), 240, "the older run to copy")
        with Run(tmp_path, "run", "-c", file) as newer:
            assert older.wait(240) == 1
            assert f"pid {newer.pid}" in older.messages, "the older run must name the newer"
            assert "epoch" in older.messages
            before = end_of(destination.bootstrap, topic)
            wait_until(lambda: moved(before + 1000), 240, "the newer run to copy")
            assert not newer.ended, newer.messages
    assert ran(tmp_path, "run", "-c", file, "--until-caught-up")[0] == 0
    assert copied(source.bootstrap, destination.bootstrap, topic) > 3000
    (status,) = ran(tmp_path, "status", "-c", file, "--format", "json")[1].answer()["mirrors"]
    assert status["lag"] == 0
    assert status["losses"] == [], "what the older run copied last is no loss"
