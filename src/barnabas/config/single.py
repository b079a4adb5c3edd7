"""One mirror without a file: from the command line, or from environment variables."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from barnabas.config.document import Items, Section
from barnabas.errors import ConfigError

VARIABLES = {
    "source": "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS",
    "topic": "KAFKA_CLUSTERS_SOURCE_TOPIC",
    "destination": "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS",
    "to": "KAFKA_CLUSTERS_DESTINATION_TOPIC",
}
OPTIONS = {"from": "source", "to": "destination", "topics": "topics"}  # of `run`, and where they are kept


def refuse_half(args: argparse.Namespace) -> None:
    """ConfigError for options of a run without a file that would be passed over."""
    if args.config == "":
        raise ConfigError("-c names no file: is a variable empty?")
    given = [f"--{word}" for word, key in OPTIONS.items() if getattr(args, key, None) is not None]
    if given and args.config:
        raise ConfigError(f"{given[0]} stands instead of a file: leave it out, or -c {args.config}")
    if given and "--from" not in given:
        raise ConfigError(f"{given[0]} needs --from HOST:PORT with it, or -c FILE instead")


def from_arguments(args: argparse.Namespace) -> tuple[Section, str]:
    """`run --from … --to … --topics a,b`: one mirror a topic, each under its own name."""
    if not args.destination or not args.topics:
        raise ConfigError("run --from needs --to HOST:PORT and --topics NAME[,NAME] with it")
    mirrors = [{"from": topic.strip()} for topic in args.topics.split(",")]
    return _document(args.source, args.destination, mirrors), "command line"


def from_environment(environment: Mapping[str, str]) -> tuple[Section, str] | None:
    """The four variables, or None when none of the bootstrap ones is set."""
    given = {name: environment.get(variable, "") for name, variable in VARIABLES.items()}
    if not given["source"] and not given["destination"]:
        return None
    for name in ("source", "topic", "destination"):
        if not given[name]:
            needed = " and ".join(variable for word, variable in VARIABLES.items() if word not in (name, "to"))
            raise ConfigError(
                f"environment variable {VARIABLES[name]} is not set; it goes with {needed}, and {VARIABLES['to']} may "
                f"be left out: the topic keeps its name then"
            )
    mirror = {"from": given["topic"], "to": given["to"] or given["topic"]}
    return _document(given["source"], given["destination"], [mirror]), "environment"


def _document(source: str, destination: str, mirrors: list[dict[str, str]]) -> Section:
    group: dict[str, Any] = {"name": "single", "source": "source", "destination": "destination", "mirrors": mirrors}
    clusters = {"source": {"bootstrap": source}, "destination": {"bootstrap": destination}}
    section = _located({"clusters": clusters, "groups": [group]})
    assert isinstance(section, Section)
    return section


def _located(value: Any) -> Any:
    """Plain values as a document has them; their only line is the first."""
    if isinstance(value, dict):
        section = Section(1)
        for key, part in value.items():
            section.put(key, _located(part), 1)
        return section
    if isinstance(value, list):
        items = Items()
        items.extend(_located(part) for part in value)
        items.lines.extend([1] * len(value))
        return items
    return value
