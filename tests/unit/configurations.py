"""Configurations that are right, for tests to change: as text, and as one mirror's rules."""

from __future__ import annotations

from typing import Any

from barnabas.config.mirror import Mirror

CANARY = "canary-1f3b9c"
GOOD = """\
clusters:
  orange:
    bootstrap: b0:9092
    sasl: {mechanism: PLAIN, username: env:CANARY_NAME, password: env:CANARY_SECRET}
    tls: false
  grape:
    bootstrap: localhost:29092
spark: {master: local, settings: {}}
groups:
  - name: prod
    source: orange
    destination: grape
    mirrors:
      - name: orders
        from: orders
"""


def mirror(**settings: Any) -> Mirror:
    """The rules of one mirror of the topic `orders`; `from_` stands for `from`."""
    given = {key.rstrip("_"): value for key, value in settings.items()}
    needed = {"name": "m", "group": "g", "source": "orange", "destination": "grape", "from": "orders"}
    return Mirror.model_validate(needed | given)
