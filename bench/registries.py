"""A schema at the source, under an id that the destination gives to something else."""

import json

import httpx

from barnabas.lab.registry import Registry

SCHEMA: dict[str, object] = {"type": "record", "name": "Bench", "fields": [{"name": "body", "type": "bytes"}]}
OTHERS = 3  # schemas that the destination knows already: its ids run ahead of the source's
SECONDS = 30.0


def prepared(source: Registry, destination: Registry, topic: str) -> int:
    """Registers the topic's schema at the source; its id there."""
    for number in range(OTHERS):
        _register(destination, f"other-{number}", {**SCHEMA, "name": f"Other{number}"})
    return _register(source, f"{topic}-value", SCHEMA)


def _register(registry: Registry, subject: str, schema: dict[str, object]) -> int:
    url = f"{registry.url}/subjects/{subject}/versions"
    answer = httpx.post(url, json={"schema": json.dumps(schema)}, timeout=SECONDS, trust_env=False)
    answer.raise_for_status()
    return int(answer.json()["id"])
