"""What two clusters and a ledger might say, for plans to be made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from barnabas.ledger import records
from barnabas.ledger.state import LedgerState
from barnabas.model import USUAL_LARGEST, Offsets, Partition, Position, TopicDescription
from barnabas.plan import Survey


def topic(
    name: str, partitions: int = 1, *, topic_id: str = "", replication: int = 1, **settings: str
) -> TopicDescription:
    """`retention_ms="5"` stands for the setting retention.ms."""
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    largest = int(dotted.get("max.message.bytes", USUAL_LARGEST))
    return TopicDescription(name, topic_id or f"id-{name}", partitions, replication, dotted, largest)


def ledger(positions: Mapping[Partition, Position], *, source_cluster: str = "source-cluster") -> LedgerState:
    state = LedgerState("_barnabas.m")
    state.add(0, records.epoch_key("a"), records.epoch_value("an earlier run", source_cluster, seen=0))
    for at, (partition, position) in enumerate(positions.items(), 1):
        state.add(at, records.position_key(partition), records.position_value(position))
    return state


@dataclass(frozen=True)
class Clusters:
    """Both sides; every partition's log is [0, 100) and starts at 0 unless said otherwise."""

    source: tuple[TopicDescription, ...]
    destination: tuple[TopicDescription, ...] = ()
    logs: Mapping[Partition, Offsets] = field(default_factory=dict)
    starts: Mapping[Partition, int] = field(default_factory=dict)
    positions: Mapping[Partition, Position] | None = None

    def survey(self) -> Survey:
        partitions = [Partition(t.name, n) for t in self.source for n in range(t.partitions)]
        logs = {p: self.logs.get(p, Offsets(0, 100)) for p in partitions}
        return Survey(
            source_id="source-cluster",
            destination_id="destination-cluster",
            source={t.name: t for t in self.source},
            offsets=logs,
            starts={p: self.starts.get(p, log.first) for p, log in logs.items()},
            restarts={p: self.starts.get(p, log.first) for p, log in logs.items()},
            destination={t.name: t for t in self.destination},
            ledger=None if self.positions is None else ledger(self.positions),
        )

    def at(
        self, position: int, *, topic_id: str = "id-orders", log: tuple[int, int], start: int | None = None
    ) -> Clusters:
        """The same with partition 0 of `orders` known at `position` and its log as given."""
        first = Partition("orders", 0)
        return replace(
            self,
            positions={first: Position(position, topic_id, 3, 99)},
            logs={first: Offsets(*log)},
            starts={} if start is None else {first: start},
        )
