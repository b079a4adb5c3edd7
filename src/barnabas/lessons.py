"""What failures have taught a run: how its next epoch differs from the one that failed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError, TooLarge, TopicsNeeded, Untimely
from barnabas.failures import BatchTooLarge, Unreadable
from barnabas.hub_topics import HubTopics
from barnabas.model import ANY_TIME, Partition

MOST_TIMES = 3
MARGIN_MILLIS = 300_000  # of clocks that differ

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Unread:
    """Where a record is that Spark cannot bring, and how often an epoch ended at it."""

    partition: Partition
    offset: int
    times: int = 1


class Lessons:
    """For all epochs of one run."""

    def __init__(self, mirror: Mirror) -> None:
        self.hub = HubTopics(mirror)  # of a demux
        self.weighs = False  # whether its records are so large that batches of them are weighed
        self.strict = False  # whether sizes are judged before compression: a broker has refused a record
        self.margin = 0  # milliseconds that timestamps must be within a topic's limits: a broker has refused one
        self.unread: Unread | None = None
        self._sets_aside = mirror.on_bad_record == "quarantine"

    def learn(self, failure: BarnabasError, *, can_weigh: Callable[[], bool]) -> bool:
        """Whether the next epoch differs because of this failure, and so may begin at once."""
        if isinstance(failure, TopicsNeeded):
            self.hub.meet(failure.needed())
        elif isinstance(failure, BatchTooLarge) and not self.weighs and can_weigh():
            log.info("%s; from here on batches are weighed", failure)
            self.weighs = True
        elif isinstance(failure, TooLarge) and not self.strict and self._sets_aside:
            log.info("%s; from here on records are judged by their size before compression", failure)
            self.strict = True
        elif isinstance(failure, Untimely) and not self.margin and self._sets_aside:
            log.info("%s; from here on timestamps within 5 minutes of a topic's limits are set aside", failure)
            self.margin = MARGIN_MILLIS
        elif isinstance(failure, Unreadable) and self._sets_aside:
            return self._go_around(failure)
        else:
            return False
        return True

    def nearer(self, limit: int) -> int:
        """A limit of timestamps, less what our clock and the broker's may differ by."""
        return limit if limit == ANY_TIME else max(0, limit - self.margin)

    def _go_around(self, failure: Unreadable) -> bool:
        """One epoch copies what is before the record and ends at it again, the next one sets it aside."""
        place = failure.place()
        if place is None:
            return False
        before = self.unread
        times = before.times + 1 if before and place == (before.partition, before.offset) else 1
        self.unread = Unread(*place, times)
        log.info("%s; it is set aside", failure)
        return times <= MOST_TIMES
