"""What the driver looks at while a query runs: a newer epoch, changed topics, positions that stand still."""

from __future__ import annotations

import logging
import time

from barnabas.errors import Unavailable
from barnabas.ledger.alive import SignsOfLife
from barnabas.ledger.tail import LedgerTail
from barnabas.model import Partition, Range
from barnabas.preparation import Prepared
from barnabas.step import keep_in_step
from barnabas.survey import Surveyor

log = logging.getLogger(__name__)


class Watch:
    """Looks at each thing in its own interval; called often, asks seldom."""

    TOPIC_SECONDS = 10.0
    ADVANCE_SECONDS = 1.0
    ALIVE_SECONDS = 10.0

    def __init__(self, surveyor: Surveyor, prepared: Prepared) -> None:
        self._surveyor = surveyor
        self._ledger = surveyor.mirror.ledger_topic
        self._plan = prepared.plan
        self._epoch = prepared.epoch.number
        self._ledger_id = prepared.ledger_id
        self.tail = LedgerTail(surveyor.to_destination, prepared.epoch)
        self._shape = {route.source: (route.topic_id, route.partitions) for route in prepared.plan.routes}
        self._stood_at: dict[Partition, int] = {}
        self._due = dict.fromkeys(("topics", "advance"), time.monotonic()) | {"alive": 0.0}
        self._run = prepared.epoch.run
        self._signs = SignsOfLife(surveyor.to_destination, self._ledger)

    def _refuse_another_ledger(self) -> None:
        there = self._surveyor.destination.topics([self._ledger]).get(self._ledger)
        if there is None or there.topic_id != self._ledger_id:
            raise Unavailable(f"ledger {self._ledger} is not the one this run began with: was it deleted?")

    def give_sign_of_life(self) -> None:
        """Tells `status` and `position` that this mirror runs."""
        if self._is_due("alive", self.ALIVE_SECONDS):
            self._signs.give(self._run, self._epoch)

    def topics_changed(self) -> bool:
        """True when a topic appeared, grew or was made anew; one that vanished is left. Keeps settings in step."""
        if not self._is_due("topics", self.TOPIC_SECONDS):
            return False
        self._refuse_another_ledger()
        topics = self._surveyor.topics()
        for topic, changes in keep_in_step(self._surveyor, self._plan, topics).items():
            log.info("%s: settings of %s follow the source: %s", self._surveyor.mirror.name, topic, changes)
        found = {t.name: (t.topic_id, t.partitions) for t in topics.values()}
        return any(self._shape.get(name) != shape for name, shape in found.items())

    def stale(self, behind: dict[Partition, Range]) -> dict[Partition, int]:
        """Of the partitions behind their plan, those whose position stood there a moment ago: where it must go.

        The position is looked at, not the plan's end: where records flow of which none is copied, that end never rests.
        """
        if not self._is_due("advance", self.ADVANCE_SECONDS):
            return {}
        standing = {p: left.next for p, left in behind.items() if self._stood_at.get(p) == left.first}
        self._stood_at = {p: left.first for p, left in behind.items()}
        return standing

    def is_due(self) -> bool:
        """Whether there is anything to look at now."""
        every = {"topics": self.TOPIC_SECONDS, "advance": self.ADVANCE_SECONDS, "alive": self.ALIVE_SECONDS}
        return any(time.monotonic() >= self._due[what] + seconds for what, seconds in every.items())

    def close(self) -> None:
        self.tail.close()
        self._signs.close()

    def _is_due(self, what: str, seconds: float) -> bool:
        if time.monotonic() < self._due[what] + seconds:
            return False
        self._due[what] = time.monotonic()
        return True
