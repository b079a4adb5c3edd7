"""One mirror with the defaults of its group already laid under it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Scalar, Strict
from barnabas.config.guarantees import refuse_guarded
from barnabas.config.schemas import OnBadSchema, Schemas
from barnabas.errors import ConfigError

LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+")
LONGEST_TOPIC = 249
LONGEST_MIRROR = 200  # leaves room for the ledger's and the quarantine's own prefix and suffix


class Selection(Strict):
    """`from`: names as they are, or regular expressions over whole names."""

    names: tuple[str, ...] = ()
    match: tuple[str, ...] = ()
    but: tuple[str, ...] = Field(default=(), alias="except")

    @field_validator("match", "but", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("match", "but")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise PydanticCustomError(
                    "regex", "{p} is not a regular expression: {e}", {"p": repr(pattern), "e": str(error)}
                ) from None
        return patterns

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.names and not self.match:
            raise PydanticCustomError("selection", "selects nothing: give a name, a list of names or {match: REGEX}")
        for at, name in enumerate(self.names):
            if not LEGAL_NAME.fullmatch(name) or len(name) > LONGEST_TOPIC:
                raise PydanticCustomError(
                    "topic",
                    "{n} cannot be a topic's name: for a regular expression write {match: …}",
                    {"n": repr(name), "key": at},
                )
        return self


class Replacement(Strict):
    """`to` as a regular expression over the whole source name and what it becomes."""

    replace: str
    by: str = Field(alias="with")

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        try:
            re.compile(self.replace)
            re.sub(self.replace, self.by, "")
        except (re.error, IndexError) as error:
            raise PydanticCustomError(
                "regex", "not a regular expression and its replacement: {e}", {"e": str(error)}
            ) from None
        return self


class Count(Strict):
    """How many replicas or partitions a new topic gets: a fixed number, or the source's within bounds."""

    fixed: int | None = Field(default=None, ge=1)
    source: Literal["source"] | None = Field(default=None, alias="from")
    min: int = Field(default=1, ge=1)
    max: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.fixed is None) == (self.source is None):
            raise PydanticCustomError("count", "give a number, or {from: source} with `min` and `max`")
        if self.max is not None and self.max < self.min:
            raise PydanticCustomError("count", "`max` {max} is below `min` {min}", {"max": self.max, "min": self.min})
        return self

    def of(self, source: int) -> int:
        if self.fixed is not None:
            return self.fixed
        wanted = max(source, self.min)
        return wanted if self.max is None else min(wanted, self.max)


def _count(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"fixed": value}
    if not isinstance(value, dict | Count):
        raise PydanticCustomError("count", "give a number, or {from: source} with `min` and `max`")
    return value


_FROM_SOURCE = Count.model_validate({"from": "source"})


class TopicRules(Strict):
    create: bool = True
    replication: Count = _FROM_SOURCE
    partitions: Count = _FROM_SOURCE
    settings: dict[str, Scalar] = Field(default_factory=dict)
    keep_in_step: bool = False

    @field_validator("replication", "partitions", mode="before")
    @classmethod
    def _plain_number(cls, value: Any) -> Any:
        return _count(value)


class LedgerRules(Strict):
    replication: int | None = Field(default=None, ge=1)


class Start(Strict):
    """Where partitions without a position begin."""

    at: Literal["earliest", "latest", "timestamp", "offsets"]
    millis: int | None = None
    offsets: dict[str, dict[int, Annotated[int, Field(ge=0)]]] = Field(default_factory=dict)


def _start(value: Any) -> Any:
    if isinstance(value, Start) or (isinstance(value, dict) and set(value) == {"offsets"}):
        return value if isinstance(value, Start) else {"at": "offsets", **value}
    if value in ("earliest", "latest"):
        return {"at": value}
    millis = value if isinstance(value, int) and not isinstance(value, bool) else _millis(value)
    if millis is None:
        raise PydanticCustomError(
            "start", "must be earliest, latest, a timestamp such as 2026-01-31T00:00:00Z, or {offsets: …}"
        )
    if millis < 0:
        raise PydanticCustomError("start", "is before 1970, where Kafka's timestamps begin: write earliest")
    return {"at": "timestamp", "millis": millis}


def _millis(value: Any) -> int | None:
    """The moment an ISO text names, in UTC unless it says otherwise; None for what names none."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def started(text: str) -> Start:
    """A starting point as it is written on the command line."""
    try:
        return Start.model_validate(_start(text))
    except PydanticCustomError as error:
        raise ConfigError(f"{text!r}: {error.message()}") from None


class Batch(Strict):
    """How much one micro-batch takes, and over how many transactions at once it is spread."""

    records: int = Field(default=500_000, ge=1)
    lanes: int | None = Field(default=None, ge=1, le=64)


class Mirror(Strict):
    name: str
    group: str
    place: str = Field(default="", exclude=True)  # file and line, for complaints
    enabled: bool = True
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
    provenance: bool = False
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
            unknown = set(re.findall(r"\{([^{}]*)\}", value)) - {"topic", "source", "destination"}
            if unknown or value.count("{") != value.count("}"):
                raise PydanticCustomError("template", "knows {topic}, {source} and {destination} only")
        return value

    @field_validator("start", mode="before")
    @classmethod
    def _point(cls, value: Any) -> Any:
        return _start(value)

    @field_validator("consumer", "producer")
    @classmethod
    def _harmless(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        return refuse_guarded(settings)

    @model_validator(mode="after")
    def _two_clusters(self) -> Self:
        if self.source == self.destination:
            raise PydanticCustomError("clusters", "`source` and `destination` are the same cluster")
        return self

    @property
    def quarantine_topic(self) -> str:
        return f"{self.name}.quarantine"

    @property
    def ledger_topic(self) -> str:
        return f"_barnabas.{self.name}"
