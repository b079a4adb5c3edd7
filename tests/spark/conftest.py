"""One Spark session for the folder: the one a run has."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from barnabas.config.load import SparkRules
from barnabas.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    rules = SparkRules(master="local[1]", settings={"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 1})
    with session(rules) as started:
        yield started
