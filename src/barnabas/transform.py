"""What happens to records between source and writer: pure DataFrame → DataFrame, in Spark SQL."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

HEADERS = "array<struct<key:string,value:binary>>"


def filtered(records: DataFrame, where: str | None) -> DataFrame:
    """Only records for which the predicate is true."""
    return records.where(where) if where else records


def routed(records: DataFrame, *addresses: str, only: int | None = None) -> DataFrame:
    """The columns a writer takes, and `addresses` of its own that a demux found for each record.

    `only` is the route's number where there is but one: nothing to compute from each record's topic then.
    A null in a list column is quadratic in Spark's Arrow writer: none leaves here. Bytes leave as strings, which they
    need not be: that writer copies a string once and what is binary twice, and neither looks into them. Without a
    `where` they come so from the source.
    """
    return records.select(
        F.col("key").cast("string").alias("key"),
        F.col("value").cast("string").alias("value"),
        F.coalesce("headers", F.array().cast(HEADERS)).alias("headers"),
        (F.crc32(F.col("topic").cast("binary")) if only is None else F.lit(only).cast("long")).alias("route"),
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("millis"),
        *addresses,
    )
