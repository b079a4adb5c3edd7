"""`barnabas status`: positions from the ledger, ends from the source. Works from any machine that has the file."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from barnabas.commands.choose import chosen
from barnabas.commands.failed import told
from barnabas.commands.tables import printed
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError
from barnabas.ledger.records import LedgerState
from barnabas.model import Offsets, Partition, Position
from barnabas.schemas.breaker import BreakerState
from barnabas.schemas.resolver import Resolver
from barnabas.schemas.settings import TranslationSettings
from barnabas.survey import Surveyor


@dataclass(frozen=True)
class PartitionStatus:
    partition: Partition
    position: Position | None
    log: Offsets

    @property
    def lag(self) -> int:
        """Records between the position and the end; without a position all that are there."""
        return max(0, self.log.end - (self.position.next if self.position else self.log.first))

    @property
    def age(self) -> float | None:
        """Seconds since the last commit of this partition."""
        return round(max(0.0, time.time() - self.position.at / 1000), 1) if self.position else None


@dataclass(frozen=True)
class MirrorStatus:
    mirror: Mirror
    ledger: LedgerState | None
    partitions: tuple[PartitionStatus, ...]
    registries: dict[str, dict[str, BreakerState]]  # cluster → operation → its breaker, as seen from here
    silent: dict[str, str]  # cluster → what came of asking its registry, where it does not answer
    error: BarnabasError | None = None  # why nothing is known

    @property
    def lag(self) -> int:
        return sum(partition.lag for partition in self.partitions)


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    found = [_status(configuration, mirror) for mirror in chosen(args, configuration)]
    if args.format == "json":
        print(json.dumps({"mirrors": [_as_json(status) for status in found]}, indent=2))
    else:
        for status in found:
            _print(status)
    return told(status.error for status in found if status.error)


def _status(configuration: Configuration, mirror: Mirror) -> MirrorStatus:
    """A mirror whose clusters do not answer says so, and hides no other."""
    try:
        return _asked(configuration, mirror)
    except BarnabasError as error:
        return MirrorStatus(mirror, None, (), {}, {}, error)


def _asked(configuration: Configuration, mirror: Mirror) -> MirrorStatus:
    surveyor = Surveyor(configuration, mirror)
    ledger = surveyor.ledger()
    positions = ledger.positions() if ledger else {}
    topics = surveyor.topics()
    partitions = [Partition(t.name, n) for t in topics.values() for n in range(t.partitions)]
    logs = surveyor.source.offsets(partitions)
    found = tuple(PartitionStatus(p, positions.get(p), logs[p]) for p in sorted(partitions))
    return MirrorStatus(mirror, ledger, found, *registries(surveyor.translation(())))


def registries(settings: TranslationSettings | None) -> tuple[dict[str, dict[str, BreakerState]], dict[str, str]]:
    """Asks both registries: the breakers' states, and what those say that do not answer.

    A breaker opens after more failures than one question makes, so its state alone would not show it.
    """
    if settings is None:
        return {}, {}
    silent = {}
    with closing(Resolver(settings)) as resolver:
        asked = ((settings.source, resolver.ping_source), (settings.destination, resolver.ping_destination))
        for registry, ask in asked:
            try:
                ask()
            except BarnabasError as error:
                silent[registry.name] = str(error)
        return resolver.breakers(), silent


def _as_json(status: MirrorStatus) -> dict[str, Any]:
    ledger = status.ledger
    if status.error:
        return {"name": status.mirror.name, "ledger": status.mirror.ledger_topic, "error": str(status.error)}
    return {
        "name": status.mirror.name,
        "ledger": status.mirror.ledger_topic,
        "error": None,
        "epoch": ledger.epoch if ledger else None,
        "run": ledger.epoch_run if ledger else None,
        "running": ledger.running() if ledger else False,
        "lag": status.lag,
        "partitions": [
            {
                "topic": it.partition.topic,
                "partition": it.partition.number,
                "position": it.position.next if it.position else None,
                "end": it.log.end,
                "lag": it.lag,
                "age_seconds": it.age,
            }
            for it in status.partitions
        ],
        "losses": [
            {
                "topic": loss.partition.topic,
                "partition": loss.partition.number,
                "first": loss.range.first,
                "next": loss.range.next,
                "reason": loss.reason,
                "at": loss.at,
            }
            for loss in (ledger.losses.values() if ledger else ())
        ],
        "registries": {
            cluster: {name: {"state": it.state, "error": it.last_error} for name, it in operations.items()}
            for cluster, operations in status.registries.items()
        },
        "silent_registries": status.silent,
        "acts": [{"by": act.by, "did": act.did, "at": act.at} for act in (ledger.acts.values() if ledger else ())],
    }


def _print(status: MirrorStatus) -> None:
    if status.error:
        print(f'mirror "{status.mirror.name}": unknown: {status.error}')
        return
    run = "never run"
    if status.ledger:
        running = "running" if status.ledger.running() else "not running"
        run = f"{running}; epoch {status.ledger.epoch} by {status.ledger.epoch_run}"
    title = f'mirror "{status.mirror.name}": lag {status.lag:,}; {run}'
    rows = [
        (it.partition.topic, it.partition.number, it.position.next if it.position else None, it.log.end, it.lag, it.age)
        for it in status.partitions
    ]
    printed(title, ("topic", "partition", "position", "end", "lag", "age s"), rows)
    for loss in status.ledger.losses.values() if status.ledger else ():
        print(f"  lost: {loss.partition} [{loss.range.first}, {loss.range.next}): {loss.reason}")
    for cluster, error in status.silent.items():
        print(f"  registry of {cluster} does not answer: {error}")
    for cluster, operations in status.registries.items():
        for name, it in operations.items() if cluster not in status.silent else ():
            said = f" ({it.last_error})" if it.last_error else ""
            print(f"  registry of {cluster}, {name}: breaker {it.state}{said}")
    for act in status.ledger.acts.values() if status.ledger else ():
        print(f"  by hand: {act.did}, {act.by}")
