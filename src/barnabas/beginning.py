"""`start: {offsets: …}` against the topics that are there: a wrong number is told, never bent into a right one."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError
from barnabas.model import Offsets, Partition
from barnabas.naming import selected


def refuse_foreign_topics(mirror: Mirror) -> None:
    """ConfigError for offsets of a topic that the mirror never takes. One that does not exist yet is fine."""
    taken = ", ".join((*mirror.select.names, *mirror.select.match))
    for topic in mirror.start.offsets:
        if not selected(mirror, [topic]):
            raise ConfigError(f"{_where(mirror)}: the mirror takes no topic {topic}; it takes {taken}")


def refuse_outside(mirror: Mirror, logs: Mapping[Partition, Offsets]) -> None:
    """ConfigError for a partition or an offset that a topic does not have; `logs` are those without a position."""
    for topic, chosen in mirror.start.offsets.items():
        there = sorted(partition.number for partition in logs if partition.topic == topic)
        for number, at in chosen.items() if there else ():
            if number not in there:
                raise ConfigError(
                    f"{_where(mirror)}: {topic} has no partition {number}; it has {len(there)}, from 0 to {there[-1]}"
                )
            log = logs[Partition(topic, number)]
            if not log.first <= at <= log.end:
                raise ConfigError(
                    f"{_where(mirror)}: {topic}-{number}: {at} is outside the log, which is [{log.first}, {log.end}); "
                    f"write an offset that is there, or earliest or latest"
                )


def _where(mirror: Mirror) -> str:
    return f'{mirror.place}: mirror "{mirror.name}": start.offsets'
