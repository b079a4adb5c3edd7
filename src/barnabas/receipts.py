"""Receipts on their way back: from the query's progress to the mirror's board."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, cast

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.board import MirrorBoard
from barnabas.model import Partition, Receipt

log = logging.getLogger(__name__)

METRIC = "receipts"
READ_METRIC = "read"
Progress = Mapping[str, Any]  # of one micro-batch, as Spark's JSON tells it
FIELDS = tuple(field.name for field in fields(Receipt))


def observed(receipts: DataFrame) -> DataFrame:
    """The same rows, their values told to the driver when the micro-batch ends."""
    return receipts.observe(METRIC, F.collect_list(F.struct(*FIELDS)).alias("all"))


def weighed(records: DataFrame) -> DataFrame:
    """The same records, their bytes told to the driver: only for mirrors that filter, others write what they read."""
    size = F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(F.octet_length("value"), F.lit(0))
    return records.observe(READ_METRIC, F.sum(size.cast("long")).alias("bytes"))


class ReceiptListener:
    """Hands each query's progress to its mirror's board: every micro-batch once, in order."""

    def __init__(self) -> None:
        self._boards: dict[str, MirrorBoard] = {}
        self._taken: dict[str, int] = {}  # by query: the last micro-batch that its board has
        self._lock = threading.Lock()
        self._callbacks: Any = None

    @property
    def _jlistener(self) -> Any:
        """All that PySpark wants of a listener: what it registers in the JVM."""
        if self._callbacks is None:
            jvm: Any = SparkContext._jvm
            self._callbacks = jvm.PythonStreamingQueryListenerWrapper(_Callbacks(self._take))
        return self._callbacks

    def attach(self, spark: SparkSession) -> None:
        spark.streams.addListener(cast(StreamingQueryListener, self))

    def detach(self, spark: SparkSession) -> None:
        spark.streams.removeListener(cast(StreamingQueryListener, self))

    def follow(self, query_name: str, board: MirrorBoard) -> None:
        with self._lock:
            self._boards[query_name] = board

    def catch_up(self, query: StreamingQuery) -> None:
        """Takes now what Spark's event bus has not brought yet: a query that ended has all of it."""
        missed: list[Progress] = []
        recent = query._jsq.recentProgress()
        for at in range(len(recent) - 1, -1, -1):  # each is a call of its own, and all but the last are known
            missed.append(json.loads(recent[at].json()))
            if missed[-1]["batchId"] <= self._taken.get(missed[-1]["name"], -1):
                break
        for told in reversed(missed):
            self._take(told)

    def forget(self, query_name: str) -> None:
        """What an old query still has to tell must not touch the next one's board."""
        with self._lock:
            self._boards.pop(query_name, None)
            self._taken.pop(query_name, None)

    def _take(self, progress: Progress) -> None:
        name = progress["name"]
        with self._lock:
            board = self._boards.get(name)
            if board is None or not progress["sources"] or progress["batchId"] <= self._taken.get(name, -1):
                return
            if "addBatch" not in progress["durationMs"]:  # nothing was there, and the next one has the same number
                return
            read = _read(progress)  # before it counts as taken: one that cannot be read must not pass for copied
            self._taken[name] = progress["batchId"]
            board.batch(**read)


class _Callbacks:
    """What the JVM calls. PySpark's own asks it back for each field of a progress, some hundred calls that cost more
    than a small micro-batch itself; this one asks once, for all of it as JSON.
    """

    def __init__(self, take: Callable[[Progress], None]) -> None:
        self._take = take

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        try:
            self._take(json.loads(event.progress().json()))
        except Exception:  # py4j would swallow it; `catch_up` meets it again, where it counts
            log.exception("a query's progress cannot be read")

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass

    class Java:
        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


def _read(progress: Progress) -> dict[str, Any]:
    """What a board wants to know of a micro-batch."""
    source = progress["sources"][0]
    metrics = progress.get("observedMetrics", {})
    row, weight = metrics.get(METRIC), metrics.get(READ_METRIC)
    return {
        "receipts": [Receipt(*(item[field] for field in FIELDS)) for item in row["all"]] if row else [],
        "ends": _offsets(source.get("endOffset")),
        "latest": _offsets(source.get("latestOffset")),
        "read": progress["numInputRows"],
        "read_bytes": (weight.get("bytes") or 0) if weight else None,
        "millis": progress["batchDuration"],
    }


def _offsets(tree: Mapping[str, Mapping[str, int]] | None) -> dict[Partition, int]:
    return {Partition(topic, int(n)): at for topic, each in (tree or {}).items() for n, at in each.items()}
