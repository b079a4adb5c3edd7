"""What a mux tells of where a record came from: its headers' names, their order, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
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
MOST_PARTITIONS = 10_000  # of an original topic: a larger number is a mistake, and would be made at the hub
MOST_SHOWN = 60  # characters

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


def misplaced(headers: Sequence[tuple[str, bytes | None]]) -> str:
    """Why a demux cannot place a record with these headers: which header, and what it holds. The last of a name counts.

    Only for records that Spark found no place for, so what is left in the end is the topic's name.
    """
    held = dict(headers)
    for name in (TOPIC, PARTITION):
        if not held.get(name):
            return f"header {name} is {'empty' if name in held else 'missing'}"
    partition, count = _number(held[PARTITION]), _number(held.get(PARTITIONS, b"%d" % MOST_PARTITIONS))
    if partition is None or not 0 <= partition < MOST_PARTITIONS:
        return f"header {PARTITION} holds {_shown(held[PARTITION])}, no partition from 0 to {MOST_PARTITIONS - 1:,}"
    if count is None or not partition < count <= MOST_PARTITIONS:
        return (
            f"header {PARTITIONS} holds {_shown(held[PARTITIONS])}, no count of partitions above {partition} "
            f"and up to {MOST_PARTITIONS:,}"
        )
    identifier = f" and {IDENTIFIER} {_shown(held[IDENTIFIER])}" if IDENTIFIER in held else f" and no {IDENTIFIER}"
    return f"header {TOPIC} holds {_shown(held[TOPIC])}: with it{identifier}, `to` makes no legal name of a topic"


def _number(text: bytes | None) -> int | None:
    try:
        return int((text or b"").decode())
    except ValueError:
        return None


def _shown(value: bytes | None) -> str:
    """A header's value in a message, of which a spoke may write any."""
    text = (value or b"").decode(errors="backslashreplace")
    return ascii(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


def _told(texts: dict[str, str]) -> Told:
    return tuple((name, text.encode()) for name, text in texts.items())
