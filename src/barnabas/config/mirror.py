"""One mirror with the defaults of its group already laid under it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Cluster, Registry, Scalar, Strict
from barnabas.config.consumer import refuse_unknown
from barnabas.config.guarantees import refuse_guarded
from barnabas.config.schemas import OnBadSchema, Schemas
from barnabas.config.selection import LEGAL_NAME, Replacement, Selection
from barnabas.config.start import Start, start_of
from barnabas.config.topics import LedgerRules, TopicRules
from barnabas.errors import ConfigError

MUX_TOPICS = "mux-replication_"
LONGEST_MIRROR = 200  # leaves room for the ledger's and the quarantine's own prefix and suffix


class Batch(Strict):
    """How much one micro-batch takes, and over how many transactions at once it is spread."""

    records: int = Field(default=500_000, ge=1, le=1_000_000_000)
    lanes: int | None = Field(default=None, ge=1, le=64)


class Mirror(Strict):
    """`kind`: a plain mirror; many topics into one intermediate topic (mux); or out of it again (demux)."""

    name: str
    group: str
    place: str = Field(default="", exclude=True)  # file and line, for complaints
    enabled: bool = True
    kind: Literal["mirror", "mux", "demux"] = "mirror"
    identifier: str | None = None
    intermediate: str | None = None
    keep_mux_headers: bool = False
    registry_of: str | None = None
    on_bad_record: Literal["stop", "quarantine"] = "stop"
    source: str
    destination: str
    select: Selection = Field(alias="from")
    to: str | Replacement = "{topic}"
    merge: bool = False
    start: Start = Start(at="earliest")
    topics: TopicRules = TopicRules()
    ledger: LedgerRules = LedgerRules()
    schemas: Schemas | None = None
    on_bad_schema: OnBadSchema = "stop"
    on_loss: Literal["stop", "record", "restart"] = "stop"
    where: str | None = None
    partitioning: Literal["keep", "key"] = "keep"
    provenance: bool | Literal["direct"] = False  # direct: only what was born at the source
    zero_timestamps: Literal["stop", "as_one"] = "stop"
    batch: Batch = Batch()
    consumer: dict[str, Scalar] = Field(default_factory=dict)
    producer: dict[str, Scalar] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _legal(cls, name: str) -> str:
        if not LEGAL_NAME.fullmatch(name) or len(name) > LONGEST_MIRROR:
            raise PydanticCustomError(
                "name",
                "a mirror's name is up to {n} letters, digits, dots, dashes and underscores: it names the ledger",
                {"n": LONGEST_MIRROR},
            )
        return name

    @field_validator("select", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"names": [value]}
        if not isinstance(value, list | dict | Selection):
            raise PydanticCustomError("selection", "must be a name, a list of names or {match: REGEX}")
        return {"names": value} if isinstance(value, list) else value

    @field_validator("to", mode="before")
    @classmethod
    def _template(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return Replacement.model_validate(value)
        if isinstance(value, str):
            unknown = set(re.findall(r"\{([^{}]*)\}", value)) - {"topic", "source", "destination", "identifier"}
            if unknown or value.count("{") != value.count("}"):
                raise PydanticCustomError(
                    "template", "knows {topic}, {source}, {destination} and, in a demux, {identifier} only"
                )
        return value

    @field_validator("start", mode="before")
    @classmethod
    def _point(cls, value: Any) -> Any:
        return start_of(value)

    @field_validator("where")
    @classmethod
    def _says_something(cls, where: str | None) -> str | None:
        if where is not None and not where.strip():
            raise PydanticCustomError("where", "is empty: write a condition, or null to copy every record")
        return where

    @field_validator("provenance", mode="before")
    @classmethod
    def _one_of_three(cls, provenance: Any) -> Any:
        if not isinstance(provenance, bool) and provenance != "direct":
            raise PydanticCustomError("provenance", "must be true, false or direct")
        return provenance

    @field_validator("consumer", "producer")
    @classmethod
    def _harmless(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        return refuse_guarded(settings)

    @field_validator("consumer")
    @classmethod
    def _known(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        return refuse_unknown(settings)

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.kind == "mirror" and self.source == self.destination:
            raise PydanticCustomError("clusters", "`source` and `destination` are the same cluster")
        if (self.kind == "mux") != (self.identifier is not None):
            raise PydanticCustomError("mux", "`identifier` names a spoke: a mux needs one, nothing else has one")
        if self.identifier is not None and not LEGAL_NAME.fullmatch(self.identifier):
            raise PydanticCustomError("mux", "`identifier` is made of letters, digits, dots, dashes and underscores")
        if self.kind != "mux" and self.intermediate is not None:
            raise PydanticCustomError("mux", "`intermediate` is the topic of a mux; a demux takes it as `from`")
        if self.kind != "demux" and isinstance(self.to, str) and "{identifier}" in self.to:
            raise PydanticCustomError("mux", "`to` knows {identifier} only in a demux")
        if self.kind != "mirror" and (self.partitioning != "keep" or isinstance(self.to, Replacement)):
            raise PydanticCustomError("mux", "mux and demux keep partitions and name topics by a template")
        if self.kind == "mux" and (self.schemas is not None or self.to != "{topic}"):
            raise PydanticCustomError("mux", "a mux carries bytes: `schemas` and `to` belong to the demux")
        if self.merge and self.topics.keep_in_step:
            raise PydanticCustomError(
                "merge",
                "`merge` and `topics.keep_in_step` do not go together: each source would set its own settings in turn; "
                "write them under `topics.settings`",
            )
        if self.kind != "demux" and self.registry_of is not None:
            raise PydanticCustomError("mux", "`registry_of` is for a demux: others read the registry of their `source`")
        return self

    @model_validator(mode="after")
    def _fitting_demux(self) -> Self:
        if self.kind != "demux":
            return self
        merges = "{topic}" not in str(self.to)
        if merges and not self.merge:
            raise PydanticCustomError(
                "mux", "`to` without {topic} makes one topic of many: say `merge: true` if wanted"
            )
        if merges and self.schemas is not None and self.schemas.subjects in ("topic-name", "topic-record-name"):
            raise PydanticCustomError(
                "mux",
                "schemas are looked for by the name of a topic, and `to` makes one of many: give `schemas` "
                "`subjects: record-name`, or `to` its {topic}",
            )
        if self.provenance == "direct":
            raise PydanticCustomError(
                "mux",
                "`provenance: direct` is not for a demux: what it reads was born elsewhere; "
                "set it on the mux, and `true` here",
            )
        if self.schemas is not None and self.registry_of is None:
            raise PydanticCustomError(
                "mux", "a demux needs `registry_of`: the cluster in whose registry the records' schema ids stand"
            )
        return self

    def source_registry(self, clusters: Mapping[str, Cluster]) -> tuple[str, Registry]:
        """The registry that the records' schema ids are of, and its cluster; ConfigError where there is none."""
        name = self.registry_of or self.source
        registry = clusters[name].registry if name in clusters else None
        if registry is None:
            lacks = "has no `registry`" if name in clusters else "does not exist"
            raise ConfigError(f'{self.place}: mirror "{self.name}": registry_of: cluster "{name}" {lacks}')
        return name, registry

    @property
    def takes(self) -> dict[str, Any]:
        """`from` in plain words, for the ledger."""
        return {name: list(given) for name, given in self.select.model_dump(by_alias=True).items() if given}

    @property
    def intermediate_topic(self) -> str:
        """Where a mux writes."""
        return self.intermediate or f"{MUX_TOPICS}{self.identifier}"

    @property
    def sets_aside(self) -> bool:
        """Whether bad records go to the quarantine, which then must be there."""
        schemas = self.schemas is not None and self.on_bad_schema == "quarantine"
        return schemas or self.on_bad_record == "quarantine"

    @property
    def quarantine_topic(self) -> str:
        return f"{self.name}.quarantine"

    @property
    def ledger_topic(self) -> str:
        return f"_barnabas.{self.name}"
