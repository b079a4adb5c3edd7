"""Faults under load, by a seed: whatever is killed or paused, what independent readers saw is as it must be."""

from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.conftest import TopicNames
from tests.fault import nemesis
from tests.fault.checker import check
from tests.fault.scene import Scene, seed_of_this_run

SOME = 800  # records that show that a run copies


def test_a_killed_worker_a_paused_one_a_killed_jvm_and_a_killed_group_lose_double_and_alter_nothing(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    seed = seed_of_this_run(1)
    scene = Scene(source, destination, topic_names("orders"), tmp_path, seed)
    scene.workload.start()
    try:
        first = scene.run()
        scene.witness.wait_for(SOME, "the first run copies")
        nemesis.kill_worker(first, scene.chance)
        scene.witness.wait_for(SOME, "it recovers from the death of a worker by itself")
        assert not first.ended

        paused = nemesis.pause_worker(first, scene.chance)
        second = scene.run()
        assert first.wait() == 1, "the older run stops when its successor takes over"
        scene.witness.wait_for(SOME, "the second run copies while a worker of the first is paused")
        nemesis.resume(paused)
        scene.witness.wait_for(SOME, "and goes on when that worker wakes up")

        nemesis.kill_jvm(second)
        assert second.wait() == 1, "without its JVM a run can do nothing but say so"
        assert "Spark" in second.messages

        third = scene.run()
        scene.witness.wait_for(SOME, "the third run copies")
        nemesis.kill_group(third)
        history = scene.history()
    finally:
        scene.end()
    assert sum(map(len, history.source.values())) > 4 * SOME
    assert check(history) == [], f"seed {seed}"
