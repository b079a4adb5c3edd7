"""`start`: where partitions without a position begin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Strict
from barnabas.errors import ConfigError

FEWEST = 10**10  # milliseconds, four months: fewer are seconds, or a date without its quotes
LARGEST = 2**63 - 1  # of Kafka's offsets and timestamps


class Start(Strict):
    """Where partitions without a position begin."""

    at: Literal["earliest", "latest", "timestamp", "offsets"]
    millis: int | None = None
    offsets: dict[str, dict[int, Annotated[int, Field(ge=0, le=LARGEST)]]] = Field(default_factory=dict)


def start_of(value: Any) -> Any:
    if isinstance(value, Start) or (isinstance(value, dict) and set(value) == {"offsets"}):
        return value if isinstance(value, Start) else {"at": "offsets", **value}
    if value in ("earliest", "latest"):
        return {"at": value}
    millis = value if isinstance(value, int) and not isinstance(value, bool) else _millis(value)
    if millis is None:
        raise PydanticCustomError(
            "start", "must be earliest, latest, a timestamp such as 2026-01-31T00:00:00Z, or {offsets: …}"
        )
    if isinstance(value, int) and 0 < millis < FEWEST:
        raise PydanticCustomError(
            "start",
            "a number is milliseconds since 1970, and {n} are early in that year: put a date in quotes",
            {"n": value},
        )
    if millis < 0:
        raise PydanticCustomError("start", "is before 1970, where Kafka's timestamps begin: write earliest")
    if millis > LARGEST:
        raise PydanticCustomError("start", "is later than any of Kafka's timestamps: write milliseconds since 1970")
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
        return Start.model_validate(start_of(text))
    except PydanticCustomError as error:
        raise ConfigError(f"{text!r}: {error.message()}") from None
