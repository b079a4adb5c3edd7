"""Goes the way of a Kafka connection through a tunnel step by step and says which step fails.

Run at the destination while both ends run. The first step that fails is the last one tried: what comes after it cannot
work, and would only hide what is wrong.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import BarnabasError, ConfigError, Refused, Unavailable
from barnabas.tunnel.keys import Role, load, tls_context
from barnabas.tunnel.link import Link
from barnabas.tunnel.relay import Scratch
from barnabas.tunnel.targets import Target, admin_client, bootstrap_of, loopback_of

SASL_SECONDS = 15.0


@dataclass(frozen=True)
class Step:
    """One step on the way, whether it went well, and what was found."""

    name: str
    ok: bool
    detail: str


class _Way:
    """What the steps find out for those that follow."""

    def __init__(self, name: str, tunnel: Tunnel, settings: Mapping[str, Any]) -> None:
        self.name, self.tunnel, self.settings = name, tunnel, dict(settings)
        self.targets: tuple[Target, ...] = ()

    @property
    def brokers(self) -> list[Target]:
        return [target for target in self.targets if target.address != self.tunnel.serve.registry]

    def port(self) -> str:
        address = self.tunnel.serve.address
        try:
            socket.create_connection(address, self.tunnel.limits.dial_seconds).close()
        except OSError as error:
            what = error.strerror or str(error)
            raise Unavailable(
                f"{address}: {what}; is serve running, and does the firewall let this machine in?"
            ) from None
        return f"{address} answers"

    def certificate(self) -> str:
        identity = load(self.tunnel.key, Role.CONNECT)
        link = Link(self.name, self.tunnel.serve.address, tls_context(identity), self.tunnel.limits, Scratch())
        self.targets = asyncio.run(link.list_targets())
        return f"both ends accept each other until {identity.expires:%Y-%m-%d}"

    def broker_list(self) -> str:
        brokers = self.brokers
        missing = set(bootstrap_of(self.settings)) - {target.address for target in brokers}
        if missing:
            raise Refused(
                f"serve does not lead to {', '.join(map(str, sorted(missing)))}, which this configuration starts from; "
                "use the same `bootstrap` at both ends"
            )
        addresses = [str(target.address) for target in brokers if not target.mappable]
        if addresses:
            raise Refused(
                f"{', '.join(addresses)}: advertised by address, and no hosts entry can stand for an address; "
                "give these brokers a name in advertised.listeners"
            )
        return ", ".join(str(target.address) for target in brokers)

    def names(self) -> str:
        for target in self.targets:
            host, port = target.address
            expected = str(loopback_of(self.tunnel.connect.loopback, target.number))
            found = _resolved(host) if target.mappable else {expected}  # by address: nobody looks its name up
            if found != {expected}:
                raise Refused(
                    f"{host} is {' and '.join(sorted(found)) or 'not known'} here but must be {expected}; "
                    "run connect with --write-hosts, or add what `barnabas tunnel hosts` prints"
                )
            try:
                socket.create_connection((expected, port), self.tunnel.limits.dial_seconds).close()
            except OSError:
                raise Unavailable(f"nothing listens on {expected}:{port} for {host}; is connect running?") from None
        return f"{len(self.targets)} names lead to this tunnel"

    def tls_name(self) -> str:
        if "SSL" not in str(self.settings.get("security.protocol", "PLAINTEXT")).upper():
            return "not used: the cluster speaks without TLS"
        if str(self.settings.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
            return "not checked: ssl.endpoint.identification.algorithm is none"
        context = self._broker_context()
        for target in self.brokers:
            self._shake_hands(context, target.address)
        return f"{len(self.brokers)} broker certificates carry their names"

    def sasl(self) -> str:
        problems: list[KafkaError] = []
        own: dict[str, Any] = {**self.settings, "error_cb": problems.append, "log_level": 0}
        admin, deadline = admin_client(self.tunnel.cluster, own), time.monotonic() + SASL_SECONDS
        while time.monotonic() < deadline and not any(map(_is_final, problems)):
            with suppress(KafkaException):
                count = len(admin.list_topics(timeout=1).topics)
                return f"logged in; {count} topics seen"
            admin.poll(0)
        found = sorted(problems, key=_is_final, reverse=True)
        what = found[0].str() if found else f"no answer in {SASL_SECONDS:g} s"
        raise Refused(f"the brokers do not let this user in: {what}; are mechanism, username and password right?")

    def _broker_context(self) -> ssl.SSLContext:
        ca = self.settings.get("ssl.ca.location")
        try:
            context = ssl.create_default_context(cafile=None if ca in (None, "probe") else str(ca))
            if pem := self.settings.get("ssl.ca.pem"):
                context.load_verify_locations(cadata=str(pem))
            if certificate := self.settings.get("ssl.certificate.location"):
                password = self.settings.get("ssl.key.password")
                context.load_cert_chain(str(certificate), self.settings.get("ssl.key.location"), password)
        except OSError as error:
            raise ConfigError(f"the cluster's TLS files cannot be used: {error}") from None
        return context

    def _shake_hands(self, context: ssl.SSLContext, address: Address) -> None:
        try:
            with (
                socket.create_connection(address, self.tunnel.limits.dial_seconds) as plain,
                context.wrap_socket(plain, server_hostname=address.host),
            ):
                pass
        except ssl.SSLCertVerificationError as error:
            raise Refused(f"{address}: {error.verify_message}; is `tls.ca` the authority that signed it?") from None
        except OSError as error:
            what = error.strerror or str(error)
            raise Unavailable(f"{address}: no TLS: {what}; does this listener of the broker speak TLS?") from None


def diagnose(name: str, tunnel: Tunnel, settings: Mapping[str, Any]) -> list[Step]:
    """Each step in order, up to and with the first that fails; `settings` are the cluster's librdkafka settings."""
    return list(_steps(_Way(name, tunnel, settings)))


def _steps(way: _Way) -> Iterator[Step]:
    tries: list[tuple[str, Callable[[], str]]] = [
        ("port reachable", way.port),
        ("certificate", way.certificate),
        ("broker list", way.broker_list),
        ("names", way.names),
        ("TLS name", way.tls_name),
        ("SASL", way.sasl),
    ]
    for name, attempt in tries:
        try:
            yield Step(name, True, attempt())
        except BarnabasError as error:
            yield Step(name, False, str(error))
            return


def _is_final(problem: KafkaError) -> bool:
    return problem.code() == KafkaError._AUTHENTICATION


def _resolved(host: str) -> set[str]:
    try:
        return {str(item[4][0]) for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        return set()
