"""Where workers have their PySpark from: what lies in Spark's zip would be compiled anew in each of them."""

from collections.abc import Iterator

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

pytest_plugins = ["tests.spark_session"]


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"place": [pyspark.__file__] * batch.num_rows})


def test_a_worker_has_the_pyspark_that_pip_installed(spark: SparkSession) -> None:
    (found,) = spark.range(1).mapInArrow(places, "place string").collect()
    assert found.place == pyspark.__file__
