"""What a cluster's clients need of this machine: secrets and files. Looked for by who is about to use them.

One file may serve both sides of a firewall, and neither machine has the secrets of the other side.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from barnabas.config.cluster import Strict
from barnabas.config.secret import Secret
from barnabas.errors import ConfigError, Unavailable

Keys = tuple[str, ...]


class Need(Strict):
    """A secret or a file that a cluster names, and where: file, line and key."""

    cluster: str
    place: str
    of_registry: bool = False
    secret: Secret | None = None
    file: Path | None = None

    def refuse_missing(self) -> None:
        """ConfigError when it is not here."""
        if self.file is not None and not self.file.is_file():
            raise ConfigError(f"{self.place}: there is no file {self.file}")
        try:
            if self.secret is not None:
                self.secret.reveal()
        except (ConfigError, Unavailable) as error:
            raise ConfigError(f"{self.place}: {error}") from None


def named(model: BaseModel, path: Keys = ()) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """Every secret and file in a cluster's settings, with the keys that lead there."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from named(value, (*path, name))
        elif isinstance(value, Secret):
            yield (*path, name), {"secret": value}
        elif isinstance(value, Path):
            yield (*path, name), {"file": value}
