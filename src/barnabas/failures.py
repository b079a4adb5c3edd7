"""Why a streaming query ended: Spark's texts in our words, from one table."""

from __future__ import annotations

import re

from barnabas.errors import AccessDenied, BadRecord, BarnabasError, Refused, Unavailable
from barnabas.model import Partition
from barnabas.worker.task import unmarked


class BatchTooLarge(Unavailable):
    """A batch of large records did not fit into the memory there is for it."""


class Unreadable(BadRecord):
    """Spark cannot bring a record, and tells which."""

    PLACE = re.compile(r"topic (\S+) partition (\d+) offset (\d+) ")

    def place(self) -> tuple[Partition, int] | None:
        found = self.PLACE.search(str(self))
        return (Partition(found[1], int(found[2])), int(found[3])) if found else None


PLAN = "=== Streaming Query ==="
BEYOND_SPARK = "a record's timestamp is beyond what Spark can bring"
TOO_LARGE = "too large for one batch (if it stays so: -XX:MaxDirectMemorySize in spark.driver.defaultJavaOptions)"
MEANINGS: tuple[tuple[str, type[BarnabasError], str], ...] = (
    (r"TopicAuthorizationException|GroupAuthorizationException", Refused, "not allowed to read the source: grant it"),
    (r"SaslAuthenticationException", AccessDenied, "the source refuses our credentials: are they right?"),
    (r"SslAuthenticationException|SSLHandshakeException", AccessDenied, "TLS with the source failed: is its CA right?"),
    (r"OffsetOutOfRange|failOnDataLoss|may have been lost|might have been missed", Unavailable, "offsets are gone"),
    (r"LogTruncationException", Unavailable, "offsets are gone: the log was cut off"),
    (r"UnknownTopicOrPartition|UNKNOWN_TOPIC", Unavailable, "a source topic vanished"),
    (r"MALFORMED_RECORD_TIMESTAMP|timestamp value -?\d+ that overflows", Unreadable, BEYOND_SPARK),
    (r"RecordTooLarge", Refused, "a record is larger than the source client fetches"),
    (r"TimeoutException|DisconnectException|NetworkException|TIMEOUT", Unavailable, "the source does not answer"),
    (r"Failed to construct kafka|No resolvable bootstrap", Unavailable, "the source cannot be reached"),
    (r"Python worker (exited|crashed|failed)|PYTHON_WORKER|Connection reset|Broken pipe", Unavailable, "a worker died"),
    (r"SparkContext (was|has been) shut ?down|Job .* cancelled|Answer from Java|Py4J", Unavailable, "Spark is gone"),
    (r"ExecutorLostFailure|Lost executor", Unavailable, "an executor was lost"),
    (r"CAST_INVALID_INPUT|DIVIDE_BY_ZERO|ARITHMETIC_OVERFLOW|INVALID_ARRAY_INDEX", Refused, "`where` fails on a row"),
    (r"AnalysisException|ParseException|UNRESOLVED_|DATATYPE_MISMATCH|PARSE_SYNTAX", Refused, "`where` is not right"),
    (r"memory\.OutOfMemoryException|OversizedAlloc", BatchTooLarge, TOO_LARGE),
    (r"OutOfDirectMemory|[Dd]irect buffer memory", BatchTooLarge, TOO_LARGE),
    (r"No space left on device", Unavailable, "the disk is full"),
)  # fmt: skip


class Unexplained(Unavailable):
    """A failure that nobody has named yet: retried a few times, then refused."""


def named(error: Exception, where: str) -> BarnabasError:
    """One of ours as it is, and any other as the table explains it."""
    return error if isinstance(error, BarnabasError) else explained(f"{type(error).__name__}: {error}", where)


def explained(text: str, where: str) -> BarnabasError:
    ours = unmarked(text)
    if ours is not None:
        return ours
    text = text.partition(PLAN)[0]  # behind it stand names of topics and the words of `where`, which may be any
    for pattern, kind, meaning in MEANINGS:
        found = re.search(pattern, text)
        if found:
            return kind(f"{where}: {meaning}: {_line_with(text, found.start())}")
    python = re.search(r"^(\w+(?:Error|Exception): .*)$", text, re.MULTILINE)
    return Unexplained(f"{where}: the query failed: {python.group(1) if python else _line_with(text, 0)}")


def _line_with(text: str, at: int) -> str:
    start = max(text.rfind("\n", 0, at) + 1, at - 100)
    end = text.find("\n", at)
    return text[start : end if end >= 0 else len(text)].strip()[:300]
