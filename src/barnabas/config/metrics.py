"""`metrics:` a Prometheus page, a report on the console, both, or none."""

from __future__ import annotations

from pydantic import Field

from barnabas.config.cluster import Strict


class Prometheus(Strict):
    port: int = Field(ge=1, le=65535)
    host: str = "127.0.0.1"


class Console(Strict):
    every_seconds: float = Field(default=60.0, gt=0)


class MetricRules(Strict):
    prometheus: Prometheus | None = None
    console: Console | None = None
