"""What a tunnel leads to, and the loopback address that stands for each host at the other end.

A host's address is the tunnel's `loopback` plus the host's number. Numbers follow from the configuration and the
broker's id alone, so that `connect`, `hosts` and `plan` agree with each other, today and after every restart:

    0, 1, 2 …          hosts in the configuration: bootstrap, registry, listed brokers, in that order
    9 + broker id      brokers that were discovered, unless their host stands in the configuration
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.config.tunnel import HOST_NAME, Address, Tunnel, is_ip
from barnabas.errors import ConfigError, Refused, Unavailable
from barnabas.jsontext import whole, words

FIRST_DISCOVERED = 9
LARGEST_NUMBER = 2**31 - 1
DISCOVERY_SECONDS = 5.0
# A broker that restarts leaves the cluster's answer for a while: its name must not leave the tunnel's list with it.
FORGOTTEN_AFTER = 3600.0
# What systems write into /etc/hosts for themselves.
LOCAL_ENDINGS = (".localhost", ".localdomain", ".localdomain4", ".localdomain6")
LOCAL_NAMES = {
    *("localhost", "localhost4", "localhost6", "localdomain", "loopback", "broadcasthost"),
    *(f"ip6-{name}" for name in ("localhost", "loopback", "localnet", "mcastprefix", "allnodes", "allrouters")),
    *(f"ipv6-{name}" for name in ("localhost", "loopback", "localnet", "mcastprefix", "allnodes", "allrouters")),
}

log = logging.getLogger(__name__)


def is_this_machine(host: str) -> bool:
    """Whether a name stands for the machine that looks it up, or for no single machine, on any system."""
    name = host.lower().rstrip(".")
    return name.endswith(LOCAL_ENDINGS) or name in LOCAL_NAMES


@dataclass(frozen=True, order=True)
class Target:
    """A broker or a registry behind the tunnel; targets of one host share its number."""

    number: int
    address: Address

    @property
    def mappable(self) -> bool:
        """Whether a hosts entry can stand for it; one cannot for an address, and must not for this machine."""
        return not is_ip(self.address.host) and not is_this_machine(self.address.host)


def bootstrap_of(settings: Mapping[str, Any]) -> tuple[Address, ...]:
    """The addresses in a client's `bootstrap.servers`; ConfigError for what cannot be a name in a hosts file."""
    try:
        return tuple(Address.parse(part) for part in str(settings["bootstrap.servers"]).split(","))
    except ValueError as error:
        raise ConfigError(f"tunnel: bootstrap {error}; write names as hosts files do, with no dot at the end") from None


def admin_client(cluster: str, settings: Mapping[str, Any]) -> AdminClient:
    """A client; ConfigError when it does not take its settings, for example a CA file that is no PEM."""
    try:
        return AdminClient(dict(settings), logger=log)
    except KafkaException as error:
        raise ConfigError(
            f'cluster "{cluster}": the client does not take its settings: {error.args[0].str()}; '
            "are the files of `tls` PEM, and the credentials complete?"
        ) from None


def configured(tunnel: Tunnel, bootstrap: Sequence[Address]) -> tuple[Target, ...]:
    """The targets that the configuration names, each host with the number of its first appearance."""
    listed = () if tunnel.serve.brokers == "discover" else tunnel.serve.brokers
    registry = () if tunnel.serve.registry is None else (tunnel.serve.registry,)
    addresses = list(dict.fromkeys((*bootstrap, *registry, *listed)))
    hosts = list(dict.fromkeys(address.host for address in addresses))
    if tunnel.serve.brokers == "discover" and len(hosts) > FIRST_DISCOVERED:
        raise ConfigError(
            f'tunnel to "{tunnel.cluster}": bootstrap and registry name {len(hosts)} hosts, more than the '
            f"{FIRST_DISCOVERED} addresses kept for them beside discovered brokers; name fewer, the rest is discovered"
        )
    return tuple(Target(hosts.index(address.host), address) for address in addresses)


def joined(fixed: Sequence[Target], brokers: Mapping[int, Address]) -> tuple[Target, ...]:
    """Configured targets and discovered brokers as one list."""
    numbers = {target.address.host: target.number for target in fixed}
    for number, address in sorted(brokers.items()):
        numbers.setdefault(address.host, FIRST_DISCOVERED + number)
    addresses = {target.address for target in fixed} | set(brokers.values())
    return tuple(sorted(Target(numbers[address.host], address) for address in addresses))


def loopback_of(first: IPv4Address, number: int) -> IPv4Address:
    """The loopback address for a host's number."""
    try:
        address = first + number
    except AddressValueError:
        address = IPv4Address(0)
    if number < 0 or not address.is_loopback:
        raise Refused(
            f"tunnel: number {number} does not fit between {first} and 127.255.255.255; "
            "list the brokers in the tunnel's `brokers` instead of discovering them"
        )
    return address


def to_json(targets: Iterable[Target]) -> list[list[Any]]:
    return [[target.number, target.address.host, target.address.port] for target in targets]


def from_json(items: object) -> tuple[Target, ...]:
    """The list as the other end sent it; its names go into hosts files, so nothing but names may pass."""
    try:
        targets = tuple(_target(*item) for item in items)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise Refused("tunnel: the broker list cannot be read; run the same barnabas at both ends") from None
    for target in targets:
        if not is_host(target.address.host):
            host = target.address.host
            raise Refused(f"tunnel: the broker list names {host!r:.80}, which is no host; is the other end barnabas?")
    return targets


def _target(number: object, host: object, port: object) -> Target:
    return Target(whole(number, 0, LARGEST_NUMBER), Address(words(host), whole(port, 1, 65535)))


def is_host(text: str) -> bool:
    """Whether this can stand in a hosts file, as a name or as an address."""
    return HOST_NAME.fullmatch(text) is not None or is_ip(text)


def is_usable(address: Address) -> bool:
    return is_host(address.host) and 0 < address.port < 65536


class Directory:
    """The list of targets at `serve`: configured ones for good, discovered ones while the cluster names them.

    `settings` reads the cluster's client settings, secrets included: anew at each question, so that a rotated password
    needs no new process. Settings that no client takes are told here, before anybody is served.
    """

    def __init__(self, tunnel: Tunnel, settings: Callable[[], Mapping[str, Any]]) -> None:
        self._cluster, self._read = tunnel.cluster, settings
        self._settings = dict(settings())
        self._fixed = configured(tunnel, bootstrap_of(self._settings))
        self._discovers = tunnel.serve.brokers == "discover"
        self._admin = admin_client(self._cluster, self._settings) if self._discovers else None
        self._seen: dict[int, tuple[float, Address]] = {}
        self._illegal: dict[int, Address] = {}
        self.targets = self._fixed

    def allows(self, address: Address) -> bool:
        return any(target.address == address for target in self.targets)

    async def refresh(self) -> None:
        """Ask the cluster for its brokers; an error leaves the list as it was."""
        if not self._discovers:
            return
        now = time.monotonic()
        self._seen |= {number: (now, address) for number, address in (await asyncio.to_thread(self._ask)).items()}
        self._seen = {number: item for number, item in self._seen.items() if now - item[0] < FORGOTTEN_AFTER}
        before = set(self.targets)
        self.targets = joined(self._fixed, {number: address for number, (_, address) in self._seen.items()})
        for target in sorted(set(self.targets) - before):
            log.info("now leads to %s", target.address)
        for target in sorted(before - set(self.targets)):
            log.info("leads no more to %s", target.address)

    def _ask(self) -> dict[int, Address]:
        settings = dict(self._read())
        if self._admin is None or settings != self._settings:
            self._admin = admin_client(self._cluster, settings)
            self._settings = settings
        try:
            brokers = self._admin.list_topics(timeout=DISCOVERY_SECONDS).brokers
        except KafkaException as error:
            self._admin = None
            raise Unavailable(
                f'cluster "{self._cluster}" at {self._settings["bootstrap.servers"]} does not tell its brokers: '
                f"{error.args[0].str()}; are address and credentials right?"
            ) from None
        found = {number: Address(str(broker.host).lower(), int(broker.port)) for number, broker in brokers.items()}
        self._warn_of_illegal({number: address for number, address in found.items() if not is_usable(address)})
        return {number: address for number, address in found.items() if is_usable(address)}

    def _warn_of_illegal(self, found: Mapping[int, Address]) -> None:
        """Brokers that cannot be led to are left out, each with one line; the others stay on the list."""
        for number, (host, port) in found.items():
            if self._illegal.get(number) != (host, port):
                log.warning(
                    'cluster "%s": broker %d advertises %.300s, port %d, which no hosts file takes; it is left out: '
                    "give it a name without a dot at its end in advertised.listeners",
                    *(self._cluster, number, repr(host), port),
                )
        self._illegal = dict(found)
