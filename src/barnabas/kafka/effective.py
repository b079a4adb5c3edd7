"""What the settings of a topic come to, those of its broker included. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.model import ANY_TIME, USUAL_LARGEST


def largest(entries: Mapping[str, Any]) -> int:
    entry = entries.get("max.message.bytes")
    return int(entry.value) if entry else USUAL_LARGEST


def distance(entries: Mapping[str, Any], setting: str) -> int:
    """How far from its clock a broker takes timestamps; before 3.6 one setting was for both directions."""
    stamped = entries.get("message.timestamp.type")
    if stamped and stamped.value == "LogAppendTime":
        return ANY_TIME
    limits = (entries.get(key) for key in (setting, "message.timestamp.difference.max.ms"))
    return min((int(entry.value) for entry in limits if entry), default=ANY_TIME)


def keeps_deletions(entries: Mapping[str, Any]) -> int | None:
    """The broker's default counts as much as a setting of the topic."""
    policy, keeps = entries.get("cleanup.policy"), entries.get("delete.retention.ms")
    return int(keeps.value) if keeps and policy and "compact" in policy.value else None
