"""One entry of `clusters:`: where it is, how to prove who we are, and its schema registry."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from barnabas.config.address import HOST_NAME, is_ip
from barnabas.config.guarantees import refuse_guarded
from barnabas.config.secret import Secret, Text

Scalar = str | int | float | bool


def at_home(path: Path) -> Path:
    """The path with a leading ~ or ~user written out."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise PydanticCustomError("file", "{p}: {e}", {"p": str(path), "e": str(error)}) from None


ReadableFile = Annotated[Path, AfterValidator(at_home)]  # looked for when it is needed, see needs.py


def _http(url: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", url) or not _has_host(url):
        raise PydanticCustomError(
            "url", "must be http://HOST[:PORT][/PATH] or https://…, with user and password apart from it"
        )
    return url


def _has_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, half a bracket
        return False


Url = Annotated[str, AfterValidator(_http)]


class Strict(BaseModel):
    """Unknown keys are mistakes, and what was read does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Sasl(Strict):
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    username: Text | None = None
    password: Secret | None = None
    token_url: Url | None = None
    client_id: Text | None = None
    client_secret: Secret | None = None
    scope: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        oauth = ("token_url", "client_id", "client_secret")
        needed = oauth if self.mechanism == "OAUTHBEARER" else ("username", "password")
        foreign = ("username", "password") if self.mechanism == "OAUTHBEARER" else (*oauth, "scope")
        for name in needed:
            if getattr(self, name) is None:
                raise PydanticCustomError("sasl", "{m} needs `{name}`", {"m": self.mechanism, "name": name})
        for name in foreign:
            if getattr(self, name) is not None:
                raise PydanticCustomError("sasl", "{m} takes no `{key}`", {"m": self.mechanism, "key": name})
        return self


class Tls(Strict):
    ca: ReadableFile | None = None
    certificate: ReadableFile | None = None
    key: ReadableFile | None = None
    key_password: Secret | None = None

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise PydanticCustomError("tls", "`certificate` and `key` go together: give both or neither")
        return self


class Registry(Strict):
    url: Url
    username: Text | None = None
    password: Secret | None = None
    token: Secret | None = None
    ca: ReadableFile | None = None
    certificate: ReadableFile | None = None
    key: ReadableFile | None = None

    @field_validator("url")
    @classmethod
    def _bare(cls, url: str) -> str:
        return url.rstrip("/")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise PydanticCustomError("registry", "`username` and `password` go together: give both or neither")
        if (self.certificate is None) != (self.key is None):
            raise PydanticCustomError("registry", "`certificate` and `key` go together: give both or neither")
        if self.token is not None and self.username is not None:
            raise PydanticCustomError("registry", "give `token` or `username` and `password`, not both")
        return self


class Cluster(Strict):
    bootstrap: str
    sasl: Sasl | None = None
    tls: Tls | None = None
    registry: Registry | None = None
    tunnel: str | None = None
    settings: dict[str, Scalar] = Field(default_factory=dict)

    @field_validator("tls", mode="before")
    @classmethod
    def _switched(cls, value: Any) -> Any:
        return {True: {}, False: None}[value] if isinstance(value, bool) else value

    @field_validator("bootstrap", mode="before")
    @classmethod
    def _joined(cls, value: Any) -> Any:
        return ",".join(map(str, value)) if isinstance(value, list) else value

    @field_validator("bootstrap")
    @classmethod
    def _addresses(cls, bootstrap: str) -> str:
        addresses = [part.strip() for part in bootstrap.split(",")]
        for address in addresses:
            host, colon, port = address.rpartition(":")
            if "@" in address:
                raise PydanticCustomError("address", "credentials do not belong into an address: use `sasl`")
            bare = host[1:-1] if host.startswith("[") and host.endswith("]") else None
            if not colon or not (HOST_NAME.fullmatch(host) if bare is None else is_ip(bare)):
                dot = ": write the name without the dot at its end" if host.endswith(".") else ""
                raise PydanticCustomError("address", "{a} is not HOST:PORT{dot}", {"a": repr(address), "dot": dot})
            if not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) < 65536:
                raise PydanticCustomError("address", "the port of {a} is not a number in 1…65535", {"a": repr(address)})
        return ",".join(addresses)

    @field_validator("settings")
    @classmethod
    def _harmless(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        return refuse_guarded(settings)
