"""Records so large that a batch of the usual length does not fit into memory: the next batches are shorter."""

from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import QUICK, copied, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce

QUICK_JAVA = QUICK["settings"]["spark.driver.defaultJavaOptions"]


def test_a_burst_of_large_records_behind_small_ones_is_copied_in_shorter_batches(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("scans")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, [Record(b"k", b"small", (), 1_700_000_000_000)] * 6_000)
    large = (Record(b"k", i.to_bytes(4, "big") * 40_000, (), 1_700_000_000_000) for i in range(1500))
    produce(source.bootstrap, topic, large)
    file = write_configuration(
        tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [{"name": f"m-{topic}", "from": topic}]
    )
    file.write_text(file.read_text().replace(QUICK_JAVA, f"{QUICK_JAVA} -XX:MaxDirectMemorySize=200m"))
    code, run = ran(tmp_path, "run", "-c", file, "--until-caught-up")
    assert code == 0, run.messages
    assert "too large for one batch" in run.messages
    assert copied(source.bootstrap, destination.bootstrap, topic) == 7_500
