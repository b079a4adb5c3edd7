"""Which topics a mirror takes and what they become: pure functions of names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from barnabas.config.mirror import MUX_TOPICS, Mirror
from barnabas.config.selection import LEGAL_NAME, LONGEST_TOPIC, Replacement
from barnabas.errors import ConfigError

INTERNAL = re.compile(
    r"__.*|_barnabas[.].*|.*[.]quarantine|_schemas.*|_confluent.*|connect-(configs|offsets|status)|"
    r"kafkasql-(journal|snapshots)"
)


def selected(mirror: Mirror, names: Iterable[str]) -> list[str]:
    """The topics of a cluster that the mirror takes; by regular expression never an internal one."""
    choice = mirror.select
    by_name = set(choice.names)
    patterns = [re.compile(p) for p in choice.match]
    excepted = [re.compile(p) for p in choice.but]
    return sorted(
        name
        for name in set(names)
        if name in by_name
        or (
            any(p.fullmatch(name) for p in patterns)
            and not INTERNAL.fullmatch(name)
            and not any(p.fullmatch(name) for p in excepted)
            and not (mirror.kind == "mux" and _carries_others(mirror, name))
        )
    )


def _carries_others(mirror: Mirror, name: str) -> bool:
    """An intermediate topic: a mux that took it would carry its own records again."""
    return name == mirror.intermediate_topic or name.startswith(MUX_TOPICS)


def _replaced(rule: Replacement, topic: str) -> str:
    """The name with every match replaced. `.*` matches once, not again at the empty end as re.sub has it."""
    whole = re.fullmatch(rule.replace, topic)
    return whole.expand(rule.by) if whole else re.sub(rule.replace, rule.by, topic)


def destination_name(mirror: Mirror, topic: str, identifier: str = "") -> str:
    """What a source topic is called at the destination; ConfigError when no topic can be called so."""
    if mirror.kind == "mux":
        name = mirror.intermediate_topic
    elif isinstance(mirror.to, Replacement):
        name = _replaced(mirror.to, topic)
    else:
        values = {"topic": topic, "source": mirror.source, "destination": mirror.destination, "identifier": identifier}
        name = re.sub(r"\{(\w+)\}", lambda found: values[found.group(1)], mirror.to)
    where = f'{mirror.place}: mirror "{mirror.name}": {topic} would become {name!r}'.removeprefix(": ")
    if not name or name in (".", "..") or not LEGAL_NAME.fullmatch(name):
        raise ConfigError(
            f"{where}; a topic's name has letters, digits, dots, dashes and underscores only: change `to`"
        )
    if len(name) > LONGEST_TOPIC:
        raise ConfigError(f"{where}, {len(name)} characters long; Kafka allows {LONGEST_TOPIC}: change `to`")
    if INTERNAL.fullmatch(name):
        raise ConfigError(f"{where}, a name kept for internal topics: change `to`")
    return name


def drawn_name(mirror: Mirror, topic: str) -> str:
    """What a source topic is called in a plan: of a demux, whose records tell it, the template."""
    return str(mirror.to) if mirror.kind == "demux" else destination_name(mirror, topic)


def refuse_wrong_template(mirror: Mirror) -> None:
    """ConfigError where no topic at all could be called as `to` says."""
    if isinstance(mirror.to, str):
        destination_name(mirror, "topic", mirror.identifier or "identifier")
