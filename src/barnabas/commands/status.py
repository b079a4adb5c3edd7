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
from barnabas.commands.tables import printed, size
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError
from barnabas.kafka.undecided import first_undecided
from barnabas.ledger.records import End
from barnabas.ledger.state import LedgerState
from barnabas.losses import FoundLoss
from barnabas.model import Offsets, Partition, Position
from barnabas.plan import found_losses
from barnabas.schemas.breaker import BreakerState
from barnabas.schemas.resolver import Resolver
from barnabas.schemas.settings import TranslationSettings
from barnabas.survey import Surveyor

UNDER_WAY_SECONDS = 10.0


@dataclass(frozen=True)
class PartitionStatus:
    partition: Partition
    position: Position | None
    log: Offsets
    lost: FoundLoss | None = None
    undecided: int = 0  # records past the last stable offset: of an open transaction, and behind it
    held_since: int | None = None  # milliseconds: the timestamp of the first undecided record

    @property
    def lag(self) -> int:
        """Records between the position and the end; all where there is no position, or the topic was made anew."""
        known = self.position.next if self.position else self.log.first
        return max(0, self.log.end - (self.lost.onward if self.lost else known))

    @property
    def under_way(self) -> bool:
        """True for a transaction that has begun a moment ago, as there always are where producers use them."""
        return self.held_since is not None and time.time() - self.held_since / 1000 < UNDER_WAY_SECONDS

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

    @property
    def undecided(self) -> int:
        return sum(partition.undecided for partition in self.partitions)


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
    survey = surveyor.source_and_ledger(surveyor.topics())
    positions, lost = survey.ledger.positions() if survey.ledger else {}, found_losses(survey)
    marks = surveyor.source.high_watermarks(survey.offsets)
    undecided = {p: max(0, marks[p] - log.end) for p, log in survey.offsets.items()}
    since = first_undecided(surveyor.to_source, {p: survey.offsets[p].end for p, count in undecided.items() if count})
    found = tuple(
        PartitionStatus(p, positions.get(p), survey.offsets[p], lost.get(p), undecided[p], since.get(p))
        for p in sorted(survey.offsets)
    )
    return MirrorStatus(mirror, survey.ledger, found, *registries(surveyor.translation(())))


def next_run(mirror: Mirror, lost: FoundLoss) -> str:
    """What `run` will do about a loss."""
    if mirror.on_loss == "stop":
        return f"stops: {lost.loss.reason}"
    where = f"{lost.onward}" + (", or where `start` says if that is later" if lost.begins_anew(mirror.on_loss) else "")
    return f"notes a loss and goes on at {where}: {lost.loss.reason}"


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
        "ledger_records": ledger.read_records if ledger else None,
        "ledger_bytes": ledger.read_bytes if ledger else None,
        "refused": {"reason": end.reason, "run": end.run, "at": end.at} if (end := _refusal(status)) else None,
        "lag": status.lag,
        "undecided": status.undecided,
        "partitions": [
            {
                "topic": it.partition.topic,
                "partition": it.partition.number,
                "position": it.position.next if it.position else None,
                "end": it.log.end,
                "lag": it.lag,
                "age_seconds": it.age,
                "undecided": it.undecided,
                "undecided_since": it.held_since,
                "next_run": next_run(status.mirror, it.lost) if it.lost else None,
            }
            for it in status.partitions
        ],
        "losses": [
            {
                "topic": loss.partition.topic,
                "partition": loss.partition.number,
                "first": loss.range.first,
                "next": loss.range.next,
                "what": loss.what,
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


def _refusal(status: MirrorStatus) -> End | None:
    return status.ledger.refusal() if status.ledger else None


def _held(it: PartitionStatus) -> str:
    """Where the transaction is; its producer's id only Kafka's own tools tell."""
    since = ""
    if it.held_since is not None and it.held_since > 0:
        since = f", whose timestamp is {max(0.0, time.time() - it.held_since / 1000):,.0f} s old"
    ask = f"kafka-transactions.sh describe-producers --topic {it.partition.topic} --partition {it.partition.number}"
    return f"{it.partition} is held back at offset {it.log.end}{since}; its producer id: {ask}"


def _print(status: MirrorStatus) -> None:
    if status.error:
        print(f'mirror "{status.mirror.name}": unknown: {status.error}')
        return
    run = "never run"
    if status.ledger:
        running = "running" if status.ledger.running() else "not running"
        run = f"{running}; epoch {status.ledger.epoch} by {status.ledger.epoch_run}"
        run += f"; ledger of {status.ledger.read_records:,} records, {size(status.ledger.read_bytes)}"
    held = f", {status.undecided:,} undecided" if status.undecided else ""
    title = f'mirror "{status.mirror.name}": lag {status.lag:,}{held}; {run}'
    rows = [
        (
            it.partition.topic,
            it.partition.number,
            it.position.next if it.position else None,
            it.log.end,
            it.lag,
            it.undecided,
            it.age,
        )
        for it in status.partitions
    ]
    printed(title, ("topic", "partition", "position", "end", "lag", "undecided", "age s"), rows)
    if end := _refusal(status):
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end.at / 1000))
        print(f"  refused at {when}: {end.reason}")
    for partition in status.partitions:
        if partition.lost:
            print(f"  next run: {partition.partition}: {next_run(status.mirror, partition.lost)}")
        if partition.undecided and not partition.under_way:
            print(f"  open transaction: {_held(partition)}")
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
