"""`barnabas lab up|produce|down|status`: real clusters and registries on this machine, to play with."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from barnabas.commands.signals import stopped_by_signals
from barnabas.commands.tables import printed
from barnabas.errors import ConfigError
from barnabas.lab import lab
from barnabas.lab.configuration import TOPIC
from barnabas.lab.feeding import SMALLEST, Feed, feed, make_topic
from barnabas.lab.security import Mechanism, Protocol, Security


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("lab", help="two Kafka clusters and two registries on this machine")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    placed = argparse.ArgumentParser(add_help=False)
    placed.add_argument("--directory", type=Path, metavar="DIR", help="where it lives (~/.local/state/barnabas/lab)")
    starting = actions.add_parser("up", parents=[placed], help="start it, and print the path of a configuration")
    starting.add_argument("--brokers", type=int, choices=[1, 3], default=1, help="in each cluster")
    starting.add_argument("--sasl", choices=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], help="clients must log in")
    starting.add_argument("--tls", action="store_true", help="listeners with certificates made on the spot")
    feeding = actions.add_parser("produce", parents=[placed], help="records for a topic of the source")
    usual = Feed()
    feeding.add_argument("--topic", default=usual.topic, help=f"made if it is not there ({usual.topic})")
    feeding.add_argument("--records", type=int, default=usual.records, help=f"0: until Ctrl-C ({usual.records:,})")
    feeding.add_argument("--rate", type=float, help="records a second (as fast as it goes)")
    feeding.add_argument("--size", type=int, default=usual.size, help=f"bytes of a value ({usual.size})")
    actions.add_parser("down", parents=[placed], help="end it, and remove all it has")
    actions.add_parser("status", parents=[placed], help="which of its processes run")


def run(args: argparse.Namespace) -> int:
    return {"up": _up, "produce": _produce, "down": _down, "status": _status}[args.action](args)


def _up(args: argparse.Namespace) -> int:
    protocol = Protocol(("SASL_" if args.sasl else "") + ("SSL" if args.tls else "PLAINTEXT"))
    security = Security(protocol, Mechanism(args.sasl or "PLAIN"))
    started = lab.up(args.directory, brokers=args.brokers, security=security, tell=_tell)
    make_topic(started.source.client_settings(), TOPIC, args.brokers)
    elsewhere = f" --directory {args.directory}" if args.directory else ""
    _tell(f"lab: up, with an empty topic {TOPIC} at the source; fill it with: barnabas lab produce{elsewhere}")
    print(started.configuration)
    return 0


def _produce(args: argparse.Namespace) -> int:
    """Until all is produced, or somebody ends it: what was acknowledged counts then."""
    if args.records < 0 or args.size < SMALLEST or (args.rate is not None and not 0 < args.rate < math.inf):
        raise ConfigError(f"lab produce: --records is 0 or more, --rate above 0, --size at least {SMALLEST}")
    where = lab.client_settings(args.directory)
    make_topic(where, args.topic)
    wanted = Feed(args.topic, args.records or None, args.rate, args.size)
    with stopped_by_signals() as stop:
        done = feed(where, wanted, stop)
    print(f"lab: {done:,} records produced to {args.topic}")
    return 0


def _down(args: argparse.Namespace) -> int:
    directory = args.directory or lab.default_directory()
    print(f"lab: down, {directory} removed" if lab.down(args.directory) else f"lab: nothing in {directory}")
    return 0


def _status(args: argparse.Namespace) -> int:
    found = lab.status(args.directory)
    if not found.parts:
        print(f"lab: nothing in {found.directory}")
        return 1
    printed(
        f"lab: {found.configuration or found.directory}",
        ("part", "address", "pid", "running"),
        [(part.name, part.address, str(part.pid), part.running) for part in found.parts],
    )
    return 0 if found.up else 1


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
