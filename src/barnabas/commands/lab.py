"""`barnabas lab up|down|status`: real clusters and registries on this machine, to play with."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from barnabas.commands.tables import printed
from barnabas.lab import lab
from barnabas.lab.security import Mechanism, Protocol, Security


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("lab", help="two Kafka clusters and two registries on this machine")
    parser.add_argument("action", choices=["up", "down", "status"])
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where it lives (~/.local/state/barnabas/lab)")
    parser.add_argument("--brokers", type=int, choices=[1, 3], default=1, help="in each cluster")
    parser.add_argument("--sasl", choices=["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], help="clients must log in")
    parser.add_argument("--tls", action="store_true", help="listeners with certificates made on the spot")


def run(args: argparse.Namespace) -> int:
    return {"up": _up, "down": _down, "status": _status}[args.action](args)


def _up(args: argparse.Namespace) -> int:
    protocol = Protocol(("SASL_" if args.sasl else "") + ("SSL" if args.tls else "PLAINTEXT"))
    security = Security(protocol, Mechanism(args.sasl or "PLAIN"))
    started = lab.up(args.directory, brokers=args.brokers, security=security, tell=_tell)
    print(started.configuration)
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
