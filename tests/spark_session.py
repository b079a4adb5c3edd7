"""The fixture `spark`, for test files that name this module in `pytest_plugins`: the session a run has."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from barnabas.config.spark import SparkRules
from barnabas.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    rules = SparkRules(master="local[1]", settings={"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 1})
    with session(rules) as started:
        yield started
