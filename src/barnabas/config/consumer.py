"""The settings of `consumer:`. They are the Java client's, which passes over what it does not know: a typing error
would change nothing and tell nobody."""

from __future__ import annotations

import difflib
from typing import TypeVar

from pydantic_core import PydanticCustomError

Value = TypeVar("Value")

KNOWN = frozenset(
    {
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "security.providers",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    }
)
# The client has these too, but a mirror has no consumer group.
UNUSED = frozenset(
    {
        "auto.commit.interval.ms",
        "exclude.internal.topics",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)


def refuse_unknown(settings: dict[str, Value]) -> dict[str, Value]:
    """The settings as they are, or an error that names the first that would change nothing."""
    for name in settings:
        if name in UNUSED:
            raise PydanticCustomError("unused", "`{key}` is of no use to a mirror: leave it out", {"key": name})
        if name not in KNOWN:
            close = difflib.get_close_matches(name, KNOWN, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise PydanticCustomError(
                "unknown", "the Java consumer has no setting `{key}`{hint}", {"key": name, "hint": hint}
            )
    return settings
