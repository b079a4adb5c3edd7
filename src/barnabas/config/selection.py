"""`from` and `to`: which topics, and what they are called at the destination."""

from __future__ import annotations

import re
from typing import Any, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Strict

LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]+")
LONGEST_TOPIC = 249
BAD_REGEX = (re.error, OverflowError, RecursionError)  # not one, a count beyond all bounds, brackets too deep


def _short(text: str) -> str:
    return repr(text if len(text) <= LONGEST_TOPIC else f"{text[:LONGEST_TOPIC]}…")


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
            except BAD_REGEX as error:
                raise PydanticCustomError(
                    "regex", "{p} is not a regular expression: {e}", {"p": _short(pattern), "e": str(error)}
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
        except (*BAD_REGEX, IndexError) as error:
            raise PydanticCustomError(
                "regex", "not a regular expression and its replacement: {e}", {"e": str(error)}
            ) from None
        return self
