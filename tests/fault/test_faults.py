"""Faults under load, by a seed: whatever is killed or paused, what independent readers saw is as it must be."""

from pathlib import Path

from confluent_kafka import KafkaError

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from tests.conftest import TopicNames
from tests.fault import nemesis
from tests.fault.checker import check
from tests.fault.commit_gate import CommitGate
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


def test_commits_whose_answer_is_lost_and_commits_that_arrive_in_the_next_transaction_change_nothing(
    source: KafkaCluster, topic_names: TopicNames, tmp_path: Path, temporary: Path
) -> None:
    seed, gate_host = seed_of_this_run(1), "127.0.0.9"
    guard = Guard(tmp_path / "lab")
    with (
        KafkaCluster(tmp_path / "lab", "gated", hosts=[gate_host]) as gated,
        CommitGate(gate_host, gated.ports[0]) as gate,
    ):
        scene = Scene(source, gated, topic_names("orders"), tmp_path, seed)
        scene.workload.start()
        try:
            run = scene.run(TMPDIR=str(temporary))
            scene.witness.wait_for(SOME, "the run copies")
            nemesis.delete_checkpoint(temporary)
            scene.witness.wait_for(SOME, "the run does not need its checkpoint")
            for _ in range(3):
                gate.lose_an_answer()
                scene.witness.wait_for(SOME, "it goes on after a commit of which it heard nothing")
                gate.hold_a_commit()
                scene.witness.wait_for(SOME, "it goes on when a commit has come late")
            assert not run.ended
            history = scene.history()
        finally:
            scene.end()
    guard.end()
    assert KafkaError.NO_ERROR not in gate.late, "a commit that comes late ends no other transaction"
    assert check(history) == [], f"seed {seed}"
