"""What a task must know to write, frozen and small: it travels to the workers with every micro-batch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from barnabas import errors
from barnabas.errors import BarnabasError
from barnabas.model import ANY_TIME, Connection, Properties, Route
from barnabas.schemas.settings import TranslationSettings
from barnabas.spoke import Spoke

_MARK = "barnabas-outcome"


@dataclass(frozen=True)
class Limits:
    """How large a record may be, with its headers and what a batch of one record needs: bytes before compression."""

    largest: Mapping[str, int]  # by destination topic: its max.message.bytes
    narrowest: int  # of these and of what the client takes
    client: int  # what this mirror's producer holds, for any topic
    quarantine: int  # what it may write to the quarantine
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # how far timestamps may be behind and ahead
    quarantine_behind: int = ANY_TIME
    compresses: bool = False  # whether the producer compresses: a broker may take what is larger before
    compacted: frozenset[str] = frozenset()  # topics that take no record without a key

    def lenient(self) -> Limits:
        """The same without those of topics: what a broker takes, it decides."""
        return replace(self, largest={}, narrowest=self.client)


@dataclass(frozen=True)
class WriteTask:
    """One mirror's epoch, as its writers see it."""

    mirror: str
    ledger: str
    epoch: int
    run: str
    destination: Connection
    routes: Mapping[int, Route]
    producer: Properties = field(default_factory=dict)
    partitioning: Literal["keep", "key"] = "keep"
    spread: int = 0  # a mux: source partitions are spread over so many partitions of the intermediate topic
    spoke: Spoke | None = None  # a mux: what it tells of where records come from
    demuxed: Mapping[str, Route] | None = None  # a demux: destination topic → what is known of it
    declined: frozenset[str] = frozenset()  # a demux: topics that it may not make, or grow
    on_bad_record: Literal["stop", "quarantine"] = "stop"
    zero_timestamps: Literal["stop", "as_one"] = "stop"
    schemas: TranslationSettings | None = None
    on_bad: Literal["stop", "pass", "quarantine"] = "stop"
    limits: Limits | None = None  # None: sizes are not judged
    quarantine: str = ""  # the topic for records that are set aside
    selects: bool = False  # whether `where` or `provenance` judge records before they come here
    looked_to: int = 0  # up to this offset of the ledger the driver has seen no newer epoch


def marked(error: BarnabasError) -> RuntimeError:
    """An expected outcome on its way through Spark, which brings exceptions to the driver as text only."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    fields = {"kind": kind.__name__, "says": str(error), "details": dict(error.details)}
    return RuntimeError(f"{_MARK}{json.dumps(fields)}")


def unmarked(text: str) -> BarnabasError | None:
    """The outcome in a text that Spark brought back, or None when it holds none of ours."""
    for found in re.finditer(_MARK, text):
        try:
            fields, _ = json.JSONDecoder().raw_decode(text, found.end())
        except ValueError:  # cut off, or somebody else's words
            continue
        error: BarnabasError = getattr(errors, fields["kind"])(fields["says"])
        error.details = fields["details"]
        return error
    return None
