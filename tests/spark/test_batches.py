"""How many rows a worker gets at once: as many as usual, or fewer where records are large."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from barnabas.session import LARGE_BATCH, SETTINGS, too_large, weighed_batches
from tests.kafka_io import wait_until

pytest_plugins = ["tests.spark_session"]

USUAL = int(SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])
RECORD = 10_000
RESULTS = "batches"


@pytest.mark.parametrize(("size", "weighs"), [(0, False), (1_100, False), (10_000, True), (1_000_000, True)])
def test_batches_of_large_records_are_weighed_and_no_others(spark: SparkSession, size: float, weighs: bool) -> None:
    assert too_large(spark, size) is weighs


def rows_of_each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})


def longest(spark: SparkSession, *, weighs: bool) -> int:
    """Rows of the longest batch of a query that started so, over one partition of twice the usual rows."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2 * USUAL).option("numPartitions", 1)
    rows: DataFrame = rate.load().select(F.repeat(F.lit("x"), RECORD).alias("value"))
    counted = rows.mapInArrow(rows_of_each, "rows long").writeStream.format("memory").queryName(RESULTS)
    with weighed_batches(spark, weighs=weighs):
        query = counted.start()
    try:
        wait_until(lambda: spark.table(RESULTS).count() > 0, 60, "a micro-batch")
        found = spark.table(RESULTS).agg(F.max("rows")).first()
        assert found is not None
        return int(found[0])
    finally:
        query.stop()


def test_a_query_that_weighs_gets_batches_of_so_many_bytes_and_the_next_its_usual_rows(spark: SparkSession) -> None:
    assert LARGE_BATCH // RECORD // 2 < longest(spark, weighs=True) <= LARGE_BATCH // RECORD + 1
    assert longest(spark, weighs=False) == USUAL
