"""The same mirror, directly and through the tunnel, in turn: two source clusters with the same records, one copy each.

Two clusters, because a broker has one advertised address: one advertises its own, the other the tunnel's.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.process import Process
from bench.tunnel_ways import barnabas, configured, running

RECORDS, PARTITIONS, VALUE = 3_000_000, 4, bytes(100)
MIRROR_SECONDS = 300.0
START_SECONDS = 60.0


@dataclass(frozen=True)
class Lands:
    """The clusters, up and filled."""

    folder: Path
    direct: str
    tunnelled: str
    destination: str

    def mirrored(self, source: str, copy: str) -> float:
        """Records a second of one mirror, from the first that is seen at the destination to the last."""
        file = configured(self.folder / "mirror.yaml", source, self.destination, copy)
        command = [sys.executable, "-m", "barnabas.cli", "run", "-c", str(file), "--until-caught-up"]
        with running(self.folder, {f"mirror-{copy}": command}) as [mirror]:
            pace = _pace(self.destination, copy, mirror)
            mirror.wait(START_SECONDS)
        admin = AdminClient(
            {"bootstrap.servers": self.destination, "log_level": 0}
        )  # named: it must live until the topic is gone
        admin.delete_topics([copy])[copy].result(START_SECONDS)
        return pace


@contextmanager
def lands(folder: Path) -> Iterator[Lands]:
    """Two sources and a destination; the tunnel to the second source runs."""
    near = KafkaCluster(folder, "direct", hosts=["127.0.0.1"])
    far = KafkaCluster(folder, "tunnelled", hosts=["127.0.1.1"])
    with near, far, KafkaCluster(folder, "destination") as destination, barnabas(folder, far.ports[0]):
        AdminClient({"bootstrap.servers": far.bootstrap, "log_level": 0}).list_topics(timeout=START_SECONDS)
        for source in (near, far):
            _write_records(source.bootstrap)
        yield Lands(folder, near.bootstrap, far.bootstrap, destination.bootstrap)


def _write_records(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("bench", PARTITIONS, 1)])["bench"].result(START_SECONDS)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 200_000})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce("bench", VALUE, b"%d" % number, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise SystemExit("bench: the records could not be written")


def _pace(bootstrap: str, topic: str, mirror: Process) -> float:
    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "isolation.level": "read_uncommitted", "log_level": 0}
    )
    deadline, first, seen = time.monotonic() + MIRROR_SECONDS, 0.0, 0
    try:
        while time.monotonic() < deadline:
            alive = mirror.pid is not None
            count, now = _count(reader, topic), time.monotonic()
            if count >= RECORDS:  # markers count too, a few among the records
                return (RECORDS - seen) / (now - first)
            if count and not seen:
                first, seen = now, count
            if not alive:
                raise SystemExit(f"bench: the mirror ended after {count} of {RECORDS} records: {mirror.log_tail()}")
            time.sleep(0.02)
    finally:
        reader.close()
    raise SystemExit(f"bench: the mirror has not copied {RECORDS} records in {MIRROR_SECONDS:g} s")


def _count(reader: Consumer, topic: str) -> int:
    """Records in the topic; 0 while it is being made."""
    parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    try:
        return sum(reader.get_watermark_offsets(part, timeout=30)[1] for part in parts)
    except KafkaException:
        return 0
