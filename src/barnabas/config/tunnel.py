"""One entry of the top-level `tunnels:` map: both ends of one tunnel, from one file for both sides."""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator
from pydantic_core import PydanticCustomError

from barnabas.config.address import HOST_NAME, Address, is_ip
from barnabas.config.cluster import ReadableFile, Strict

__all__ = ["HOST_NAME", "Address", "Connect", "Limits", "Serve", "Tunnel", "is_ip"]


def _parsed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return Address.parse(value)
    except ValueError as error:
        raise PydanticCustomError("address", "{what}", {"what": str(error)}) from None


HostPort = Annotated[Address, BeforeValidator(_parsed), PlainSerializer(str)]


class Serve(Strict):
    """The end inside the source network: the one open port, and what it may open connections to."""

    listen: HostPort = Address("0.0.0.0", 7443)  # noqa: S104 - the one port that the firewall opens; mutual TLS guards it
    address: HostPort
    brokers: Literal["discover"] | tuple[HostPort, ...] = "discover"
    registry: HostPort | None = None
    refresh_seconds: Annotated[float, Field(ge=1, le=3600)] = 30
    metrics: HostPort | None = None

    @field_validator("brokers")
    @classmethod
    def _not_empty(cls, brokers: str | tuple[Address, ...]) -> str | tuple[Address, ...]:
        if not brokers:
            raise PydanticCustomError("brokers", "no broker is listed; list them as host:port, or say discover")
        return brokers


class Connect(Strict):
    """The end in the destination network: loopback addresses that stand for the source's brokers."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    origin: Annotated[str | None, Field(alias="from")] = None
    loopback: ipaddress.IPv4Address = ipaddress.IPv4Address("127.0.1.1")
    write_hosts: bool = False
    hosts_file: Path = Path("/etc/hosts")
    refresh_seconds: Annotated[float, Field(ge=1, le=3600)] = 10
    metrics: HostPort | None = None

    @field_validator("loopback")
    @classmethod
    def _is_loopback(cls, loopback: ipaddress.IPv4Address) -> ipaddress.IPv4Address:
        if not loopback.is_loopback:
            what = f"{loopback} is not in 127.0.0.0/8; the tunnel's own end is never open to other machines"
            raise PydanticCustomError("loopback", "{what}", {"what": what})
        return loopback


class Limits(Strict):
    """What one end takes on at most, and how long it waits."""

    connections: Annotated[int, Field(ge=1, le=100_000)] = 1000
    handshake_seconds: Annotated[float, Field(gt=0, le=300)] = 10
    dial_seconds: Annotated[float, Field(gt=0, le=300)] = 10
    idle_seconds: Annotated[float, Field(gt=0)] = 900
    keepalive_seconds: Annotated[int, Field(ge=1, le=7200)] = 30


class Tunnel(Strict):
    """One tunnel: the cluster it leads to, the shared key file, and both ends."""

    cluster: str
    key: ReadableFile
    serve: Serve
    connect: Connect = Connect()
    limits: Limits = Limits()
