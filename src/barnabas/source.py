"""Plan + positions → a streaming DataFrame of source records. The only place that says readStream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from barnabas.plan import Plan

OPTIONS = {
    "kafka.isolation.level": "read_committed",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.receive.buffer.bytes": "-1",  # the system's, which grows: the client's 64 kB are 1 MB/s over a long way
    "kafka.allow.auto.create.topics": "false",
    "includeHeaders": "true",
    "failOnDataLoss": "true",
    "kafkaConsumer.pollTimeoutMs": "20000",
    "fetchOffset.numRetries": "3",
}
# Of a partition, and of all together: what is fetched ahead waits in memory. Spark keeps so many consumers.
FETCH_BYTES, FETCHED_BYTES, CONSUMERS = 5 * 1024 * 1024, 256 * 1024 * 1024, 64
# Records of a poll, each ten objects with its headers: few enough to be garbage soon. What a micro-batch leaves of its
# last poll stays alive in each consumer until the next one, so the more consumers, the fewer. Not fewer than needed:
# after each poll Spark asks a broker for the partition's beginning and end.
POLL_RECORDS, POLLED_RECORDS = 10_000, 160_000
TEXT = ("key", "value")
PARTITIONS_OF_A_BATCH, MOST_TIMES = 16, 8  # of many partitions a batch takes more: a short stretch of each is dear


def shares(partitions: int) -> dict[str, str]:
    """What each of so many partitions may hold in memory."""
    consumers = min(partitions, CONSUMERS)
    return {
        "kafka.max.partition.fetch.bytes": str(min(FETCH_BYTES, FETCHED_BYTES // consumers)),
        "kafka.max.poll.records": str(min(POLL_RECORDS, POLLED_RECORDS // consumers)),
    }


def records(
    spark: SparkSession, plan: Plan, properties: Mapping[str, str], *, batch_records: int, as_text: bool
) -> DataFrame:
    """Committed records of every partition of the plan, each from its position; keys and values said to be strings if
    nobody asks what is in them.

    Partitions are assigned, not subscribed to: a new one would begin where Spark thinks best.
    """
    assigned: dict[str, list[int]] = {}
    starting: dict[str, dict[str, int]] = {}
    for partition, stretch in plan.stretches.items():
        assigned.setdefault(partition.topic, []).append(partition.number)
        starting.setdefault(partition.topic, {})[str(partition.number)] = stretch.position.next
    reader = spark.readStream.format("kafka")
    for key, value in properties.items():
        reader = reader.option(f"kafka.{key}", value)
    partitions = max(1, len(plan.stretches))
    times = min(max(1.0, partitions / PARTITIONS_OF_A_BATCH), MOST_TIMES)
    for key, value in {**OPTIONS, **shares(partitions)}.items():
        if key.removeprefix("kafka.") not in properties:
            reader = reader.option(key, value)
    found = (
        reader.option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(starting))
        .option("maxOffsetsPerTrigger", int(batch_records * times))
        .load()
    )
    return said_to_be_text(found) if as_text else found


def said_to_be_text(records: DataFrame) -> DataFrame:
    """The same records, byte for byte, whose keys and values Spark takes for strings.

    In a row both look alike. But Spark makes an array of each binary value to take it out of one, and only points to a
    string. A cast would come behind that array, so it is the relation that is told.
    """
    spark: Any = records.sparkSession
    relation, text = records._jdf.logicalPlan(), spark._jvm.org.apache.spark.sql.types.DataTypes.StringType
    columns = spark._jvm.java.util.ArrayList()
    for place in range(relation.output().size()):
        column = relation.output().apply(place)
        columns.add(column.withDataType(text) if column.name() in TEXT else column)
    told = relation.copy(
        relation.source(),
        relation.sourceName(),
        relation.table(),
        relation.extraOptions(),
        spark._jvm.PythonUtils.toSeq(columns),
        relation.catalog(),
        relation.identifier(),
        relation.v1Relation(),
        relation.sourceIdentifyingName(),
    )
    return DataFrame(spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, told), spark)
