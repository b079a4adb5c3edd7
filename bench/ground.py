"""Where a run takes place: two fresh clusters in a directory that is gone at the end, however the end comes."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.registry import Registry

WORK = Path(__file__).with_name("work")
GIGABYTE = 1_000_000_000
SECONDS = 60.0
BROKER_HEAP_MEGABYTES = 1024
PROPERTIES = {"log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "100"}
SOURCE = {**PROPERTIES, "log.segment.bytes": str(128 * 1024 * 1024)}
# Nobody reads a copy but its last records. What is deleted soon is written over soon: the machine's memory for files
# stays the same few pages, and what a disk does behind it is no part of a comparison. So small that this holds for a
# copy of 64 partitions too: with four times as much of each, none of it was written over before a race had ended.
DESTINATION = {
    **PROPERTIES,
    "log.segment.bytes": str(8 * 1024 * 1024),
    "log.retention.bytes": str(8 * 1024 * 1024),  # a partition of whatever topic a contender makes
    # Room for four times what a segment so small needs. Of Kafka's 10 MB the system reads 8 ahead when the first entry
    # is written, all of them zeros: for every 8 MB of a copy twice as much, a tenth of what large records cost.
    "log.index.size.max.bytes": str(64 * 1024),
}


@dataclass(frozen=True)
class Ground:
    """Two running clusters, and a directory for everything else."""

    directory: Path
    source: KafkaCluster
    destination: KafkaCluster

    def broker_pids(self) -> list[int]:
        return [pid for cluster in (self.source, self.destination) for pid in cluster.pids if pid]

    @contextmanager
    def registries(self) -> Iterator[tuple[Registry, Registry]]:
        """A registry for each cluster, as long as somebody needs them."""
        with Registry(self.directory, "source") as one, Registry(self.directory, "destination") as other:
            yield one, other

    def swept(self, *, keep: str = "") -> None:
        """Deletes all topics but the brokers' own and the source's topic `keep`."""
        for cluster in (self.source, self.destination):
            admin = cluster.admin()
            names = [name for name in admin.list_topics(timeout=SECONDS).topics if not name.startswith("__")]
            delete(admin, [name for name in names if cluster is self.destination or name != keep])


@contextmanager
def ground() -> Iterator[Ground]:
    """Both clusters; a guard in a process of its own ends them if we are killed."""
    WORK.mkdir(exist_ok=True)
    directory = WORK / f"run-{time.strftime('%H%M%S')}-{time.monotonic_ns() % 1000:03}"
    directory.mkdir()
    guard = Guard(directory)
    try:
        source, destination = (
            KafkaCluster(directory, name, heap_megabytes=BROKER_HEAP_MEGABYTES, properties=properties)
            for name, properties in (("source", SOURCE), ("destination", DESTINATION))
        )
        with _own_temporary_files(), source, destination:
            yield Ground(directory, source, destination)
    finally:
        guard.end()


@contextmanager
def _own_temporary_files() -> Iterator[None]:
    """What a program that is killed leaves behind goes with the run; its name is short, for sockets lie in there."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-", ignore_cleanup_errors=True) as place:
        os.environ["TMPDIR"] = place
        try:
            yield
        finally:
            os.environ.pop("TMPDIR")
            os.environ |= {"TMPDIR": before} if before else {}


def refuse_small_disk(needed_bytes: int) -> None:
    """The source's records and one copy must fit, with something left for everybody else."""
    free, wanted = shutil.disk_usage(WORK).free, 2 * needed_bytes + 5 * GIGABYTE
    if free < wanted:
        raise SystemExit(
            f"bench: {WORK}: {free / GIGABYTE:.0f} GB are free, {wanted / GIGABYTE:.0f} GB are needed: "
            f"free some, or ask for less with --seconds or --gigabytes"
        )


def create(cluster: KafkaCluster, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Creates a topic and returns when every partition has a leader."""
    admin = cluster.admin()
    wanted = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    for future in admin.create_topics([wanted], operation_timeout=SECONDS).values():
        future.result(SECONDS)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        known = admin.list_topics(topic, timeout=SECONDS).topics[topic]
        if len(known.partitions) == partitions and all(p.leader >= 0 for p in known.partitions.values()):
            return
        time.sleep(0.05)
    raise SystemExit(f"bench: topic {topic} has no leaders after {SECONDS:g} s")


def delete(admin: AdminClient, topics: list[str]) -> None:
    """Deletes those of the topics that are there."""
    if not topics:
        return
    for future in admin.delete_topics(topics, operation_timeout=SECONDS).values():
        try:
            future.result(SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def ends(admin: AdminClient, topic: str, partitions: int) -> list[int]:
    """The last stable offset of each partition; zeros while there is no such topic."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    futures = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS)
    found = [0] * partitions
    for partition, future in futures.items():
        try:
            found[partition.partition] = future.result(SECONDS).offset
        except KafkaException as error:
            if error.args[0].code() not in NOT_YET:
                raise
    return found


NOT_YET = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._NOENT,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._TIMED_OUT,
    KafkaError.UNKNOWN_LEADER_EPOCH,  # a broker that has not heard yet of its own new partitions
    KafkaError.FENCED_LEADER_EPOCH,
)
