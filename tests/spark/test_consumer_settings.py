"""What `consumer:` knows, against what the client inside Spark says of itself."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_core import PydanticCustomError
from pyspark.sql import SparkSession

from barnabas.config.consumer import KNOWN, UNUSED, refuse_unknown
from barnabas.config.guarantees import GUARDED, GUARDED_PREFIXES

pytest_plugins = ["tests.spark_session"]


def test_every_setting_of_the_consumer_is_known_guarded_or_of_no_use_here(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    names = set(jvm.org.apache.kafka.clients.consumer.ConsumerConfig.configNames())
    assert names >= KNOWN | UNUSED
    told = {name for name in names if name in GUARDED or name.startswith(tuple(GUARDED_PREFIXES))}
    own = {name for name in names if name.startswith("internal.")}
    assert names - KNOWN - told - own - UNUSED == set()


@pytest.mark.parametrize("name", sorted(UNUSED))
def test_a_setting_of_consumer_groups_is_refused_as_such(name: str) -> None:
    with pytest.raises(PydanticCustomError, match=f"`{name}` is of no use to a mirror"):
        refuse_unknown({name: 1})
