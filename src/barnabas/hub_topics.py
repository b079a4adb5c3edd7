"""The topics at the hub that a demux's records belong to, and a bound on how many partitions they may order.

Any spoke can write any name and any count of partitions into its headers. What is there already costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.mirror import Mirror
from barnabas.errors import Refused
from barnabas.model import TopicDescription

MOST_DECLINED = 1_000  # topics, for each of which an epoch may end


class HubTopics:
    """What the demux of one run has met: topics that it may write, and topics that it may not make."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.met: dict[str, tuple[str, int]] = {}  # destination topic → source topic and its partitions
        self.declined: frozenset[str] = frozenset()
        self._asked: dict[str, tuple[str, int]] = {}
        self._made = 0

    @property
    def names(self) -> list[str]:
        """All that a survey must ask the hub for."""
        return [*self.met, *self._asked]

    def meet(self, needed: Mapping[str, tuple[str, int]]) -> None:
        """Records need these; the next survey tells which are there."""
        self._asked |= needed

    def admit(self, there: Mapping[str, TopicDescription]) -> None:
        """Takes in what was met, as long as it fits into `topics.create_at_most`; Refused when that has no end."""
        most = self._mirror.topics.create_at_most
        for name, (source, count) in self._asked.items():
            new = max(0, count - (there[name].partitions if name in there else 0))
            if self._made + new > most:
                self.declined |= {name}
            else:
                self.met[name] = source, count
                self._made += new
        self._asked = {}
        if len(self.declined) > MOST_DECLINED:
            raise Refused(
                f'mirror "{self._mirror.name}": records name more than {MOST_DECLINED:,} topics beyond the {most:,} '
                f"partitions that `topics.create_at_most` allows: does the spoke invent topics? Raise it if it does not"
            )
