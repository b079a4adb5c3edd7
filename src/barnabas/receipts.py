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
)

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
    """Hands each query's progress to its mirror's board, in the order of its micro-batches."""

    def __init__(self) -> None:
        self._boards: dict[str, MirrorBoard] = {}
        self._ended: dict[str, threading.Event] = {}
        self._names: dict[str, str] = {}

    def follow(self, query_name: str, board: MirrorBoard) -> None:
        self._ended[query_name] = threading.Event()
        self._boards[query_name] = board

    def forget(self, query_name: str) -> None:
        """What an old query still has to tell must not touch the next one's board."""
        self._boards.pop(query_name, None)
        self._ended.pop(query_name, None)

    def wait_ended(self, query_name: str, seconds: float) -> bool:
        """True when the query's last progress has arrived."""
        ended = self._ended.get(query_name)
        return ended is None or ended.wait(seconds)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._names[str(event.runId)] = event.name or ""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        board = self._boards.get(progress.name or "")
        if board is None or not progress.sources:
            return
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

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        ended = self._ended.get(self._names.pop(str(event.runId), ""))
        if ended is not None:
            ended.set()


def _offsets(text: str | None) -> dict[Partition, int]:
    if not text:
        return {}
    tree: Mapping[str, Mapping[str, int]] = json.loads(text)
    return {Partition(topic, int(n)): at for topic, partitions in tree.items() for n, at in partitions.items()}
