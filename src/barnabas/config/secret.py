"""Secrets stand in the configuration only as references, `env:NAME` or `file:PATH`, and are read when used.

Reading late means that a rotated password is found by the next client that is made, without a new process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from barnabas.errors import ConfigError, Unavailable


class Secret:
    """A reference to a secret. Its text never shows the value, because it never holds it."""

    __slots__ = ("reference",)

    def __init__(self, reference: str) -> None:
        self.reference = reference

    def reveal(self) -> str:
        """The secret itself; ConfigError when the variable is not there, Unavailable when the file is not: it was
        there when the configuration was read, so it may be about to be replaced. An empty one is not there either."""
        kind, _, name = self.reference.partition(":")
        if kind == "env":
            text = os.environ.get(name, "").rstrip("\r\n")
            if not text:
                raise ConfigError(f"environment variable {name} is {'empty' if name in os.environ else 'not set'}")
            return text
        try:
            text = Path(name).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise Unavailable(f"secret file {name} cannot be read: not UTF-8 text") from None
        except (OSError, RuntimeError, ValueError) as error:  # no such file; no such user's home; no path at all
            reason = error.strerror if isinstance(error, OSError) else error
            raise Unavailable(f"secret file {name} cannot be read: {reason}") from None
        if not text:
            raise Unavailable(f"secret file {name} is empty")
        return text

    def __repr__(self) -> str:
        return f"Secret({self.reference})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.reference == self.reference

    def __hash__(self) -> int:
        return hash(self.reference)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated, serialization=core_schema.plain_serializer_function_ser_schema(lambda s: s.reference)
        )

    @classmethod
    def _validated(cls, value: object) -> Secret:
        if isinstance(value, Secret):
            return value
        kind, _, name = str(value).partition(":")
        if kind not in ("env", "file") or not name:
            raise PydanticCustomError("secret", "a secret must be written as env:NAME or file:PATH, never as itself")
        return cls(str(value))


class Text(Secret):
    """A user name or key: a reference like a secret, or the text itself, since it is none."""

    __slots__ = ()

    def reveal(self) -> str:
        return super().reveal() if self.reference.startswith(("env:", "file:")) else self.reference

    @classmethod
    def _validated(cls, value: object) -> Text:
        if isinstance(value, Text):
            return value
        if not isinstance(value, str):
            raise PydanticCustomError("text", "must be text: put it in quotes")
        return cls(value)
