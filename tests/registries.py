"""Schemas of every kind, and two real registries seen through our own client."""

import json
import secrets
from typing import Any

from barnabas.lab.registry import Registry
from barnabas.schemas.mirroring import Mirroring
from barnabas.schemas.registry import RegistryClient
from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TopicRoute, TranslationSettings


def avro(name: str, *fields: str, **types: str) -> Schema:
    """A record whose int fields have defaults, so that adding and removing them is compatible both ways."""
    listed = [{"name": each, "type": types.get(each, "int"), "default": 0} for each in fields]
    return Schema(json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": listed}))


def versions(name: str, count: int) -> list[Schema]:
    """A record that grows by one field with each version."""
    return [avro(name, *(f"f{n}" for n in range(each))) for each in range(1, count + 1)]


def json_schema(title: str, properties: dict[str, Any], *references: Reference) -> Schema:
    text = json.dumps({"title": title, "type": "object", "properties": properties})
    return Schema(text, "JSON", references)


def proto(text: str, *references: Reference) -> Schema:
    return Schema(f'syntax = "proto3";\npackage shop;\n{text}\n', "PROTOBUF", references)


def settings_of(registry: Registry, **changed: Any) -> RegistrySettings:
    return RegistrySettings(name=registry.name, url=registry.url, **changed)


class Registries:
    """A source and a destination, and a mirroring between them."""

    def __init__(self, source: RegistrySettings, destination: RegistrySettings) -> None:
        self.settings = source, destination
        self.source = RegistryClient(source)
        self.destination = RegistryClient(destination)

    @classmethod
    def with_other_ids(cls, source: Registry, destination: Registry) -> "Registries":
        """The destination gets some schemas of its own first, so that its ids are not the source's."""
        both = cls(settings_of(source), settings_of(destination))
        ballast = f"ballast-{secrets.token_hex(4)}"
        for schema in versions(ballast.replace("-", "_"), 7):
            both.destination.register(ballast, schema)
        return both

    def mirroring(self, rules: SchemaRules, **renames: str) -> Mirroring:
        return Mirroring(self.source, self.destination, rules, renames)

    def translation(self, rules: SchemaRules, *routes: tuple[str, str], **changed: Any) -> TranslationSettings:
        source, destination = self.settings
        numbered = tuple(TopicRoute(number, *topics) for number, topics in enumerate(routes))
        return TranslationSettings(
            mirror="orders", source=source, destination=destination, rules=rules, routes=numbered, **changed
        )

    def fill(self, subject: str, schemas: list[Schema]) -> list[int]:
        """Register versions at the source; their ids there."""
        return [self.source.register(subject, schema) for schema in schemas]

    def texts(self, subject: str) -> list[str]:
        """The destination's versions of a subject, as canonical texts."""
        return [each.schema.canonical() for each in self.destination.history(subject)]
