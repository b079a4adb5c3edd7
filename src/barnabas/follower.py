"""What a running mirror notes of its source for later starts: leader epochs, and when nothing was left to copy."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

from barnabas.board import MirrorBoard
from barnabas.errors import BarnabasError, Unavailable
from barnabas.kafka.epoch_ends import epoch_ends
from barnabas.ledger import records
from barnabas.model import Ends, Followed, Partition
from barnabas.preparation import Prepared, write_to_ledger
from barnabas.survey import Surveyor

OFTEN, SELDOM = 10_000, 60_000  # milliseconds between two notes of a quiet compacted topic

log = logging.getLogger(__name__)


class Follower:
    """Asks for the ends of the source's logs in an interval and writes what is new into the ledger."""

    SECONDS = 10.0
    ANSWER_SECONDS = 2.0  # an unreachable source is Spark's to report; the mirror's thread must not wait for it
    LAST_SECONDS = 1.0  # at a clean end, which is one of several waits of a stop

    def __init__(self, surveyor: Surveyor, prepared: Prepared) -> None:
        self._surveyor = surveyor
        self._task = prepared.task
        self._noted = dict(prepared.seen)
        self._keeps = prepared.keeps
        self._ids = {route.source: route.topic_id for route in prepared.plan.routes}
        self._caught_up = CaughtUp()
        self._given_up = threading.Event()
        self._due = time.monotonic() + self.SECONDS

    def look(self, board: MirrorBoard, *, now: bool = False) -> None:
        """Looks when it is due; Unavailable when a source log was cut off. What cannot be asked now is asked later."""
        if not now and time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self.SECONDS
        committed = dict(board.committed)  # before the ends are asked: a leader that answers has all of it
        try:
            ends = self._surveyor.source.ends(committed, self.ANSWER_SECONDS)
            cut = self._cut(ends)
        except Unavailable as silent:
            log.info("%s: ends of the source's logs are not known now: %s", self._surveyor.mirror.name, silent)
            return
        if cut:
            raise Unavailable(f'mirror "{self._surveyor.mirror.name}": {cut}; a new epoch examines it')
        board.undecided = {partition: end.last - end.stable for partition, end in ends.items()}
        at = records.now()
        seen = {p: self._seen(p, committed[p], end, at) for p, end in ends.items() if committed[p] <= end.stable}
        news = {p: it for p, it in seen.items() if is_news(self._noted.get(p), it, self._keeps.get(p.topic))}
        if self._given_up.is_set():  # the next epoch may have begun
            return
        write_to_ledger(self._task, [(records.followed_key(p), records.followed_value(it)) for p, it in news.items()])
        self._noted |= news

    def look_last(self, board: MirrorBoard) -> None:
        """At a clean end, which waits only a moment for it: without it the note of the last look counts."""

        def look() -> None:
            try:
                self.look(board, now=True)
            except BarnabasError as failure:
                log.info("%s: the end is not noted: %s", self._surveyor.mirror.name, failure)

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        looking.join(self.LAST_SECONDS)
        self._given_up.set()

    def _cut(self, ends: Mapping[Partition, Ends]) -> str | None:
        """A sentence about a log whose new leader lacks what the leader of our last look had."""
        led = {
            partition: noted
            for partition, noted in self._noted.items()
            if partition in ends and 0 <= noted.leader_epoch < ends[partition].leader_epoch
        }
        epochs = {partition: noted.leader_epoch for partition, noted in led.items()}
        for partition, end in epoch_ends(self._surveyor.to_source, epochs, self.ANSWER_SECONDS).items():
            if end < led[partition].next:
                return f"the log of {partition} was cut off at {end}, before {led[partition].next}, which was copied"
        return None

    def _seen(self, partition: Partition, copied: int, end: Ends, at: int) -> Followed:
        noted = self._noted.get(partition)
        caught_up = self._caught_up.time(partition, copied, end.stable, at)
        if caught_up is None:
            caught_up = noted.caught_up if noted else 0
        return Followed(copied, self._ids[partition.topic], end.leader_epoch, caught_up)


class CaughtUp:
    """When everything of a partition had last been copied, also where records flow without a pause."""

    def __init__(self) -> None:
        self._marks: dict[Partition, tuple[int, int]] = {}  # an end that is not reached yet, and when it was the end

    def time(self, partition: Partition, copied: int, end: int, at: int) -> int | None:
        """The time of the last look whose end is copied now; None while none is."""
        if copied >= end:
            self._marks.pop(partition, None)
            return at
        mark, since = self._marks.setdefault(partition, (end, at))
        if copied < mark:
            return None
        self._marks[partition] = end, at
        return since


def is_news(noted: Followed | None, seen: Followed, keeps: int | None) -> bool:
    """Whether the ledger should have it. `keeps`: for how many milliseconds the topic keeps deletions, if compacted."""
    if noted is None:
        return True
    if seen.leader_epoch < noted.leader_epoch:  # the answer of a leader that was deposed
        return False
    if (noted.next, noted.leader_epoch) != (seen.next, seen.leader_epoch):
        return True
    return keeps is not None and seen.caught_up - noted.caught_up >= min(SELDOM, max(OFTEN, keeps // 20))
