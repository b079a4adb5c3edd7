"""The ledger folded from its first record to its last: what its records say together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.errors import Refused
from barnabas.ledger.records import VERSION, Act, End, now
from barnabas.model import Followed, Loss, Partition, Position, Range

ALIVE_MILLIS = 30_000
LEDGER_PREFIX = "_barnabas."


@dataclass(frozen=True)
class EpochRecord:
    """Where an epoch record stands, and whether it began an epoch."""

    offset: int
    void: bool


@dataclass
class LedgerState:
    """The ledger folded from its first record to its last."""

    topic: str
    epoch: int = -1
    epoch_run: str = ""
    source_cluster: str = ""
    epochs: dict[str, EpochRecord] = field(default_factory=dict)  # by token: those that stand in the ledger
    writers: dict[tuple[str, int], str] = field(default_factory=dict)
    _positions: dict[Partition, Position] = field(default_factory=dict)
    _advances: dict[Partition, Position] = field(default_factory=dict)
    followed: dict[Partition, Followed] = field(default_factory=dict)
    losses: dict[tuple[Partition, int, str], Loss] = field(default_factory=dict)
    acts: dict[int, Act] = field(default_factory=dict)
    takes: Mapping[str, Any] | None = None
    spread: int = 0
    alive: tuple[int, int] | None = None  # epoch and time of the last sign of life
    alive_by_broker: bool = False  # whether that time is by the broker's clock
    ended: End | None = None  # the last refusal, see `refusal`
    read_to: int = field(default=0, compare=False)  # the offset up to which the ledger was read
    read_records: int = field(default=0, compare=False)
    read_bytes: int = field(default=0, compare=False)  # as brokers sent them, transaction markers included

    def add(self, offset: int, key: bytes | None, value: bytes | None, at: int | None = None) -> None:
        """Folds one record in; Refused when somebody else wrote it or a newer Barnabas did.

        `at`: when the broker appended the record, where the topic has that.
        """
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
            self._fold(name, body, offset, at)
        except (KeyError, TypeError, OverflowError) as missing:
            raise self._foreign(offset, f"lacks {missing}") from None

    def _fold(self, name: dict[str, Any], body: dict[str, Any] | None, offset: int, at: int | None) -> None:
        kind = name["kind"]
        if kind == "epoch":
            self._fold_epoch(name.get("token", ""), body, offset)
        elif kind == "writer":
            self._refuse_foreign_writer(name["id"], offset)
            _put(self.writers, (name["id"], _whole(name["epoch"])), body and body["run"])
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
            self.alive = (_whole(body["epoch"]), _whole(body["at"]) if at is None else at) if body else None
            self.alive_by_broker = body is not None and at is not None
        elif kind == "ended":
            self.ended = _end(body) if body else None
        elif kind == "act":
            _put(self.acts, name["at"], body and Act(body["by"], body["did"], name["at"]))
        elif kind != "barrier":
            raise self._foreign(offset, f"has the unknown kind {kind!r}")

    def _fold_epoch(self, token: str, body: dict[str, Any] | None, offset: int) -> None:
        if body is None:
            self.epochs.pop(token, None)
            return
        run, source, seen = body["run"], body["source_cluster"], _whole(body.get("seen", offset))
        self.epochs[token] = EpochRecord(offset, void=seen <= self.epoch)
        if seen > self.epoch:
            self.epoch, self.epoch_run, self.source_cluster = offset, run, source

    def _refuse_foreign_writer(self, transactional_id: str, offset: int) -> None:
        """A take-over fences every registered id, so an id of another mirror or application must not pass."""
        mirror = re.escape(self.topic.removeprefix(LEDGER_PREFIX))
        if not re.fullmatch(rf"barnabas\.{mirror}\.[A-Za-z0-9._-]{{1,60}}\.[0-9]{{1,4}}", transactional_id):
            raise self._foreign(offset, f"registers the transactional id {transactional_id[:200]!r}")

    def running(self, at: int | None = None) -> bool:
        """True when the last epoch gave a sign of life a short while before `at`, which is now by default."""
        if self.alive is None:
            return False
        epoch, last = self.alive
        return epoch == self.epoch and (now() if at is None else at) - last < ALIVE_MILLIS

    def refusal(self) -> End | None:
        """Why the mirror was refused last; None when an epoch has begun since."""
        return self.ended if self.ended is not None and self.ended.epoch == self.epoch else None

    def begun_by_another_than(self, run: str | None) -> bool:
        """True when the last epoch is not of `run`: one that failed while taking over has left epochs of its own."""
        return self.epoch >= 0 and self.epoch_run != run

    def positions(self) -> dict[Partition, Position]:
        """For each partition the position, or the advance past it.

        A position of a later epoch than the advance was written by somebody who knew that advance, so it counts alone.
        """
        result = dict(self._positions)
        for partition, advance in self._advances.items():
            own = result.get(partition)
            if own is None or (
                advance.topic_id == own.topic_id and advance.epoch >= own.epoch and advance.next > own.next
            ):
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
        except (ValueError, RecursionError):
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
    return Position(_whole(body["next"]), body["topic_id"], body["epoch"], body["at"], body.get("leader_epoch", -1))


def _followed(body: dict[str, Any]) -> Followed:
    return Followed(_whole(body["next"]), body["topic_id"], body["leader_epoch"], body["caught_up"])


def _end(body: dict[str, Any]) -> End:
    if not isinstance(body["reason"], str):
        raise TypeError("a reason as text")
    return End(body["run"], body["epoch"], body["reason"], _whole(body["at"]))


def _whole(number: Any) -> int:
    """An offset, an epoch or a time: a whole number that is not negative."""
    if type(number) is not int or not 0 <= number < 2**63:
        raise TypeError(f"a whole number in place of {str(number)[:50]!r}")
    return number


def _put(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
