"""The long runs, by `make soak`."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, no_open_transaction, ran, write_configuration
from tests.conftest import TopicNames
from tests.fault import nemesis
from tests.fault.checker import check
from tests.fault.scene import Scene, seed_of_this_run
from tests.kafka_io import Record, create_topic, ends, produce, read_each, wait_until

RECORDS, PARTITIONS, KILLS = 1_000_000, 4, 10
SOAK_MINUTES = float(os.environ.get("BARNABAS_SOAK_MINUTES", "10"))

pytestmark = pytest.mark.slow


def million() -> Iterator[Record]:
    for number in range(RECORDS):
        headers = (("id", b"%d" % number), ("region", b"eu"))
        yield Record(
            b"k%d" % (number % 5000), b"%0100d" % number, headers, 1_750_000_000_000 + number, number % PARTITIONS
        )


def differences(source: str, destination: str, topic: str) -> tuple[int, list[str]]:
    """Records compared, and the first places where the two topics differ; holds one topic in memory, as hashes."""
    there: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    for record in read_each(destination, topic, seconds=300):
        there[record.partition].append(hash(record._replace(offset=-1)))
    place, found = [0] * PARTITIONS, []
    for record in read_each(source, topic, seconds=300):
        at = place[record.partition]
        place[record.partition] += 1
        if at >= len(there[record.partition]) or there[record.partition][at] != hash(record._replace(offset=-1)):
            found.append(f"{topic}-{record.partition} record {at}")
    found += [f"{topic}-{p}: {len(there[p])} records, not {place[p]}" for p in there if len(there[p]) != place[p]]
    return sum(place), found[:10]


def test_ten_sigkills_of_the_process_group_during_one_copy_of_a_million_records_lose_and_double_nothing(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    seed = seed_of_this_run(int(time.time()))
    chance = random.Random(seed)
    topic = topic_names("million")
    create_topic(source.bootstrap, topic, partitions=PARTITIONS)
    create_topic(destination.bootstrap, topic, partitions=PARTITIONS)
    produce(source.bootstrap, topic, million())
    mirror = {"name": f"m-{topic}", "from": topic, "batch": {"records": 20_000}}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])

    def there() -> int:
        return sum(end for _, end in ends(destination.bootstrap, topic).values())

    print(f"seed {seed}")
    for kill in range(KILLS):
        with Run(tmp_path, "run", "-c", file) as run:
            if kill % 3 == 2:  # anywhere, also before a query or even Spark has begun
                moment = chance.uniform(0, 15)
            else:  # while records flow
                before = there()
                wait_until(lambda run=run, before=before: run.ended or there() > before, 300, "records")  # type: ignore[misc]
                moment = chance.uniform(0, 1.5)
            with pytest.raises(AssertionError):  # it must be alive when the moment comes
                run.wait(moment)
            nemesis.kill_group(run)
        print(f"kill {kill + 1}: {moment:.2f} s, offsets written {there():,}")
    assert there() < RECORDS, "everything was copied before the last kill: it proves less than it should"
    code, last = ran(tmp_path, "run", "-c", file, "--until-caught-up")
    assert code == 0, last.messages
    print(last.output)
    compared, found = differences(source.bootstrap, destination.bootstrap, topic)
    assert (compared, found) == (RECORDS, []), f"seed {seed}"
    assert no_open_transaction(destination.bootstrap, topic, f"_barnabas.m-{topic}")


def test_random_faults_for_minutes_leave_a_history_that_is_as_it_must_be(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    seed = seed_of_this_run(int(time.time()))
    print(f"seed {seed}")
    scene = Scene(source, destination, topic_names("soak"), tmp_path, seed)
    scene.workload.start()
    over = time.monotonic() + 60 * SOAK_MINUTES
    paused: list[int] = []
    try:
        run = scene.run()
        while time.monotonic() < over:
            scene.witness.wait_for(scene.chance.randint(100, 5000), f"run {len(scene.runs)} copies", seconds=300)
            fault = scene.chance.choice(["worker", "pause", "jvm", "group", "everything", "term", "successor"])
            print(fault, scene.witness.count)
            if fault == "worker":
                nemesis.kill_worker(run, scene.chance)
                continue
            if fault == "pause":
                paused.append(nemesis.pause_worker(run, scene.chance))
            elif fault == "jvm":
                nemesis.kill_jvm(run)
                run.wait()
            elif fault == "group":
                nemesis.kill_group(run)
            elif fault == "everything":
                nemesis.kill_everything(run)
            elif fault == "term":
                run.signal(signal.SIGTERM)
                run.wait()
            before, run = run, scene.run()
            before.wait()
            while paused and scene.chance.random() < 0.7:
                nemesis.resume(paused.pop())
        history = scene.history()
    finally:
        scene.end()
    assert check(history) == [], f"seed {seed}"
