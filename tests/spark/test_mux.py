"""MUX_* headers on and off: what a mux tells, a demux understands; what nobody told is never guessed."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas import mux
from barnabas.predicate import RECORD_SCHEMA

pytest_plugins = ["tests.spark_session"]

SPOKE = mux.Spoke("eu", "b0:9092,b1:9092", "cluster-id", "mux-replication_eu", {"orders": 3, "clicks": 1})
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
MILLIS = int(MOMENT.timestamp() * 1000)


def records(spark: SparkSession, *rows: tuple[str, int, list[tuple[str, bytes | None]] | None]) -> DataFrame:
    made = [
        (b"k", b"v", topic, partition, number, MOMENT, 0, headers)
        for number, (topic, partition, headers) in enumerate(rows)
    ]
    return spark.createDataFrame(made, RECORD_SCHEMA)


def pairs(row: Any) -> list[tuple[str, bytes | None]]:
    return [(h["key"], None if h["value"] is None else bytes(h["value"])) for h in row["headers"]]


def through(spark: SparkSession, frame: DataFrame, to: str = "{topic}", *, keep: bool = False) -> list[Any]:
    return mux.demultiplexed(frame, to, keep_headers=keep, names={"source": "hub", "destination": "hub"}).collect()


def test_a_mux_tells_where_a_record_came_from_behind_its_own_headers(spark: SparkSession) -> None:
    own: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None), ("b", b"")]
    row, bare = mux.multiplexed(records(spark, ("orders", 2, own), ("clicks", 0, None)), SPOKE).collect()
    told = {
        "MUX_SOURCE_TOPIC": b"orders",
        "MUX_SOURCE_TOPIC_PARTITION": b"2",
        "MUX_SOURCE_TOPIC_PARTITIONS": b"3",
        "MUX_SOURCE_TIMESTAMP": str(MILLIS).encode(),
        "MUX_SOURCE_BOOTSTRAP_SERVERS": b"b0:9092,b1:9092",
        "MUX_INTERMEDIATE_TOPIC": b"mux-replication_eu",
        "MUX_SOURCE_IDENTIFIER": b"eu",
        "MUX_SOURCE_CLUSTER_ID": b"cluster-id",
    }
    assert pairs(row) == [*own, *told.items()]
    assert dict(pairs(bare))["MUX_SOURCE_TOPIC"] == b"clicks"


def test_a_demux_takes_off_what_a_mux_put_on(spark: SparkSession) -> None:
    own: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None)]
    muxed = mux.multiplexed(records(spark, ("orders", 2, own)), SPOKE)
    (row,) = through(spark, muxed, "{identifier}.{topic}.of.{source}")
    assert pairs(row) == own
    assert (row["to_topic"], row["to_partition"], row["to_partitions"]) == ("eu.orders.of.hub", 2, 3)
    assert row["from_topic"] == "orders"
    (kept,) = through(spark, muxed, keep=True)
    assert len(pairs(kept)) == len(own) + len(mux.ALL)


def test_a_demux_understands_another_multiplexer_that_puts_its_headers_elsewhere(spark: SparkSession) -> None:
    told: list[tuple[str, bytes | None]] = [
        ("MUX_SOURCE_TIMESTAMP", b"1234"),
        ("own", b"x"),
        ("MUX_SOURCE_TOPIC_PARTITION", b"7"),
        ("MUX_SOURCE_TOPIC", b"orders"),
        ("last", None),
    ]
    (row,) = through(spark, records(spark, ("mux-replication_eu", 0, told)))
    assert pairs(row) == [("own", b"x"), ("last", None)]
    assert (row["to_topic"], row["to_partition"], row["to_partitions"]) == ("orders", 7, 8)
    assert row["timestamp"].replace(tzinfo=UTC).timestamp() == pytest.approx(1.234)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MUX_SOURCE_TOPIC", None),
        ("MUX_SOURCE_TOPIC", b""),
        ("MUX_SOURCE_TOPIC", b"no topic's name"),
        ("MUX_SOURCE_TOPIC_PARTITION", None),
        ("MUX_SOURCE_TOPIC_PARTITION", b"-1"),
        ("MUX_SOURCE_TOPIC_PARTITION", b"two"),
        ("MUX_SOURCE_TOPIC_PARTITION", b"99999999999"),
        ("MUX_SOURCE_TIMESTAMP", b"yesterday"),
    ],
)
def test_what_a_header_does_not_say_is_not_guessed(spark: SparkSession, name: str, value: bytes | None) -> None:
    muxed = mux.multiplexed(records(spark, ("orders", 2, [])), SPOKE).collect()
    headers = [(key, value if key == name else was) for key, was in pairs(muxed[0])]
    (broken,) = through(spark, records(spark, ("mux-replication_eu", 0, headers)))
    assert broken["to_topic"] is None or broken["to_partition"] is None
    (missing,) = through(spark, records(spark, ("mux-replication_eu", 0, [h for h in headers if h[0] != name])))
    assert missing["to_topic"] is None or missing["to_partition"] is None
    (bare,) = through(spark, records(spark, ("mux-replication_eu", 0, None)))
    assert bare["to_topic"] is None
