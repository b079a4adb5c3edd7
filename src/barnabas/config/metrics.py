"""`metrics:` a Prometheus page, a report on the console, both, or none."""

from __future__ import annotations

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from barnabas.config.address import HOST_NAME, is_ip
from barnabas.config.cluster import Strict


class Prometheus(Strict):
    port: int = Field(ge=1, le=65535)
    host: str = "127.0.0.1"

    @field_validator("host")
    @classmethod
    def _is_host(cls, host: str) -> str:
        if not (is_ip(host) or HOST_NAME.fullmatch(host)):
            raise PydanticCustomError("host", "must be a host name or an IP address, without a port")
        return host


class Console(Strict):
    every_seconds: float = Field(default=60.0, gt=0, le=86_400)


class MetricRules(Strict):
    prometheus: Prometheus | None = None
    console: Console | None = None
