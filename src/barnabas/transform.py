"""What happens to records between source and writer: pure DataFrame → DataFrame, in Spark SQL."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

HEADERS = "array<struct<key:string,value:binary>>"


def filtered(records: DataFrame, where: str | None) -> DataFrame:
    """Only records for which the predicate is true."""
    return records.where(where) if where else records


def routed(records: DataFrame) -> DataFrame:
    """The columns a writer takes. A null in a list column is quadratic in Spark's Arrow writer: none leaves here."""
    return records.select(
        "key",
        "value",
        F.coalesce("headers", F.array().cast(HEADERS)).alias("headers"),
        F.crc32(F.col("topic").cast("binary")).alias("route"),
        "partition",
        "offset",
        F.unix_millis("timestamp").alias("millis"),
    )
