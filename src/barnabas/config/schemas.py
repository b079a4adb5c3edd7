"""A mirror's `schemas:` block, and how it and a cluster's `registry:` become what workers are given."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Registry, Strict
from barnabas.schemas.settings import (
    Carried,
    Compatibility,
    Mode,
    NamedStrategy,
    OnBadSchema,
    RegistrySettings,
    SchemaRules,
)

__all__ = ["FixedSubject", "OnBadSchema", "Schemas", "registry_settings"]


class FixedSubject(Strict):
    """`subjects: {fixed: NAME}`: every schema goes into this one subject of the destination."""

    fixed: str = Field(min_length=1)


class Schemas(Strict):
    """How keys and values carry schemas, and how their subjects are to look at the destination."""

    value: Carried = "registry"
    key: Carried = "none"
    mode: Mode = "strict"
    subjects: NamedStrategy | FixedSubject = "topic-name"
    compatibility: Compatibility = "source"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if isinstance(self.subjects, FixedSubject) and self.mode != "ids":
            raise PydanticCustomError(
                "schemas",
                "`subjects: {fixed: …}` puts schemas of several subjects into one, which has no history to follow: "
                "it needs `mode: ids`, not {mode}",
                {"mode": self.mode},
            )
        if isinstance(self.subjects, FixedSubject) and "compatibility" not in self.model_fields_set:
            raise PydanticCustomError(
                "schemas",
                "`subjects: {fixed: …}` puts schemas of several subjects into one, and a level would refuse those that "
                "are no versions of each other: write `compatibility: NONE`, or the level that is meant",
            )
        return self

    def rules(self, on_bad: OnBadSchema) -> SchemaRules:
        """The same for a worker."""
        fixed = self.subjects.fixed if isinstance(self.subjects, FixedSubject) else None
        return SchemaRules(
            key=self.key,
            value=self.value,
            mode=self.mode,
            strategy="fixed" if isinstance(self.subjects, FixedSubject) else self.subjects,
            subject=fixed,
            compatibility=self.compatibility,
            on_bad=on_bad,
        )


def registry_settings(cluster: str, registry: Registry) -> RegistrySettings:
    """A cluster's registry for a client, its secrets read now."""
    return RegistrySettings(
        name=cluster,
        url=registry.url,
        username=registry.username.reveal() if registry.username else None,
        password=registry.password.reveal() if registry.password else None,
        token=registry.token.reveal() if registry.token else None,
        ca=str(registry.ca) if registry.ca else None,
        certificate=str(registry.certificate) if registry.certificate else None,
        key=str(registry.key) if registry.key else None,
    )
