"""A task on its way to a worker. Spark keeps what travels and serves it on its ports, so no secret may be in it.

The driver writes connection and registry settings to a private file of the query. The task holds the file's path. Each
query has a file of its own, so a worker reads secrets anew for each epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from barnabas.errors import Unavailable
from barnabas.model import Connection
from barnabas.private_file import write_private
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TopicRoute, TranslationSettings
from barnabas.worker.task import WriteTask

SECRET = ("destination", "schemas")  # fields of a task that hold secrets

_opened: dict[str, tuple[str, WriteTask]] = {}  # by mirror: the file of its last query, and the task


@dataclass(frozen=True)
class SealedTask:
    """A task without its secrets, and the file that has them."""

    mirror: str
    file: str
    rest: Mapping[str, Any]


def sealed(task: WriteTask, file: Path) -> SealedTask:
    """The task as it may travel; its secrets are in the file, which only we may read."""
    schemas = asdict(task.schemas) if task.schemas is not None else None
    write_private(file, json.dumps({"destination": asdict(task.destination), "schemas": schemas}))
    rest = {field.name: getattr(task, field.name) for field in fields(task) if field.name not in SECRET}
    return SealedTask(task.mirror, str(file), rest)


def opened(task: SealedTask) -> WriteTask:
    """The task as its writer needs it. The file is read once in a query, not in each micro-batch."""
    kept = _opened.get(task.mirror)
    if kept is not None and kept[0] == task.file:
        return kept[1]
    try:
        secrets = json.loads(Path(task.file).read_text(encoding="ascii"))
    except OSError as error:
        raise Unavailable(f'mirror "{task.mirror}": {task.file}: {error.strerror}: did its query end?') from None
    found = WriteTask(
        **task.rest, destination=Connection(**secrets["destination"]), schemas=_translation(secrets["schemas"])
    )
    _opened[task.mirror] = task.file, found
    return found


def _translation(told: dict[str, Any] | None) -> TranslationSettings | None:
    if told is None:
        return None
    parts = {
        "source": RegistrySettings(**told["source"]),
        "destination": RegistrySettings(**told["destination"]),
        "rules": SchemaRules(**told["rules"]),
        "routes": tuple(TopicRoute(*route) for route in told["routes"]),
    }
    return TranslationSettings(**told | parts)
