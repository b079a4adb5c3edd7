"""The settings of topics that a mirror makes: those of their source, and what the mirror says instead. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.config.mirror import Mirror
from barnabas.model import TopicDescription

# Not message.timestamp.type: a broker that stamps records itself would alter ours. Nor message.timestamp.before.max.ms:
# what was young enough for the source when it was written may be too old when it is copied.
COPIED_SETTINGS = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)
LARGEST_RECORD = 2**31 - 1
QUARANTINE_SETTINGS = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": str(LARGEST_RECORD),  # a bad record of any size must find room
}
MUX_ROOM = 65_536


def wanted_settings(mirror: Mirror, source: TopicDescription) -> dict[str, str]:
    """The settings of a copy: the source's own, and what the mirror says instead.

    Where the source says nothing, records keep their timestamps, whatever the destination's brokers would do.
    """
    settings = {"message.timestamp.type": "CreateTime"}
    settings |= {key: value for key, value in source.settings.items() if key in COPIED_SETTINGS}
    return settings | {key: _text(value) for key, value in mirror.topics.settings.items()}


def carrying_settings(mirror: Mirror, sources: Iterable[TopicDescription]) -> dict[str, str]:
    """The settings of an intermediate topic: no copy of any, with room for the largest record and its MUX headers.

    It stamps records itself, so that old ones are not gone before a demux has read them: the headers keep their time.
    """
    room = min(max(topic.largest for topic in sources) + MUX_ROOM, LARGEST_RECORD)
    settings = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(room)}
    return settings | {key: _text(value) for key, value in mirror.topics.settings.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
