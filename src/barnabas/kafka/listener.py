"""What a broker's listener asks of its clients, found out with a connection of our own.

Where client and listener do not speak the same protocol, librdkafka reports broken connections only. So each listener
is asked two questions: does it speak TLS, and does it answer a SaslHandshake request? Nothing secret is sent.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SECONDS = 2.0
MOST_ADDRESSES = 3
SASL_HANDSHAKE, ILLEGAL_SASL_STATE = 17, 34
UNVERIFIED = ("false", "f", "0")  # as the client reads a setting
LARGEST_ANSWER = 64 * 1024


@dataclass(frozen=True)
class _Asked:
    """What the client's settings want of a listener."""

    tls: bool
    sasl: str | None
    settings: Mapping[str, Any]


def mismatch(settings: Mapping[str, Any], *, certificate: bool) -> str | None:
    """Why a client with these settings is not let in, and what to do; None where its listeners give no reason.

    `certificate`: the client has reported a TLS failure, so look at the certificate too. Every address that accepts a
    connection must give a reason, because a client needs only one that works.
    """
    protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()
    sasl = str(settings.get("sasl.mechanism", "")) if protocol.startswith("SASL") else None
    asked = _Asked(protocol.endswith("SSL"), sasl, settings)
    first: str | None = None
    for address in str(settings["bootstrap.servers"]).split(",")[:MOST_ADDRESSES]:
        host, _, port = address.strip().rpartition(":")
        try:
            reason = _reason(asked, (host.strip("[]"), int(port)), certificate)
        except ConnectionError:
            continue
        except (OSError, ValueError):  # no such name, or silence: no reason to blame what we were configured to say
            return None
        if reason is None:
            return None
        first = first or f"{address.strip()}: {reason}"
    return first


def _reason(asked: _Asked, address: tuple[str, int], certificate: bool) -> str | None:
    if asked.tls:
        if certificate and (refused := _refused_certificate(asked.settings, address)):
            return refused
        if _speaks_tls(address):
            return _wrong_sasl(asked, _mechanisms(address, _context(asked.settings)))
        plain = _mechanisms(address, None) is not None
        return "the listener speaks no TLS: leave out `tls`, or use the port of a TLS listener" if plain else None
    mechanisms = _mechanisms(address, None)
    if mechanisms is not None:
        return _wrong_sasl(asked, mechanisms)
    return "the listener speaks TLS: set `tls`" if _speaks_tls(address) else None


def _wrong_sasl(asked: _Asked, mechanisms: tuple[str, ...] | None) -> str | None:
    if mechanisms is None:
        return None
    offered = ", ".join(mechanisms)
    if asked.sasl is None:
        return f"the listener asks for SASL ({offered}): set `sasl`" if mechanisms else None
    if not mechanisms:
        return "the listener has no SASL: leave out `sasl`, or use the port of a SASL listener"
    if asked.sasl not in mechanisms:
        return f"the listener offers {offered}, not {asked.sasl}: change `mechanism` under `sasl`"
    return None


def _mechanisms(address: tuple[str, int], context: ssl.SSLContext | None) -> tuple[str, ...] | None:
    """The SASL mechanisms of a listener, () where it has no SASL, None where no Kafka answers."""
    body = struct.pack(">hhih8sh5s", SASL_HANDSHAKE, 1, 1, 8, b"barnabas", 5, b"PLAIN")
    with socket.create_connection(address, SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=address[0]) if context else plain as link:
                link.sendall(struct.pack(">i", len(body)) + body)
                (length,) = struct.unpack(">i", _received(link, 4))
                answer = _received(link, length) if 10 <= length <= LARGEST_ANSWER else b""
        except OSError:  # the other end hung up, or does not understand us
            return None
    if len(answer) < 10 or answer[:4] != struct.pack(">i", 1):
        return None
    error, count = struct.unpack(">hi", answer[4:10])
    return () if error == ILLEGAL_SASL_STATE else _strings(answer[10:], count)


def _received(link: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = link.recv(length - len(data))
        if not more:
            raise ConnectionError("hung up")
        data += more
    return data


def _strings(data: bytes, count: int) -> tuple[str, ...]:
    found: list[str] = []
    while len(found) < count and len(data) >= 2:
        (length,) = struct.unpack(">h", data[:2])
        found.append(data[2 : 2 + max(0, length)].decode("ascii", "replace"))
        data = data[2 + max(0, length) :]
    return tuple(found)


def _speaks_tls(address: tuple[str, int]) -> bool:
    """Whether TLS comes back, be it the alert of a server that wants something else of us."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(address, SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=address[0]):
                return True
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return False
        except ssl.SSLError as error:
            return "ALERT" in str(error.reason)
        except OSError:
            return False


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Takes any certificate, because no secret goes this way; shows our own where the settings have one."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if own := settings.get("ssl.certificate.location"):
        context.load_cert_chain(str(own), settings.get("ssl.key.location"), settings.get("ssl.key.password"))
    return context


def _refused_certificate(settings: Mapping[str, Any], address: tuple[str, int]) -> str | None:
    ca = settings.get("ssl.ca.location")
    context = ssl.create_default_context(cafile=None if ca in (None, "probe") else str(ca))
    if pem := settings.get("ssl.ca.pem"):
        context.load_verify_locations(cadata=str(pem))
    if str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(settings.get("enable.ssl.certificate.verification", True)).lower() in UNVERIFIED:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(address, SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=address[0]):
                return None
        except ssl.SSLCertVerificationError as error:
            return f"the broker's certificate is not accepted: {error.verify_message.rstrip('.')}: {_remedy(error)}"
        except OSError:
            return None


def _remedy(error: ssl.SSLCertVerificationError) -> str:
    if "expired" in error.verify_message:
        return "renew it"
    if "not valid for" in error.verify_message:
        return "use a name of the certificate in `bootstrap` and in the brokers' advertised.listeners"
    return "is `tls.ca` the authority that signed it?"
