"""Keeps the settings of destination topics in step with their sources, when a mirror says so."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.copied_settings import COPIED_SETTINGS, wanted_settings
from barnabas.model import TopicDescription
from barnabas.plan import Plan
from barnabas.survey import Surveyor


def keep_in_step(
    surveyor: Surveyor, plan: Plan, sources: Mapping[str, TopicDescription]
) -> dict[str, dict[str, str | None]]:
    """Changes what differs and says what it changed: topic → setting → new value, None for the broker's default."""
    mirror, admin = surveyor.mirror, surveyor.destination
    if not mirror.topics.keep_in_step or mirror.kind != "mirror":
        return {}
    there = admin.topics(route.destination for route in plan.routes)
    changes: dict[str, dict[str, str | None]] = {}
    for route in plan.routes:
        if route.source not in sources or route.destination not in there:
            continue
        found = difference(wanted_settings(mirror, sources[route.source]), there[route.destination].settings)
        if found:
            admin.change(route.destination, found)
            changes[route.destination] = found
    return changes


def difference(wanted: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str | None]:
    """What must change for `there` to be as `wanted`; settings that are not copied are left alone."""
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if there.get(key) != value}
    return changes | {key: None for key in there if key in COPIED_SETTINGS and key not in wanted}
