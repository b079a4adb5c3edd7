"""What stands in a ledger: JSON keys and values a person can read with any Kafka console.

    {"kind":"epoch","token":…}                             who runs the mirror; its offset is the epoch's number
    {"kind":"writer","id":…,"epoch":…}                     a transactional id that may write in that epoch
    {"kind":"position","topic":…,"partition":…}            the next offset to copy, written with the records (A)
    {"kind":"advance","topic":…,"partition":…}             the same past records that no reader will ever see
    {"kind":"followed","topic":…,"partition":…}            where the mirror stood when its driver looked, the leader
                                                           epoch of the source then, and when it last had everything
    {"kind":"loss","topic":…,"partition":…,"first":…}      source records that were gone before they were copied
    {"kind":"takes"}                                       the mirror's `from`: all it took then has a position; and
                                                           over how many partitions a mux spreads its sources
    {"kind":"alive"}                                       the running epoch's sign of life, struck out at its end
    {"kind":"barrier"}                                     nothing; its acknowledged offset is a mark to read up to
    {"kind":"ended"}                                       why the last epoch's run, or a start since, was refused
    {"kind":"act","at":…}                                  what a person did to the positions

Positions and advances have keys of their own because compaction keeps the last record of a key: an advance,
written by the driver beside running tasks, may be older news than a position and must never replace it (E).
The position of a partition is the larger of the two. A position may hold the source's `leader_epoch` too.

An epoch record holds `seen`, the offset up to which its run had read the ledger. Where a newer epoch stands at or past
`seen`, the run did not know it, so the record is void: a network delivered it late, or two runs began at once. Each
epoch record has a key of its own, so that compaction never keeps a void one in place of a valid one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from barnabas.model import Followed, Loss, Partition, Position

VERSION = 3  # the second has `takes`; the third `followed`, `leader_epoch`, `seen`, `ended` and barriers


def encoded(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), sort_keys=True).encode()


def epoch_key(token: str) -> bytes:
    """The key of one attempt to begin an epoch. Version 2 had one key for all, without a token."""
    return encoded({"kind": "epoch"} | ({"token": token} if token else {}))


def epoch_value(run: str, source_id: str, seen: int) -> bytes:
    """`seen`: the offset up to which this run has read the ledger."""
    return encoded({"version": VERSION, "run": run, "source_cluster": source_id, "seen": seen, "at": now()})


def barrier_key() -> bytes:
    return encoded({"kind": "barrier"})


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


def ended_key() -> bytes:
    return encoded({"kind": "ended"})


def ended_value(end: End) -> bytes:
    fields = {"state": "refused", "run": end.run, "epoch": end.epoch, "reason": end.reason, "at": end.at or now()}
    return encoded({"version": VERSION, **fields})


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


@dataclass(frozen=True)
class End:
    """Why a run was refused, and the ledger's last epoch then."""

    run: str
    epoch: int
    reason: str
    at: int = 0
