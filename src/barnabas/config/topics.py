"""`topics` and `ledger`: how topics are made at the destination."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Scalar, Strict

MOST = 100_000  # partitions of a topic: more than any cluster has, fewer than a mistake's


class Count(Strict):
    """How many replicas or partitions a new topic gets: a fixed number, or the source's within bounds."""

    fixed: int | None = Field(default=None, ge=1, le=MOST)
    source: Literal["source"] | None = Field(default=None, alias="from")
    min: int = Field(default=1, ge=1, le=MOST)
    max: int | None = Field(default=None, ge=1, le=MOST)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        bounded = self.fixed is not None and self.model_fields_set & {"min", "max"}
        if (self.fixed is None) == (self.source is None) or bounded:
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
    create_at_most: int = Field(default=10_000, ge=1, le=10 * MOST)  # partitions, by a demux in one run

    @field_validator("replication", "partitions", mode="before")
    @classmethod
    def _plain_number(cls, value: Any) -> Any:
        return _count(value)


class LedgerRules(Strict):
    replication: int | None = Field(default=None, ge=1, le=MOST)
