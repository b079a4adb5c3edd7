"""What a contender did over time: samples of its copy's ends, its CPU and its memory, and what they say."""

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from barnabas.lab.cluster import KafkaCluster
from bench.ground import ends
from bench.processes import Program, cpu_seconds, machine_busy_seconds
from bench.shapes import tail

SAMPLE_SECONDS = 0.2
MEMORY_SECONDS = 1.0
READ_SECONDS = 30.0
MARKERS = 300  # how far before the end the last record may lie, behind markers of transactions


@dataclass(frozen=True)
class Sample:
    """One look. `offsets`: the sum of the last stable offsets; CPU in seconds since each one's start."""

    at: float
    offsets: int
    cpu: float
    broker_cpu: float
    machine_cpu: float


@dataclass(frozen=True)
class Steady:
    """The steady part of a run, in records (not offsets: transactions' markers take offsets too)."""

    seconds: float
    records: int
    rate: float
    cpu_per_million: float
    broker_cpu_per_million: float
    elsewhere: float  # share of a core that everybody else had meanwhile


@dataclass
class Meter:
    """Looks at a program until stopped; reading the samples is safe meanwhile."""

    program: Program
    cluster: KafkaCluster
    topic: str
    partitions: int
    broker_pids: Sequence[int]
    samples: list[Sample] = field(default_factory=list)
    peak_memory: int = 0
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._admin = self.cluster.admin()
        self._done = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(it,), daemon=True) for it in (self._look, self._weigh)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    @property
    def offsets(self) -> int:
        return self.samples[-1].offsets if self.samples else 0

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the run
            self.failure = error

    def _look(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            offsets = sum(ends(self._admin, self.topic, self.partitions))
            cpu, brokers = self.program.cpu_seconds(), cpu_seconds(self.broker_pids)
            self.samples.append(Sample(time.monotonic(), offsets, cpu, brokers, machine_busy_seconds()))

    def _weigh(self) -> None:
        while not self._done.wait(MEMORY_SECONDS):
            self.peak_memory = max(self.peak_memory, self.program.memory_bytes())


def steady(samples: Sequence[Sample], *, warm_seconds: float, total: int, per_offset: float) -> Steady | None:
    """The part after the warm-up and before the tail; None when there is too little of it.

    The warm-up begins with the first copied record and lasts `warm_seconds`, or until half of all is copied where
    that is sooner. The tail is the last twentieth. Both ends are moved to samples at which the copy grew: a commit
    that lies just outside would make a short run look faster or slower than it is.
    """
    grown = [new for old, new in itertools.pairwise(samples) if new.offsets > old.offsets]
    if not grown:
        return None
    began = grown[0].at
    inside = [
        it
        for it in grown
        if (it.at >= began + warm_seconds or it.offsets * per_offset >= total / 2)
        and it.offsets * per_offset <= 0.95 * total
    ]
    if len(inside) < 3:
        return None
    first, last = inside[0], inside[-1]
    seconds, records = last.at - first.at, (last.offsets - first.offsets) * per_offset
    cpu, brokers = last.cpu - first.cpu, last.broker_cpu - first.broker_cpu
    elsewhere = (last.machine_cpu - first.machine_cpu - cpu - brokers) / seconds
    return Steady(
        seconds=seconds,
        records=round(records),
        rate=records / seconds,
        cpu_per_million=cpu / records * 1e6,
        broker_cpu_per_million=brokers / records * 1e6,
        elsewhere=max(0.0, elsewhere),
    )


def records_per_offset(cluster: KafkaCluster, topic: str, partitions: int) -> tuple[float, bytes]:
    """How many records there are for each offset of a copy, and the value of one last record.

    The last record of a partition tells its number at the source; its offset here counts the markers as well.
    """
    settings = {"group.id": "bench", "isolation.level": "read_committed", "enable.partition.eof": True, "log_level": 0}
    settings |= {"fetch.wait.max.ms": 10}  # there is nothing to wait for, and many partitions to go through
    consumer = Consumer({**cluster.client_settings(), **settings})
    records = offsets = 0
    value = b""
    try:
        for partition, end in enumerate(ends(cluster.admin(), topic, partitions)):
            consumer.assign([TopicPartition(topic, partition, max(0, end - MARKERS))])
            last = None
            deadline = time.monotonic() + READ_SECONDS
            while time.monotonic() < deadline:
                message = consumer.poll(1.0)
                if message is not None and message.error():
                    break
                last = last if message is None else message  # a message of no bytes is false
            if last is not None:
                value = last.value() or b""
                records += tail(value) + 1
                offsets += (last.offset() or 0) + 1
    finally:
        consumer.close()
    return (records / offsets if offsets else 1.0), value
