"""`barnabas tunnel keygen|serve|connect|hosts|plan`: the command line of the tunnel."""

import argparse
import asyncio
import json
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from barnabas.config.cluster import Cluster
from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import ConfigError, Refused, Unavailable
from barnabas.kafka.settings import connection
from barnabas.metrics_page import MetricsPage
from barnabas.tunnel.connect import TunnelClient
from barnabas.tunnel.descriptors import make_room
from barnabas.tunnel.hosts import Format, formatted, mapped
from barnabas.tunnel.keys import DEFAULT_YEARS, Role, create, load
from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.plan import as_json, as_text, planned
from barnabas.tunnel.serve import UNFINISHED, TunnelServer
from barnabas.tunnel.targets import bootstrap_of, configured

EXPIRES_SOON = timedelta(days=30)

log = logging.getLogger(__name__)


class Configuration(Protocol):
    """What the commands need of the configuration."""

    @property
    def tunnels(self) -> Mapping[str, Tunnel]: ...

    @property
    def clusters(self) -> Mapping[str, Cluster]: ...


def add_parsers(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the sub-commands below `barnabas tunnel`; `args.tunnel_command` says which was chosen."""

    def add(name: str, text: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = subparsers.add_parser(name, help=text, description=text)
        parser.set_defaults(tunnel_command=name)
        if name != "keygen":
            parser.add_argument("-c", "--config", required=True, metavar="FILE", help="the configuration of both sides")
            parser.add_argument("--tunnel", metavar="NAME", help="which of its tunnels, if there are several")
        return parser

    keygen = add("keygen", "make the key file that both ends share")
    keygen.add_argument("--output", type=Path, required=True, metavar="FILE", help="a new file; mode 0600")
    keygen.add_argument("--years", type=float, default=DEFAULT_YEARS, help="how long it is valid (%(default)g)")
    keygen.add_argument("--split", action="store_true", help="one file per end, without the other's private key")
    add("serve", "run the end in the source network")
    connect = add("connect", "run the end in the destination network")
    connect.add_argument("--write-hosts", action="store_true", help="keep the broker names in /etc/hosts while it runs")
    hosts = add("hosts", "print the broker names and their loopback addresses; asks serve if brokers are discovered")
    hosts.add_argument("--format", type=Format, choices=list(Format), default=Format.HOSTS)
    plan = add("plan", "print what each side needs: firewall openings, addresses, names")
    plan.add_argument("--format", choices=["text", "json"], default="text")


def run(args: argparse.Namespace, configuration: Configuration | None = None) -> int:
    """Carry out one command; every command but keygen needs the configuration."""
    if args.tunnel_command == "keygen":
        return _keygen(args)
    if configuration is None:
        raise ConfigError(f"tunnel {args.tunnel_command}: no configuration; give one with -c FILE")
    handlers: dict[str, Callable[[argparse.Namespace, Configuration], int]] = {
        "serve": _serve,
        "connect": _connect,
        "hosts": _hosts,
        "plan": _plan,
    }
    return handlers[args.tunnel_command](args, configuration)


def chosen(configuration: Configuration, name: str | None) -> tuple[str, Tunnel]:
    """The tunnel of that name, or the only one."""
    tunnels = configuration.tunnels
    if name is None and len(tunnels) == 1:
        return next(iter(tunnels.items()))
    if name is None or name not in tunnels:
        known = ", ".join(sorted(tunnels)) or "none"
        what = "say which tunnel with --tunnel" if name is None else f'there is no tunnel "{name}"'
        raise ConfigError(f"tunnels: {what}; known are: {known}")
    return name, tunnels[name]


def _keygen(args: argparse.Namespace) -> int:
    for path in create(args.output, years=args.years, split=args.split):
        print(path)
    log.info("copy it to the other end by a way that nobody else can read, for example scp -p")
    return 0


def _serve(args: argparse.Namespace, configuration: Configuration) -> int:
    name, tunnel = chosen(configuration, args.tunnel)
    _warn_of_expiry(name, tunnel, Role.SERVE)
    unfinished = make_room(name, tunnel.limits.connections, UNFINISHED)
    server = TunnelServer(name, tunnel, partial(_settings, configuration, tunnel), unfinished)
    return _run(server.run, server.meter, tunnel.serve.metrics)


def _connect(args: argparse.Namespace, configuration: Configuration) -> int:
    name, tunnel = chosen(configuration, args.tunnel)
    if args.write_hosts:
        tunnel = tunnel.model_copy(update={"connect": tunnel.connect.model_copy(update={"write_hosts": True})})
    _warn_of_expiry(name, tunnel, Role.CONNECT)
    make_room(name, tunnel.limits.connections)
    client = TunnelClient(name, tunnel)
    return _run(client.run, client.meter, tunnel.connect.metrics)


def _hosts(args: argparse.Namespace, configuration: Configuration) -> int:
    name, tunnel = chosen(configuration, args.tunnel)
    if tunnel.serve.brokers == "discover":
        targets = asyncio.run(TunnelClient(name, tunnel).link.list_targets())
    else:
        targets = configured(tunnel, _bootstrap(configuration, tunnel))
    sys.stdout.write(formatted(mapped(targets, tunnel.connect.loopback), args.format))
    return 0


def _plan(args: argparse.Namespace, configuration: Configuration) -> int:
    names: list[str | None] = [args.tunnel] if args.tunnel else [*sorted(configuration.tunnels)] or [None]
    plans = {}
    for wanted in names:
        name, tunnel = chosen(configuration, wanted)
        plans[name] = planned(name, tunnel, _bootstrap(configuration, tunnel))
    if args.format == "json":
        print(json.dumps({name: as_json(sides) for name, sides in plans.items()}, indent=2))
    else:
        sys.stdout.write("\n".join(as_text(name, sides) for name, sides in plans.items()))
    return 0


def _run(service: Callable[[], Awaitable[None]], meter: Meter, metrics: Address | None) -> int:
    """Run one end until SIGINT or SIGTERM, which end it cleanly."""
    if metrics:
        try:
            MetricsPage(meter.registry, metrics.host, metrics.port)
        except OSError as error:
            raise Unavailable(f"tunnel: metrics cannot be shown on {metrics}: {error.strerror}") from None
    try:
        asyncio.run(_until_signal(service))
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return 0


async def _until_signal(service: Callable[[], Awaitable[None]]) -> None:
    loop = asyncio.get_running_loop()
    running = asyncio.ensure_future(service())
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel, f"stopped by {number.name}")
    try:
        await running
    except asyncio.CancelledError as stopped:
        log.info("tunnel: %s", *stopped.args or ("stopped",))


def _cluster(configuration: Configuration, tunnel: Tunnel) -> Cluster:
    if tunnel.cluster not in configuration.clusters:
        known = ", ".join(sorted(configuration.clusters))
        raise ConfigError(f'tunnels: there is no cluster "{tunnel.cluster}"; known are: {known}')
    return configuration.clusters[tunnel.cluster]


def _settings(configuration: Configuration, tunnel: Tunnel) -> Mapping[str, Any]:
    return connection(tunnel.cluster, _cluster(configuration, tunnel)).properties


def _bootstrap(configuration: Configuration, tunnel: Tunnel) -> tuple[Address, ...]:
    return bootstrap_of({"bootstrap.servers": _cluster(configuration, tunnel).bootstrap})


def _warn_of_expiry(name: str, tunnel: Tunnel, role: Role) -> None:
    expires = load(tunnel.key, role).expires
    left = expires - datetime.now(UTC)
    if left <= timedelta(0):
        raise Refused(
            f'tunnel "{name}": the key file {tunnel.key} expired on {expires:%Y-%m-%d}; '
            "make a new one with barnabas tunnel keygen and copy it to both ends"
        )
    if left < EXPIRES_SOON:
        log.warning('tunnel "%s": the key file expires on %s, in %d days', name, expires.date(), left.days)
