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

log = logging.getLogger(__name__)


class Follower:
    """Asks for the ends of the source's logs in an interval and writes what is new into the ledger."""

    SECONDS = 10.0
    ANSWER_SECONDS = 2.0  # an unreachable source is Spark's to report; the mirror's thread must not wait for it
    QUIET_MILLIS = 10_000, 60_000  # how often at most, and at least, a compacted topic's `caught_up` is written

    def __init__(self, surveyor: Surveyor, prepared: Prepared) -> None:
        self._surveyor = surveyor
        self._task = prepared.task
        self._noted = dict(prepared.seen)
        self._keeps = prepared.keeps
        self._ids = {route.source: route.topic_id for route in prepared.plan.routes}
        self._marks: dict[Partition, tuple[int, int]] = {}  # an end, and when it was the end
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
        news = {p: it for p, it in seen.items() if self._is_news(p, it)}
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
        looking.join(self.ANSWER_SECONDS)

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
        """`caught_up`: the time of the last look whose end has been reached since; records may flow without a pause."""
        mark, since = self._marks.get(partition, (end.stable, at))
        noted = self._noted.get(partition)
        caught_up = noted.caught_up if noted else 0
        if copied >= end.stable:
            caught_up = at
        elif copied >= mark:
            caught_up = since
        if copied >= mark or partition not in self._marks:
            self._marks[partition] = end.stable, at
        return Followed(copied, self._ids[partition.topic], end.leader_epoch, caught_up)

    def _is_news(self, partition: Partition, seen: Followed) -> bool:
        noted, keeps = self._noted.get(partition), self._keeps.get(partition.topic)
        if noted is None or (noted.next, noted.leader_epoch) != (seen.next, seen.leader_epoch):
            return noted is None or seen.leader_epoch >= noted.leader_epoch  # else the answer is an old leader's
        if keeps is None:
            return False
        shortest, longest = self.QUIET_MILLIS
        return seen.caught_up - noted.caught_up >= min(longest, max(shortest, keeps // 20))
