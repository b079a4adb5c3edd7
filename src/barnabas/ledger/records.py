"""What stands in a ledger: JSON keys and values a person can read with any Kafka console.

    {"kind":"epoch"}                                       who runs the mirror; its offset is the epoch's number
    {"kind":"writer","id":…,"epoch":…}                     a transactional id that may write in that epoch
    {"kind":"position","topic":…,"partition":…}            the next offset to copy, written with the records (A)
    {"kind":"advance","topic":…,"partition":…}             the same past records that no reader will ever see
    {"kind":"followed","topic":…,"partition":…}            where the mirror stood when its driver looked, the leader
                                                           epoch of the source then, and when it last had everything
    {"kind":"loss","topic":…,"partition":…,"first":…}      source records that were gone before they were copied
    {"kind":"takes"}                                       the mirror's `from`: all it took then has a position; and
                                                           over how many partitions a mux spreads its sources
    {"kind":"alive"}                                       the running epoch's sign of life, struck out at its end
    {"kind":"act","at":…}                                  what a person did to the positions

Positions and advances have keys of their own because compaction keeps the last record of a key: an advance,
written by the driver beside running tasks, may be older news than a position and must never replace it (E).
The position of a partition is the larger of the two. A position may hold the source's `leader_epoch` too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from barnabas.errors import Refused
from barnabas.model import Followed, Loss, Partition, Position, Range

VERSION = 3  # the second has `takes`, the third `followed` and `leader_epoch`
ALIVE_MILLIS = 30_000


def encoded(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()


def epoch_key() -> bytes:
    return encoded({"kind": "epoch"})


def epoch_value(run: str, source_id: str) -> bytes:
    return encoded({"version": VERSION, "run": run, "source_cluster": source_id, "at": now()})


def writer_key(transactional_id: str, epoch: int) -> bytes:
    """Holds the epoch too: a late tombstone of an old epoch must never hide a new registration."""
    return encoded({"kind": "writer", "id": transactional_id, "epoch": epoch})


def writer_value(run: str) -> bytes:
    return encoded({"version": VERSION, "run": run, "at": now()})


def position_key(partition: Partition, kind: str = "position") -> bytes:
    return encoded({"kind": kind, "topic": partition.topic, "partition": partition.number})


def position_value(position: Position, by: str | None = None) -> bytes:
    """`by` is set when a person moved the position by hand."""
    fields = {
        "version": VERSION,
        "next": position.next,
        "topic_id": position.topic_id,
        "epoch": position.epoch,
        "at": position.at or now(),
    }
    known = {"leader_epoch": position.leader_epoch} if position.leader_epoch >= 0 else {}
    return encoded(fields | known | ({"by": by} if by else {}))


def followed_key(partition: Partition) -> bytes:
    return position_key(partition, "followed")


def followed_value(followed: Followed) -> bytes:
    return encoded({"version": VERSION, "at": now(), **asdict(followed)})


def loss_key(loss: Loss) -> bytes:
    place = {"topic": loss.partition.topic, "partition": loss.partition.number, "first": loss.range.first}
    return encoded({"kind": "loss", **place} | ({} if loss.what == "records" else {"what": loss.what}))


def loss_value(loss: Loss) -> bytes:
    return encoded({"version": VERSION, "next": loss.range.next, "reason": loss.reason, "at": loss.at or now()})


def takes_key() -> bytes:
    return encoded({"kind": "takes"})


def takes_value(takes: Mapping[str, Any], spread: int = 0) -> bytes:
    return encoded({"version": VERSION, "from": takes, "spread": spread})


def alive_key() -> bytes:
    return encoded({"kind": "alive"})


def alive_value(run: str, epoch: int) -> bytes:
    return encoded({"version": VERSION, "run": run, "epoch": epoch, "at": now()})


def act_key() -> bytes:
    return encoded({"kind": "act", "at": now()})


def act_value(act: Act) -> bytes:
    return encoded({"version": VERSION, "by": act.by, "did": act.did})


def now() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class Act:
    """What a person did to the positions."""

    by: str
    did: str
    at: int = 0


@dataclass
class LedgerState:
    """The ledger folded from its first record to its last."""

    topic: str
    epoch: int = -1
    epoch_run: str = ""
    source_cluster: str = ""
    writers: dict[tuple[str, int], str] = field(default_factory=dict)
    _positions: dict[Partition, Position] = field(default_factory=dict)
    _advances: dict[Partition, Position] = field(default_factory=dict)
    followed: dict[Partition, Followed] = field(default_factory=dict)
    losses: dict[tuple[Partition, int, str], Loss] = field(default_factory=dict)
    acts: dict[int, Act] = field(default_factory=dict)
    takes: Mapping[str, Any] | None = None
    spread: int = 0
    alive: tuple[int, int] | None = None  # epoch and time of the last sign of life

    def add(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Folds one record in; Refused when somebody else wrote it or a newer Barnabas did."""
        name = self._parsed(key, offset)
        body = self._parsed(value, offset) if value is not None else None
        version = body.get("version") if body is not None else VERSION
        if not isinstance(version, int):
            raise self._foreign(offset, "has no version")
        if version > VERSION:
            raise Refused(
                f"ledger {self.topic}: offset {offset} has version {version} and this Barnabas reads up to {VERSION}: "
                f"it was written by a newer one; upgrade this one"
            )
        try:
            self._fold(name, body, offset)
        except (KeyError, TypeError) as missing:
            raise self._foreign(offset, f"lacks {missing}") from None

    def _fold(self, name: dict[str, Any], body: dict[str, Any] | None, offset: int) -> None:
        kind = name["kind"]
        if kind == "epoch" and body is not None:
            self.epoch, self.epoch_run = offset, body["run"]
            self.source_cluster = body["source_cluster"]
        elif kind == "writer":
            _put(self.writers, (name["id"], name["epoch"]), body and body["run"])
        elif kind in ("position", "advance"):
            partition = Partition(name["topic"], name["partition"])
            positions = self._positions if kind == "position" else self._advances
            _put(positions, partition, body and _position(body))
        elif kind == "followed":
            _put(self.followed, Partition(name["topic"], name["partition"]), body and _followed(body))
        elif kind == "loss":
            partition, what = Partition(name["topic"], name["partition"]), name.get("what", "records")
            loss = body and Loss(partition, Range(name["first"], body["next"]), body["reason"], body["at"], what)
            _put(self.losses, (partition, name["first"], what), loss)
        elif kind == "takes":
            self.takes, self.spread = (body["from"], body["spread"]) if body else (None, 0)
        elif kind == "alive":
            self.alive = (body["epoch"], body["at"]) if body else None
        elif kind == "act":
            _put(self.acts, name["at"], body and Act(body["by"], body["did"], name["at"]))
        elif kind != "epoch":
            raise self._foreign(offset, f"has the unknown kind {kind!r}")

    def running(self) -> bool:
        """True when the last epoch gave a sign of life a short while ago."""
        if self.alive is None:
            return False
        epoch, at = self.alive
        return epoch == self.epoch and now() - at < ALIVE_MILLIS

    def begun_by_another_than(self, run: str | None) -> bool:
        """True when the last epoch is not of `run`: one that failed while taking over has left epochs of its own."""
        return self.epoch >= 0 and self.epoch_run != run

    def positions(self) -> dict[Partition, Position]:
        """For each partition the position, or the advance past it."""
        result = dict(self._positions)
        for partition, advance in self._advances.items():
            own = result.get(partition)
            if own is None or (advance.topic_id == own.topic_id and advance.next > own.next):
                result[partition] = advance
        return result

    def evidence(self) -> dict[Partition, Followed]:
        """What is known of each partition with a position. Where no driver has looked, the ledger's last time counts.

        A position that holds a leader epoch is evidence itself.
        """
        positions = self.positions()
        newest = max(
            [position.at for position in positions.values()] + ([self.alive[1]] if self.alive else []), default=0
        )
        found = {}
        for partition, position in positions.items():
            seen = self.followed.get(partition)
            if seen is None or seen.topic_id != position.topic_id:
                seen = Followed(position.next, position.topic_id, position.leader_epoch, newest)
            elif position.leader_epoch >= 0:
                seen = replace(seen, next=position.next, leader_epoch=position.leader_epoch)
            found[partition] = seen
        return found

    def _parsed(self, data: bytes | None, offset: int) -> dict[str, Any]:
        try:
            parsed = json.loads(data or b"")
        except ValueError:
            raise self._foreign(offset, "is not JSON") from None
        if not isinstance(parsed, dict):
            raise self._foreign(offset, "is not a JSON object")
        return parsed

    def _foreign(self, offset: int, what: str) -> Refused:
        return Refused(
            f"ledger {self.topic}: offset {offset} {what}; somebody else writes to this topic: "
            f"stop them, or give the mirror another name and set its positions by hand"
        )


def _position(body: dict[str, Any]) -> Position:
    return Position(_next(body), body["topic_id"], body["epoch"], body["at"], body.get("leader_epoch", -1))


def _followed(body: dict[str, Any]) -> Followed:
    return Followed(_next(body), body["topic_id"], body["leader_epoch"], body["caught_up"])


def _next(body: dict[str, Any]) -> int:
    if type(body["next"]) is not int or body["next"] < 0:
        raise TypeError(f"an offset: next is {body['next']!r}")
    return int(body["next"])


def _put(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
