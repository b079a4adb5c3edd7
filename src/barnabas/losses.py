"""Which source records are gone before they were copied, and how sure that is.

A broker that was paused, or cut off from its peers, answers with the log as it knew it. One answer is therefore no
evidence against a position. What counts: the end of a leader epoch (a leader that knows our epoch has seen what came
after it), our own notes of when a partition was followed, or an answer that lasts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from barnabas.errors import Unavailable
from barnabas.model import Followed, Loss, Offsets, Partition, Position, Range, TopicDescription

# A deposed leader that reaches its controller again steps down within seconds. One that does not is asked only by
# clients that get its metadata: each attempt is a new client, which begins with any of the bootstrap brokers. The
# pauses between attempts make that at least six clients in a minute.
LASTING_SECONDS = 60.0
LASTING_ANSWERS = 3
# For how many milliseconds a process that goes on may not have followed: two looks of its driver, a minute for a new
# epoch. A compacted topic that keeps deletions for less would report a loss at each of them.
HICCUP = 80_000

Evidence = Literal["proven", "answered", "outdated"]


@dataclass(frozen=True)
class FoundLoss:
    loss: Loss
    onward: int  # where the log allows copying to go on
    evidence: Evidence  # outdated: the leader that answered is older than the one that had our position

    def begins_anew(self, on_loss: str) -> bool:
        """Whether `start` says where to go on. Not for deletions: neither copying again nor skipping brings them."""
        return on_loss == "restart" and self.loss.what == "records"


def found_loss(
    partition: Partition,
    known: Position,
    topic: TopicDescription,
    log: Offsets,
    *,
    seen: Followed,
    cut: int | None = None,
    now: int = 0,
    goes_on: bool = False,
) -> FoundLoss | None:
    """What is lost between a position and its log. `cut`: where the leader epoch that had the position ends now.

    `goes_on`: this process has followed the partition in an earlier epoch.
    """
    nothing = Range(known.next, known.next)
    if known.topic_id != topic.topic_id:
        reason = f"topic {topic.name} was deleted and made anew; what it held past our position is gone"
        return FoundLoss(Loss(partition, nothing, reason), log.first, "answered")
    if cut is not None and cut < known.next:
        reason = (
            f"the log was cut off at {cut}, before our position {known.next}: leader epoch {seen.leader_epoch} had it "
            f"up to {min(seen.next, known.next)} and ends at {cut} now"
        )
        return FoundLoss(Loss(partition, nothing, reason), max(cut, log.first), "proven")
    evidence: Evidence = "outdated" if 0 <= log.leader_epoch < seen.leader_epoch else "answered"
    if known.next < log.first:
        reason = "retention deleted it before it was copied"
        return FoundLoss(Loss(partition, Range(known.next, log.first), reason), log.first, evidence)
    if known.next > log.end:
        reason = f"the log ends at {log.end}, before our position {known.next}: it was cut off"
        return FoundLoss(Loss(partition, nothing, reason), log.end, evidence)
    return _lost_deletions(partition, known, topic, log, since=seen.caught_up, now=now, pause=HICCUP if goes_on else 0)


def _lost_deletions(
    partition: Partition,
    known: Position,
    topic: TopicDescription,
    log: Offsets,
    *,
    since: int,
    now: int,
    pause: int,
) -> FoundLoss | None:
    """A tombstone written after the partition was last followed whole may be cleaned away, and its key with it.

    `since`: when it was followed whole; `pause`: for how long it need not be.
    """
    keeps = topic.keeps_deletions
    if keeps is None or not since or known.next >= log.end or now - since <= max(keeps, pause):
        return None
    away, kept = _hours(now - since), f"{_hours(keeps)} (delete.retention.ms={keeps})"
    reason = (
        f"deletions may be gone: the last time that nothing was left to copy is {away} ago, and this compacted topic "
        f"keeps deletions for {kept}. A key that was deleted meanwhile may stay at the destination for ever. To remove "
        f"such keys, delete the destination topic and run `position reset`"
    )
    return FoundLoss(Loss(partition, Range(known.next, log.end), reason, what="deletions"), known.next, "proven")


def _hours(millis: int) -> str:
    return f"{millis / 3_600_000:.1f} h" if millis >= 3_600_000 else f"{millis / 1000:.1f} s"


class Doubts:
    """Answers that contradict a position, and since when: a run keeps them over its epochs."""

    def __init__(self) -> None:
        self._since: dict[tuple[Partition, str], tuple[float, int]] = {}

    def settle(self, found: Iterable[FoundLoss], where: str) -> None:
        """Unavailable while a loss is only what a broker answered; what it answers no more is forgotten."""
        answered = {(it.loss.partition, it.loss.what): it for it in found if it.evidence != "proven"}
        since = {what: self._since.get(what, (time.monotonic(), 0)) for what in answered}
        self._since = {what: (first, count + 1) for what, (first, count) in since.items()}
        for what, it in answered.items():
            first, count = self._since[what]
            if it.evidence == "outdated":
                raise Unavailable(
                    f"{where}: {it.loss.partition}: {it.loss.reason}; but the broker that answered is not the "
                    "last leader we know: is it cut off from the other brokers? It is asked again until a newer one "
                    "answers. If the cluster was restored from a backup, stop the mirror and use `position set`"
                )
            if time.monotonic() - first < LASTING_SECONDS or count < LASTING_ANSWERS:
                raise Unavailable(
                    f"{where}: {it.loss.partition}: {it.loss.reason}; a broker that lags behind answers so too, so the "
                    f"answer must last for {LASTING_SECONDS:.0f} s"
                )
