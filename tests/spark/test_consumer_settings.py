"""What `consumer:` knows, against what the client inside Spark says of itself."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from barnabas.config.consumer import KNOWN
from barnabas.config.guarantees import GUARDED, GUARDED_PREFIXES

pytest_plugins = ["tests.spark_session"]

# Of consumer groups, which Barnabas has none of, and of how a configuration is found.
OF_GROUPS = {
    "auto.commit.interval.ms", "exclude.internal.topics", "group.protocol", "group.remote.assignor",
    "heartbeat.interval.ms", "partition.assignment.strategy", "session.timeout.ms",
}  # fmt: skip
OF_FILES = {"config.providers"}


def test_every_setting_of_the_consumer_is_known_guarded_or_of_no_use_here(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    names = set(jvm.org.apache.kafka.clients.consumer.ConsumerConfig.configNames())
    assert names >= KNOWN
    told = {name for name in names if name in GUARDED or name.startswith(tuple(GUARDED_PREFIXES))}
    own = {name for name in names if name.startswith("internal.")}
    assert names - KNOWN - told - own - OF_GROUPS - OF_FILES == set()
