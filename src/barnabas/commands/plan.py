"""`barnabas plan`: what `run` would create and copy. Writes nothing anywhere."""

from __future__ import annotations

import argparse
import json
from typing import Any

from barnabas.commands.choose import chosen
from barnabas.commands.drawing import dot, mermaid
from barnabas.commands.failed import told
from barnabas.commands.tables import printed, size
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError
from barnabas.kafka.sample import estimated_bytes
from barnabas.model import Range
from barnabas.plan import Plan, planned
from barnabas.survey import Surveyor

DRAWINGS = {"mermaid": mermaid, "dot": dot}
Found = tuple[Plan, int] | BarnabasError  # a plan and the bytes it may mean, or why there is none


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    plans = [(mirror, _planned(configuration, mirror)) for mirror in chosen(args, configuration)]
    if args.format in DRAWINGS:
        print(DRAWINGS[args.format]([(m, found[0]) for m, found in plans if not isinstance(found, BarnabasError)]))
    elif args.format == "json":
        print(json.dumps({"mirrors": [_as_json(mirror.name, found) for mirror, found in plans]}, indent=2))
    else:
        for mirror, found in plans:
            _print(mirror.name, found)
    return told(found for _, found in plans if isinstance(found, BarnabasError))


def _planned(configuration: Configuration, mirror: Mirror) -> Found:
    """A mirror that cannot be planned says why, and hides no other."""
    try:
        surveyor = Surveyor(configuration, mirror)
        plan = planned(mirror, surveyor.survey())
        waiting = {p: Range(s.position.next, s.end) for p, s in plan.stretches.items()}
        return plan, estimated_bytes(surveyor.to_source, waiting)
    except BarnabasError as error:
        return error


def _as_json(name: str, found: Found) -> dict[str, Any]:
    if isinstance(found, BarnabasError):
        return {"name": name, "error": str(found)}
    plan, estimate = found
    return {
        "name": name,
        "error": None,
        "routes": [{"from": r.source, "to": r.destination, "partitions": r.partitions} for r in plan.routes],
        "create": [
            {"topic": c.topic, "partitions": c.partitions, "replication": c.replication, "settings": dict(c.settings)}
            for c in plan.creations
        ],
        "grow": [{"topic": g.topic, "partitions": g.partitions, "to": g.to} for g in plan.growths],
        "absent": list(plan.absent),
        "losses": [
            {"topic": x.partition.topic, "partition": x.partition.number, "first": x.range.first, "next": x.range.next}
            for x in plan.losses
        ],
        "partitions": [
            {
                "topic": p.topic,
                "partition": p.number,
                "position": s.position.next,
                "from_ledger": s.known,
                "end": s.end,
                "records": s.records,
            }
            for p, s in sorted(plan.stretches.items())
        ],
        "records": plan.records,
        "bytes": estimate,
    }


def _print(name: str, found: Found) -> None:
    if isinstance(found, BarnabasError):
        print(f'mirror "{name}": no plan: {found}')
        return
    plan, estimate = found
    print(f'mirror "{plan.mirror}": {plan.records:,} records, about {size(estimate)} to copy')
    printed("routes", ("from", "to", "partitions"), [(r.source, r.destination, r.partitions) for r in plan.routes])
    for name in plan.absent:
        print(f"not at the source yet: {name}")
    if plan.creations:
        rows = [
            (c.topic, c.partitions, c.replication, " ".join(f"{k}={v}" for k, v in sorted(c.settings.items())) or "-")
            for c in plan.creations
        ]
        printed("topics to create", ("topic", "partitions", "replication", "settings"), rows)
    if plan.growths:
        printed("topics to grow", ("topic", "partitions", "to"), [(g.topic, g.partitions, g.to) for g in plan.growths])
    for loss in plan.losses:
        print(f"lost: {loss.partition} from {loss.range.first} to {loss.range.next}: {loss.reason}")
    for route in plan.gone:
        print(f"copied before and not at the destination: {route.destination}; it begins anew")
    rows_of_positions = [
        (p.topic, p.number, s.position.next, "ledger" if s.known else "start", s.end, s.records)
        for p, s in sorted(plan.stretches.items())
    ]
    printed("positions", ("topic", "partition", "position", "from", "end", "records"), rows_of_positions)
