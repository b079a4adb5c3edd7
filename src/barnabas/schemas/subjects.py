"""Which subject a record's schema stands under, at the source and at the destination. Pure functions.

topic-name          orders-value                   renamed with its topic: orders.copy-value
record-name         com.shop.Order                 the same at both ends
topic-record-name   orders-com.shop.Order          renamed with its topic: orders.copy-com.shop.Order
fixed               any, at the source             the one name given, at the destination
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.errors import Refused
from barnabas.schemas.schema import Schema, proto_tokens
from barnabas.schemas.settings import SchemaRules, Side, Strategy, TopicRoute


class Nameless(Refused):
    """A schema has no record name, and its subject is to be named after one."""


@dataclass(frozen=True)
class Pair:
    """A subject at the source, None where any will do, and the subject it becomes."""

    source: str | None
    destination: str


def subject_pair(rules: SchemaRules, route: TopicRoute, side: Side, schema: Schema) -> Pair:
    """Where the schema of a record on `route` stands, and where it is to stand."""
    if rules.subject is not None:
        return Pair(None, rules.subject)
    source, destination = (_named(rules.strategy, topic, side, schema) for topic in (route.source, route.destination))
    return Pair(source, destination)


def _named(strategy: Strategy, topic: str, side: Side, schema: Schema) -> str:
    if strategy == "topic-name":
        return f"{topic}-{side}"
    name = record_name(schema)
    return name if strategy == "record-name" else f"{topic}-{name}"


def renamed(subject: str, strategy: Strategy, renames: Mapping[str, str]) -> str:
    """The destination's name of a subject that another schema refers to.

    It follows its topic if the mirror renames that topic; any other subject keeps its name.
    """
    if strategy == "topic-name":
        topic, dash, side = subject.rpartition("-")
        if side in ("key", "value") and topic in renames:
            return f"{renames[topic]}{dash}{side}"
    if strategy == "topic-record-name":
        owner = _owner(subject, renames)
        if owner is not None:
            return renames[owner] + subject[len(owner) :]
    return subject


def known_ahead(rules: SchemaRules, topics: Mapping[str, str], subjects: Iterable[str]) -> tuple[Pair, ...]:
    """The pairs that are certain before any record of these topics is read, of the `subjects` the source has.

    With record-name or a fixed subject only the records tell which schemas a topic uses: nothing is certain.
    """
    if rules.strategy not in ("topic-name", "topic-record-name"):
        return ()
    pairs = []
    present = sorted(subjects)
    for topic, destination in topics.items():
        if rules.strategy == "topic-name":
            wanted = {f"{topic}-{side}" for side in ("key", "value") if rules.carried(side) != "none"}
            named = [subject for subject in present if subject in wanted]
        else:
            named = [subject for subject in present if _owner(subject, topics) == topic]
        pairs += [Pair(subject, destination + subject[len(topic) :]) for subject in named]
    return tuple(pairs)


def _owner(subject: str, topics: Iterable[str]) -> str | None:
    """The topic a topic-record-name subject belongs to: the longest, as `a-b-Order` is of `a-b`, not of `a`."""
    return max((topic for topic in topics if subject.startswith(f"{topic}-")), key=len, default=None)


def record_name(schema: Schema) -> str:
    """The full name of what a schema describes; of a Protobuf file its first message."""
    if schema.type == "PROTOBUF":
        name = _message_name(schema.text)
    elif schema.type == "JSON":
        name = _parsed(schema.text).get("title")
    else:
        name = _avro_name(_parsed(schema.text))
    if not isinstance(name, str) or not name:
        raise Nameless(
            f"a {schema.type} schema has no record name ({schema.text[:80]!r}), so a subject named after its record "
            "cannot be found; is subjects: topic-name meant?"
        )
    return name


def _parsed(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text.strip()
    return parsed if isinstance(parsed, dict) else {"type": parsed}


def _avro_name(parsed: dict[str, Any]) -> str | None:
    name, namespace = parsed.get("name"), parsed.get("namespace")
    if isinstance(name, str):
        return f"{namespace}.{name}" if isinstance(namespace, str) and namespace and "." not in name else name
    kind = parsed.get("type")
    return kind if isinstance(kind, str) else None


def _message_name(text: str) -> str | None:
    package, depth, previous = "", 0, ""
    for token in proto_tokens(text):
        if depth == 0 and previous == "package":
            package = token
        if depth == 0 and previous == "message":
            return f"{package}.{token}" if package else token
        depth += {"{": 1, "}": -1}.get(token, 0)
        previous = token
    return None
