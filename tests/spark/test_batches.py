"""How many rows a worker gets at once: as many as usual, or fewer where records are larger."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from barnabas.session import FEWEST_ROWS, LARGE_BATCH, SETTINGS, batch_rows, batches_for, too_large
from tests.kafka_io import wait_until

pytest_plugins = ["tests.spark_session"]

USUAL = int(SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])
RECORD = 10_000
RESULTS = "batches"


@pytest.mark.parametrize(("size", "weighs"), [(0, False), (1_100, False), (10_000, True), (1_000_000, True)])
def test_batches_of_large_records_are_weighed_and_no_others(spark: SparkSession, size: float, weighs: bool) -> None:
    assert too_large(spark, size) is weighs


@pytest.mark.parametrize(
    ("size", "rows"), [(0, USUAL), (100, USUAL), (500, 4_000), (1_000, 2_000), (5_000, FEWEST_ROWS), (1e9, FEWEST_ROWS)]
)
def test_the_larger_the_records_the_fewer_are_in_a_batch(size: float, rows: int) -> None:
    assert batch_rows(str(USUAL), size) == rows


@pytest.mark.parametrize("rows", [-1, 0, 500, 20_000])
def test_an_operator_who_says_how_many_rows_has_as_many(rows: int) -> None:
    assert {batch_rows(str(rows), size) for size in (0, 1_000, 100_000)} == {rows}


def rows_of_each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": pa.array([batch.num_rows], pa.int64())})


def longest(spark: SparkSession, record_bytes: float, *, weighs: bool) -> int:
    """Rows of the longest batch of a query for records of such a size, over one partition of twice the usual rows."""
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2 * USUAL).option("numPartitions", 1)
    rows: DataFrame = rate.load().select(F.repeat(F.lit("x"), RECORD).alias("value"))
    counted = rows.mapInArrow(rows_of_each, "rows long").writeStream.format("memory").queryName(RESULTS)
    with batches_for(spark, record_bytes, weighs=weighs):
        query = counted.start()
    try:
        wait_until(lambda: spark.table(RESULTS).count() > 0, 60, "a micro-batch")
        found = spark.table(RESULTS).agg(F.max("rows")).first()
        assert found is not None
        return int(found[0])
    finally:
        query.stop()


def test_a_query_that_weighs_keeps_to_bytes_one_for_middling_records_to_fewer_rows_and_the_next_to_the_usual(
    spark: SparkSession,
) -> None:
    assert LARGE_BATCH // RECORD // 2 < longest(spark, 0, weighs=True) <= LARGE_BATCH // RECORD + 1
    assert longest(spark, 500, weighs=False) == 4_000
    assert longest(spark, 0, weighs=False) == USUAL
