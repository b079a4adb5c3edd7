"""Receipts on their way back: from the query's progress to the mirror's board."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import fields

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.board import MirrorBoard
from barnabas.model import Partition, Receipt

METRIC = "receipts"
READ_METRIC = "read"
FIELDS = tuple(field.name for field in fields(Receipt))


def observed(receipts: DataFrame) -> DataFrame:
    """The same rows, their values told to the driver when the micro-batch ends."""
    return receipts.observe(METRIC, F.collect_list(F.struct(*FIELDS)).alias("all"))


def weighed(records: DataFrame) -> DataFrame:
    """The same records, their bytes told to the driver: only for mirrors that filter, others write what they read."""
    size = F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(F.octet_length("value"), F.lit(0))
    return records.observe(READ_METRIC, F.sum(size.cast("long")).alias("bytes"))


class ReceiptListener(StreamingQueryListener):
    """Hands each query's progress to its mirror's board: every micro-batch once, in order."""

    def __init__(self) -> None:
        self._boards: dict[str, MirrorBoard] = {}
        self._taken: dict[str, int] = {}  # by query: the last micro-batch that its board has
        self._lock = threading.Lock()

    def follow(self, query_name: str, board: MirrorBoard) -> None:
        with self._lock:
            self._boards[query_name] = board

    def catch_up(self, query: StreamingQuery) -> None:
        """Takes now what Spark's event bus has not brought yet: a query that ended has all of it."""
        for progress in query.recentProgress:
            self._take(progress)

    def forget(self, query_name: str) -> None:
        """What an old query still has to tell must not touch the next one's board."""
        with self._lock:
            self._boards.pop(query_name, None)
            self._taken.pop(query_name, None)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self._take(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass

    def _take(self, progress: StreamingQueryProgress) -> None:
        name = progress.name or ""
        with self._lock:
            board = self._boards.get(name)
            if board is None or not progress.sources or progress.batchId <= self._taken.get(name, -1):
                return
            self._taken[name] = progress.batchId
            _post(progress, board)


def _post(progress: StreamingQueryProgress, board: MirrorBoard) -> None:
    source = progress.sources[0]
    row = progress.observedMetrics.get(METRIC)
    weight = progress.observedMetrics.get(READ_METRIC)
    receipts = [Receipt(*(item[field] for field in FIELDS)) for item in row["all"]] if row else []
    board.batch(
        receipts,
        ends=_offsets(source.endOffset),
        latest=_offsets(source.latestOffset),
        read=progress.numInputRows,
        read_bytes=(weight["bytes"] or 0) if weight else None,
        millis=progress.batchDuration,
    )


def _offsets(text: str | None) -> dict[Partition, int]:
    if not text:
        return {}
    tree: Mapping[str, Mapping[str, int]] = json.loads(text)
    return {Partition(topic, int(n)): at for topic, partitions in tree.items() for n, at in partitions.items()}
