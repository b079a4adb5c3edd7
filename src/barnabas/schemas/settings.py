"""What a registry client and a schema translation need to know: frozen plain values, no configuration model.

Spark's Python workers need them too, because workers register schemas. Credentials never show in a `repr`, and settings
with credentials cannot be pickled: workers read them from a private file, see `worker/sealed.py`.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, NoReturn
from urllib.parse import urlsplit, urlunsplit

Side = Literal["key", "value"]
Carried = Literal["registry", "none", "auto"]
Mode = Literal["strict", "lenient", "ids"]
NamedStrategy = Literal["topic-name", "record-name", "topic-record-name"]
Strategy = NamedStrategy | Literal["fixed"]
OnBadSchema = Literal["stop", "pass", "quarantine"]
Compatibility = Literal[
    "source", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"
]

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
ATTEMPTS = 3
BREAKER_FAILURES = 5
BREAKER_SECONDS = 10.0
REASK_SECONDS = 10.0


@dataclass(frozen=True)
class RegistrySettings:
    """One registry as one side of a mirror sees it; `name` is what error sentences call it."""

    name: str
    url: str
    username: str | None = None
    password: str | None = None
    token: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    connect_seconds: float = CONNECT_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    attempts: int = ATTEMPTS
    breaker_failures: int = BREAKER_FAILURES
    breaker_seconds: float = BREAKER_SECONDS

    def __repr__(self) -> str:
        return f"RegistrySettings(name={self.name!r}, address={self.address!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f'the settings of the registry of "{self.name}" hold secrets and do not leave this process')

    @property
    def files(self) -> tuple[str, ...]:
        """What is loaded from the disk when a client is made."""
        return tuple(file for file in (self.ca, self.certificate, self.key) if file)

    @property
    def address(self) -> str:
        """The URL without the user and password somebody may have put into it: fit to be printed."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@dataclass(frozen=True)
class SchemaRules:
    """How one mirror treats schemas; the defaults are the configuration's defaults."""

    key: Carried = "none"
    value: Carried = "registry"
    mode: Mode = "strict"
    strategy: Strategy = "topic-name"
    subject: str | None = None
    compatibility: Compatibility = "source"
    on_bad: OnBadSchema = "stop"

    def __post_init__(self) -> None:
        if (self.strategy == "fixed") != (self.subject is not None):
            raise ValueError("a fixed subject strategy and a subject name go together")
        if self.strategy == "fixed" and self.mode != "ids":
            raise ValueError("one fixed subject has no single history to follow: it needs mode ids")

    def carried(self, side: Side) -> Carried:
        """How records carry the schema of this side."""
        return self.key if side == "key" else self.value


class TopicRoute(NamedTuple):
    """A source topic, the destination topic it becomes, and the number by which records name the two."""

    number: int
    source: str
    destination: str


@dataclass(frozen=True)
class TranslationSettings:
    """Everything a worker needs to translate ids for one mirror."""

    mirror: str
    source: RegistrySettings
    destination: RegistrySettings
    rules: SchemaRules
    routes: tuple[TopicRoute, ...]
    reask_seconds: float = REASK_SECONDS

    @property
    def renames(self) -> dict[str, str]:
        """Source topic → destination topic."""
        return {route.source: route.destination for route in self.routes}
