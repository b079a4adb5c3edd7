"""The one streaming plan: source → transform → writer → receipts. The only place that says writeStream."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from barnabas import session, source
from barnabas.config.cluster import Cluster
from barnabas.config.mirror import Mirror
from barnabas.kafka.secret_file import hidden
from barnabas.kafka.settings import java_properties
from barnabas.preparation import Prepared
from barnabas.receipts import observed
from barnabas.shape import shaped
from barnabas.worker.sealed import sealed
from barnabas.worker.write import RECEIPT_SCHEMA, write

# To look for new records costs something for each partition: a mirror of many begins its micro-batches so far apart.
FEW_PARTITIONS, MILLIS_FOR_EACH_MORE, MOST_MILLIS = 100, 5, 5_000

_starting = threading.Lock()  # a query takes the session's settings with it when it starts: one at a time


def started(
    spark: SparkSession,
    cluster: Cluster,
    mirror: Mirror,
    prepared: Prepared,
    *,
    name: str,
    checkpoint: Path,
    until_caught_up: bool,
    record_bytes: float,
    weighs: bool,
) -> StreamingQuery:
    """A query that copies what the plan says. Its checkpoint is thrown away.

    Its batches suit records of this size, and keep to bytes if it weighs.
    """
    records = source.records(
        spark,
        prepared.plan,
        hidden(java_properties(cluster, mirror.consumer), checkpoint.parent / "secrets"),
        batch_records=mirror.batch.records,
        as_text=not mirror.where,
    )
    # Shaped first, then spread over lanes: the other way round every row would be copied once more in between.
    rows = shaped(records, mirror, prepared.plan).coalesce(mirror.batch.lanes or session.lanes(spark))
    task = sealed(prepared.task, checkpoint.parent / "task")
    receipts = observed(rows.mapInArrow(partial(write, task), RECEIPT_SCHEMA))
    stream = receipts.writeStream.format("noop").queryName(name).option("checkpointLocation", str(checkpoint))
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", mirror.name)
    with _starting, session.batches_for(spark, record_bytes, weighs=weighs):
        return _timed(stream, len(prepared.plan.stretches), until_caught_up=until_caught_up).start()


def _timed(stream: DataStreamWriter, partitions: int, *, until_caught_up: bool) -> DataStreamWriter:
    if until_caught_up:
        return stream.trigger(availableNow=True)
    apart = min(MILLIS_FOR_EACH_MORE * max(0, partitions - FEW_PARTITIONS), MOST_MILLIS)
    stream = stream.trigger(processingTime=f"{apart} milliseconds").option("asyncProgressTrackingEnabled", "true")
    return stream.option("asyncProgressTrackingCheckpointIntervalMs", "5000")
