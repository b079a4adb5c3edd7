"""Is a `where` one that Spark can run over records? Asked before any record is."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

RECORD_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)


def explain_where(spark: SparkSession, where: str) -> str | None:
    """What is wrong with the predicate, in Spark's words, or None."""
    try:
        frame = spark.createDataFrame([], RECORD_SCHEMA).where(where)
        _ = frame.schema
    except PySparkException as error:
        said = str(error).strip().splitlines()
        return said[0] if said else type(error).__name__
    return None
