"""The words of Barnabas as values: what a mirror is made of once it runs. No Spark, no configuration, no clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

Properties = Mapping[str, str | int | float | bool]
USUAL_LARGEST = 1_048_588  # max.message.bytes of a broker that says nothing
ANY_TIME = 2**63 - 1  # milliseconds: no limit
# What Spark keeps of a timestamp as it is: it moves what is before 15 October 1582 by the days the calendar left out,
# and counts microseconds.
FIRST_MILLISECOND, LAST_MILLISECOND = -12_219_292_800_000, (2**63 - 1) // 1000


@dataclass(frozen=True)
class Connection:
    """How librdkafka reaches one cluster. Its text is the cluster's name, because properties hold secrets.

    It cannot be pickled, because Spark would serve it to whoever asks for the task: see `worker/sealed.py`.
    """

    cluster: str
    bootstrap: str
    properties: Properties = field(repr=False)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f'the connection to "{self.cluster}" holds secrets and does not leave this process')


@dataclass(frozen=True, order=True)
class Partition:
    """One partition of a source topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True)
class Route:
    """One source topic and the destination topic it becomes.

    `number` stands for the route in Spark's rows: eight bytes a record instead of a name.
    """

    number: int
    source: str
    topic_id: str
    destination: str
    partitions: int


@dataclass(frozen=True)
class Position:
    """The next source offset to copy, and which topic of that name it belongs to."""

    next: int
    topic_id: str
    epoch: int = -1
    at: int = 0  # milliseconds when it was written
    leader_epoch: int = -1  # of the source partition: a leader of this epoch had everything before `next`


@dataclass(frozen=True)
class Followed:
    """What the driver saw of one source partition when it looked: evidence for later starts."""

    next: int  # all records before it were copied, and the leader of this epoch had them
    topic_id: str
    leader_epoch: int = -1  # -1: the brokers do not report it
    caught_up: int = 0  # milliseconds: the last time at which nothing was left to copy


@dataclass(frozen=True)
class Range:
    """Half-open [first, next) of source offsets."""

    first: int
    next: int

    def __len__(self) -> int:
        return max(0, self.next - self.first)


@dataclass(frozen=True)
class Receipt:
    """What one task proved it wrote of one source partition."""

    route: int
    partition: int
    first: int
    next: int
    records: int
    bytes: int
    quarantined: int
    destination_first: int
    destination_last: int
    commit_millis: int


@dataclass(frozen=True)
class Loss:
    """Source records that are gone before they were copied; `what`: records, or deletions of a compacted topic."""

    partition: Partition
    range: Range
    reason: str
    at: int = 0
    what: str = "records"


@dataclass(frozen=True)
class TopicDescription:
    """A topic as a cluster describes it: `settings` were made on it, `largest` it may have from its broker."""

    name: str
    topic_id: str
    partitions: int
    replication: int
    settings: Mapping[str, str] = field(default_factory=dict)
    largest: int = USUAL_LARGEST  # bytes of a batch, and so of a record: its max.message.bytes
    ahead: int = ANY_TIME  # milliseconds that a record's timestamp may lie before and after the broker's clock
    behind: int = ANY_TIME
    keeps_deletions: int | None = None  # milliseconds: the effective delete.retention.ms of a compacted topic


@dataclass(frozen=True)
class Ends:
    """Where a log ends: past its last stable record, past its last one, and by which leader epoch."""

    stable: int
    last: int
    leader_epoch: int = -1


@dataclass(frozen=True)
class Offsets:
    """The first offset a log still has, and the one past its last stable record."""

    first: int
    end: int
    leader_epoch: int = -1  # of the leader that answered; -1: it did not report its epoch
