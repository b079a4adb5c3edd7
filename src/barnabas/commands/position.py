"""`barnabas position set|reset`: moves a mirror's positions by hand. The only way they ever go back (E)."""

from __future__ import annotations

import argparse
import getpass
import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barnabas.beginning import refuse_outside
from barnabas.commands.choose import chosen
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.config.start import started
from barnabas.errors import ConfigError, Refused
from barnabas.ledger import records
from barnabas.ledger.alive import runs
from barnabas.ledger.takeover import release, take_over
from barnabas.ledger.topic import prepared
from barnabas.model import Followed, Offsets, Partition, Position
from barnabas.preparation import write_to_ledger
from barnabas.replicator import run_name
from barnabas.survey import Surveyor
from barnabas.worker.task import WriteTask


def add_parser(commands: Any, parents: list[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("position", help="move a mirror's positions by hand")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    setting = actions.add_parser("set", parents=parents, help="copy again from here, or skip to here")
    setting.add_argument("--topic", required=True, help="a source topic")
    setting.add_argument("--partition", type=int, help="one partition; all if not given")
    setting.add_argument("--to", required=True, metavar="WHERE", help="an offset, earliest, latest, or a timestamp")
    resetting = actions.add_parser("reset", parents=parents, help="begin anew, as `start` says")
    resetting.add_argument("--topic", help="a source topic; all if not given")


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    if len(args.mirror) != 1:
        raise ConfigError(f"position {args.action} needs one --mirror NAME")
    (mirror,) = chosen(args, configuration)
    surveyor = Surveyor(configuration, mirror)
    ledger = surveyor.ledger()
    if ledger is not None and runs(surveyor.to_destination, ledger):
        raise Refused(f'mirror "{mirror.name}" runs ({ledger.epoch_run}): stop it first, then move its positions')
    before = ledger.positions() if ledger else {}
    wanted = _wanted(args, mirror, surveyor, before, came=surveyor.came_later(ledger))
    _write(surveyor, wanted, f"position {args.action}")
    for partition, position in sorted(wanted.items()):
        old = before[partition].next if partition in before else "none"
        print(f"{partition}: {old} → {position.next}")
    return 0


def _wanted(
    args: argparse.Namespace, mirror: Mirror, surveyor: Surveyor, before: Mapping[Partition, Position], *, came: bool
) -> dict[Partition, Position]:
    """The new positions, each within what the log has.

    A topic that has none yet gets one for each partition, as `start` says: a run would take what has no position
    beside others that have one for new, and begin at its first record. `came`: it is new, it came after the last run.
    """
    topics = {name: topic for name, topic in surveyor.topics().items() if args.topic in (None, name)}
    if not topics:
        raise Refused(f'mirror "{mirror.name}" takes no source topic {args.topic or ""} that exists')
    chosen_partition = getattr(args, "partition", None)
    partitions = [Partition(t.name, n) for t in topics.values() for n in range(t.partitions)]
    moved = [p for p in partitions if chosen_partition in (None, p.number)]
    if not moved:
        raise Refused(f"{args.topic} has no partition {chosen_partition}; it has {topics[args.topic].partitions}")
    offsets = surveyor.source.offsets(partitions)
    found = _moved(args, mirror, surveyor, {p: offsets[p] for p in moved})
    begun = {partition.topic for partition in before}
    fresh = {p: log for p, log in offsets.items() if p not in found and p.topic not in begun}
    found |= {p: log.first for p, log in fresh.items()} if came else surveyor.starting_at(mirror.start, fresh)
    for partition, at in found.items():
        log = offsets[partition]
        if not log.first <= at <= log.end:
            raise Refused(f"{partition}: {at} is outside the log, which is [{log.first}, {log.end})")
    return {p: Position(at, topics[p.topic].topic_id) for p, at in found.items()}


def _moved(
    args: argparse.Namespace, mirror: Mirror, surveyor: Surveyor, offsets: Mapping[Partition, Offsets]
) -> dict[Partition, int]:
    where = getattr(args, "to", None)
    if where is None:
        refuse_outside(mirror, offsets)
        return surveyor.starting_at(mirror.start, offsets)
    if where.isascii() and where.isdecimal():
        return dict.fromkeys(offsets, int(where))
    return surveyor.starting_at(started(where), offsets)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user that nobody gave a name
        return f"uid {os.getuid()}"


def _write(surveyor: Surveyor, wanted: Mapping[Partition, Position], did: str) -> None:
    """Under an epoch of our own, so that whoever ran before is fenced and what it left open is aborted."""
    mirror, admin, connection = surveyor.mirror, surveyor.destination, surveyor.to_destination
    prepared(admin, mirror.ledger_topic, surveyor.ledger_replication())
    by = f"{_user()}@{platform.node()}"
    epoch = take_over(
        connection,
        mirror.ledger_topic,
        run=f"{did} by {run_name()}",
        source_id=surveyor.source.cluster_id(),
        known=surveyor.ledger(),
    )
    task = WriteTask(
        mirror=mirror.name,
        ledger=mirror.ledger_topic,
        epoch=epoch.number,
        run=epoch.run,
        looked_to=epoch.state.read_to,
        destination=connection,
        routes={},
    )
    moves = ", ".join(f"{partition} to {position.next}" for partition, position in sorted(wanted.items()))
    lines: list[tuple[bytes, bytes | None]] = [
        (records.act_key(), records.act_value(records.Act(by, f"{did}: {moves}")))
    ]
    for partition, position in wanted.items():
        lines.append(
            (records.position_key(partition), records.position_value(replace(position, epoch=epoch.number), by))
        )
        lines.append((records.position_key(partition, "advance"), None))
        # what was seen of the old position says nothing of the new one, which no driver has followed yet
        seen = Followed(position.next, position.topic_id)
        lines.append((records.followed_key(partition), records.followed_value(seen)))
    write_to_ledger(task, lines)
    release(connection, mirror.ledger_topic, epoch, ends=True)
