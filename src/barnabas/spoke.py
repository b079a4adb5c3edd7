"""What a mux tells of where a record came from: its headers' names, their order, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

TOPIC = "MUX_SOURCE_TOPIC"
PARTITION = "MUX_SOURCE_TOPIC_PARTITION"
PARTITIONS = "MUX_SOURCE_TOPIC_PARTITIONS"
TIMESTAMP = "MUX_SOURCE_TIMESTAMP"
BOOTSTRAP = "MUX_SOURCE_BOOTSTRAP_SERVERS"
INTERMEDIATE = "MUX_INTERMEDIATE_TOPIC"
IDENTIFIER = "MUX_SOURCE_IDENTIFIER"
CLUSTER_ID = "MUX_SOURCE_CLUSTER_ID"
ALL = (TOPIC, PARTITION, PARTITIONS, TIMESTAMP, BOOTSTRAP, INTERMEDIATE, IDENTIFIER, CLUSTER_ID)

Told = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Spoke:
    """Where the records of a mux come from."""

    identifier: str
    bootstrap: str
    cluster_id: str
    intermediate: str

    def around_timestamp(self, topic: str, partition: int, partitions: int) -> tuple[Told, Told]:
        """What stands before and after the timestamp: the same for all records of a source partition."""
        before = {TOPIC: topic, PARTITION: str(partition), PARTITIONS: str(partitions)}
        after = {
            BOOTSTRAP: self.bootstrap,
            INTERMEDIATE: self.intermediate,
            IDENTIFIER: self.identifier,
            CLUSTER_ID: self.cluster_id,
        }
        return _told(before), _told(after)


def _told(texts: dict[str, str]) -> Told:
    return tuple((name, text.encode()) for name, text in texts.items())
