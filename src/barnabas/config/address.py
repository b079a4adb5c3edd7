"""A host and a port, as a configuration writes them."""

import ipaddress
import re
from typing import NamedTuple, Self

HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*")


class Address(NamedTuple):
    """A host and a port; the host is a name, an IPv4 address or an IPv6 address without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `host:port` or `[v6]:port`; a ValueError says what is wrong with it."""
        host, colon, port = text.strip().rpartition(":")
        if "@" in text:
            raise ValueError("credentials do not belong into an address")
        if not colon or not host:
            raise ValueError(f'"{text}" is not an address: write host:port, for example b0.orange.example:9092')
        if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f'"{text}": the port "{port}" is not a number from 1 to 65535')
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (is_ip(bare) or HOST_NAME.fullmatch(bare)):
            raise ValueError(f'"{text}": "{host}" is not a host name; an IPv6 address stands in brackets')
        return cls(bare.lower(), int(port))


def is_ip(host: str) -> bool:
    """Whether the host is an address rather than a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
