"""Starting again goes on after the last committed record, with nothing kept on this machine."""

import os
import shutil
from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, no_open_transaction, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce

CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")  # of jars, which are no state


def test_three_runs_each_on_a_machine_that_never_ran_the_mirror_copy_everything_once(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic, mirror = topic_names("orders"), f"m-{topic_names('mirror')}"
    create_topic(source.bootstrap, topic, partitions=3)
    mirrors = [{"name": mirror, "from": topic, "to": "{topic}.copy"}]
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)
    total = 0
    for machine in range(3):
        batch = [Record(b"%d" % i, b"%d" % (total + i), (), 1000 + i, i % 3) for i in range(400 + machine)]
        produce(source.bootstrap, topic, batch)
        total += len(batch)
        home, temporary = tmp_path / f"home-{machine}", tmp_path / f"tmp-{machine}"
        home.mkdir()
        temporary.mkdir()
        places = {"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": CACHE}
        code, run = ran(home, "run", "-c", file, "--until-caught-up", **places)
        assert code == 0, run.messages
        assert f"copied {len(batch):,} records" in run.output, "each run copies what is new and nothing else"
        assert copied(source.bootstrap, destination.bootstrap, topic, f"{topic}.copy") == total
        assert no_open_transaction(destination.bootstrap, f"{topic}.copy", f"_barnabas.{mirror}")
        shutil.rmtree(home)
        shutil.rmtree(temporary)
