"""`barnabas quarantine list|replay`: what was set aside and why; try it again."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any

from barnabas import quarantine
from barnabas.commands.choose import chosen
from barnabas.commands.failed import told
from barnabas.commands.tables import printed
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError, ConfigError, Refused
from barnabas.ledger.alive import runs
from barnabas.ledger.takeover import release
from barnabas.ledger.witness import Witness
from barnabas.lessons import MARGIN_MILLIS, Lessons
from barnabas.losses import Doubts
from barnabas.model import Partition, TopicDescription
from barnabas.preparation import prepare
from barnabas.quarantine import SetAside
from barnabas.replicator import run_name
from barnabas.survey import Surveyor

MOST_REASONS = 20


def add_parser(commands: Any, parents: list[argparse.ArgumentParser], formatted: argparse.ArgumentParser) -> None:
    parser = commands.add_parser("quarantine", help="records that were set aside")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", parents=[*parents, formatted], help="where from and why")
    listing.add_argument("--most", type=int, default=100, metavar="N", help="how many to show (%(default)s)")
    actions.add_parser("replay", parents=parents, help="try them again, exactly once")


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    if args.action == "list" and len(args.mirror) != 1:
        return _list_all(args, configuration)
    if len(args.mirror) != 1:
        raise ConfigError(f"quarantine {args.action} needs one --mirror NAME")
    (mirror,) = chosen(args, configuration)
    surveyor = Surveyor(configuration, mirror)
    topic = _topic(surveyor)
    if topic is None:
        if args.action == "list" and args.format == "json":
            print(json.dumps({"records": 0, "shown": []}, indent=2))
            return 0
        print(f'mirror "{mirror.name}": nothing was set aside; there is no topic {mirror.quarantine_topic}')
        return 0
    return _list(args, surveyor, topic.topic_id) if args.action == "list" else _replay(surveyor, topic.topic_id)


def _topic(surveyor: Surveyor) -> TopicDescription | None:
    name = surveyor.mirror.quarantine_topic
    return surveyor.destination.topics([name]).get(name)


def _list_all(args: argparse.Namespace, configuration: Configuration) -> int:
    """How many records each mirror has set aside; one whose cluster does not answer hides no other."""
    found = [(mirror, _counted(configuration, mirror)) for mirror in chosen(args, configuration)]
    if args.format == "json":
        mirrors = [
            {
                "name": mirror.name,
                "topic": mirror.quarantine_topic,
                "records": None if isinstance(count, BarnabasError) else count,
                "error": str(count) if isinstance(count, BarnabasError) else None,
            }
            for mirror, count in found
        ]
        print(json.dumps({"mirrors": mirrors}, indent=2))
    else:
        counts = [(m.name, m.quarantine_topic, c) for m, c in found if not isinstance(c, BarnabasError)]
        printed("records set aside", ("mirror", "topic", "records"), counts)
        for mirror, count in found:
            if isinstance(count, BarnabasError):
                print(f'mirror "{mirror.name}": not known: {count}')
    return told(count for _, count in found if isinstance(count, BarnabasError))


def _counted(configuration: Configuration, mirror: Mirror) -> int | BarnabasError:
    try:
        surveyor = Surveyor(configuration, mirror)
        topic = _topic(surveyor)
        if topic is None:
            return 0
        place = _waiting(surveyor, topic.topic_id)
        return sum(1 for _ in quarantine.read(surveyor.to_destination, mirror.quarantine_topic, *place))
    except BarnabasError as error:
        return error


def _waiting(surveyor: Surveyor, quarantine_id: str) -> tuple[int, int]:
    own = Partition(surveyor.mirror.quarantine_topic, 0)
    ledger = surveyor.ledger()
    replayed = ledger.positions().get(own) if ledger else None
    return quarantine.waiting(surveyor.destination.offsets([own])[own], replayed, quarantine_id)


def _list(args: argparse.Namespace, surveyor: Surveyor, quarantine_id: str) -> int:
    first, until = _waiting(surveyor, quarantine_id)
    count, shown = 0, []
    for record in quarantine.read(surveyor.to_destination, surveyor.mirror.quarantine_topic, first, until):
        count += 1
        if count <= args.most:
            shown.append(_as_json(record))
    if args.format == "json":
        print(json.dumps({"records": count, "shown": shown}, indent=2))
        return 0
    print(f'mirror "{surveyor.mirror.name}": {count:,} records set aside')
    for each in shown:
        print(f"  {each['topic']}-{each['partition']} offset {each['offset']}: {each['reason']}")
    return 0


def _as_json(record: SetAside) -> dict[str, Any]:
    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return {**place, "reason": record.reason, "at": record.at}


def _replay(surveyor: Surveyor, quarantine_id: str) -> int:
    mirror = surveyor.mirror
    ledger = surveyor.ledger()
    if ledger is not None and runs(surveyor.to_destination, ledger):
        raise Refused(f'mirror "{mirror.name}" runs ({ledger.epoch_run}): stop it first, then replay')
    survey = surveyor.survey()
    demux = mirror.kind == "demux"
    if demux and survey.source_id != survey.destination_id:
        raise Refused(
            f'mirror "{mirror.name}" is a demux from "{mirror.source}" to "{mirror.destination}": what it set aside '
            f"would have to go back to another cluster, which no transaction spans: write it there by hand"
        )
    lessons, run = Lessons(mirror), f"quarantine replay by {run_name()}"
    lessons.strict, lessons.margin = True, MARGIN_MILLIS
    prepared = prepare(surveyor, survey, lessons, run=run, witness=Witness(), doubts=Doubts())
    moved, again = 0, Counter[str]()
    try:
        place = _waiting(surveyor, quarantine_id)
        records = quarantine.read(surveyor.to_destination, mirror.quarantine_topic, *place)
        for batch in quarantine.batches(records):
            outcome = quarantine.replay(prepared.task, quarantine_id, batch, puts_back=demux)
            moved, again = moved + outcome.moved, again + outcome.again
    finally:
        release(surveyor.to_destination, mirror.ledger_topic, prepared.epoch, ends=True)
    left = again.total()
    what = "put back to be tried by the next run" if demux else "moved on"
    print(
        f'mirror "{mirror.name}": {moved:,} records {what}'
        + (f", {left:,} set aside again" if left or not demux else "")
    )
    for reason, count in again.most_common(MOST_REASONS):
        print(f"  {count:,} × {reason}")
    if len(again) > MOST_REASONS:
        print(f"  and {len(again) - MOST_REASONS:,} more reasons: `quarantine list` shows each")
    return 0 if left == 0 else 1
