"""Keeps secrets out of Spark: its plans, its UI and its event log hold references, the Java client reads a file.

Kafka's own FileConfigProvider resolves `${file:PATH:KEY}` when a client is made, so whatever Spark prints of its
options shows the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from barnabas.private_file import write_private

SECRET_PROPERTIES = frozenset({"sasl.jaas.config", "ssl.key.password", "ssl.keystore.key"})
PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


def hidden(properties: Mapping[str, str], file: Path) -> dict[str, str]:
    """The properties with every secret moved to `file`, which only we may read."""
    secrets = {key: value for key, value in properties.items() if key in SECRET_PROPERTIES}
    if not secrets:
        return dict(properties)
    write_private(file, "".join(f"{key}={_escaped(value)}\n" for key, value in secrets.items()))
    references = {key: f"${{file:{file}:{key}}}" for key in secrets}
    return {**properties, **references, "config.providers": "file", "config.providers.file.class": PROVIDER}


def _escaped(value: str) -> str:
    """As java.util.Properties reads it back."""
    plain = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", " ": "\\ "}
    return "".join(plain.get(c, c if 32 < ord(c) < 127 else _unicode(c)) for c in value)


def _unicode(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
