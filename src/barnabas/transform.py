"""What happens to records between source and writer: pure DataFrame → DataFrame, in Spark SQL."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

ORIGIN = "barnabas.origin"
HEADERS = "array<struct<key:string,value:binary>>"


def filtered(records: DataFrame, where: str | None) -> DataFrame:
    """Only records for which the predicate is true."""
    return records.where(where) if where else records


def without_returning(records: DataFrame, destination_id: str) -> DataFrame:
    """Drops what came from the destination in the first place."""
    came_from_there = F.exists(
        F.coalesce("headers", F.array().cast(HEADERS)),
        lambda h: (h["key"] == F.lit(ORIGIN)) & (h["value"] == F.lit(destination_id).cast("binary")),
    )
    return records.where(~F.coalesce(came_from_there, F.lit(False)))


def stamped(records: DataFrame, source_id: str) -> DataFrame:
    """Adds the cluster a record comes from to those it came through before: it must go back to none of them.

    The first alone would not do: what enters a two-way pair from a third cluster would travel between the two for ever.
    """
    headers = F.coalesce("headers", F.array().cast(HEADERS))
    source = F.lit(source_id).cast("binary")
    origin = F.struct(F.lit(ORIGIN).alias("key"), source.alias("value"))
    has_origin = F.coalesce(
        F.exists(headers, lambda h: (h["key"] == F.lit(ORIGIN)) & (h["value"] == source)), F.lit(False)
    )
    with_origin = F.concat(headers, F.array(origin).cast(HEADERS))
    return records.withColumn("headers", F.when(has_origin, headers).otherwise(with_origin))


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
