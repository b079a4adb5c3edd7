"""Transforms on static frames that look like what Spark's Kafka source gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from barnabas.plan import route_number
from barnabas.transform import HEADERS, filtered, routed
from barnabas.worker.columns import as_bytes

pytest_plugins = ["tests.spark_session"]

# columns and types of the source with includeHeaders; the moment is given in milliseconds and made exact in SQL
GIVEN = f"key binary, value binary, topic string, partition int, offset long, millis long, headers {HEADERS}"
COLUMNS = ["key", "value", "headers", "route", "partition", "offset", "millis"]
Headers = Sequence[tuple[str, bytes | None]] | None


def record(offset: int = 0, **more: Any) -> dict[str, Any]:
    ordinary = {"key": b"k", "value": b"v", "topic": "orders", "partition": 0, "millis": 1, "headers": None}
    return ordinary | {"offset": offset} | more


def records(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    names = [column.split()[0] for column in GIVEN.split(", ")]
    frame = spark.createDataFrame([tuple(row[name] for name in names) for row in rows], GIVEN)
    timed = frame.withColumn("timestamp", F.timestamp_millis("millis")).withColumn("timestampType", F.lit(0))
    return timed.select("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def pairs(row: Row) -> list[tuple[str, bytes | None]]:
    return [(header["key"], None if header["value"] is None else bytes(header["value"])) for header in row["headers"]]


def offsets(frame: DataFrame) -> list[int]:
    return [row["offset"] for row in frame.collect()]


def test_a_writer_gets_its_columns_and_no_name(spark: SparkSession) -> None:
    assert routed(records(spark, record())).columns == COLUMNS


def test_absent_headers_become_empty_and_no_null_leaves(spark: SparkSession) -> None:
    frame = routed(records(spark, record(headers=None), record(headers=[]), record(headers=[("a", b"1")])))
    assert [pairs(row) for row in frame.collect()] == [[], [], [("a", b"1")]]
    assert frame.schema["headers"].nullable is False
    assert frame.where("headers is null").count() == 0


def test_headers_keep_their_order_their_twins_and_what_is_null_or_empty(spark: SparkSession) -> None:
    given = [("b", b"2"), ("a", b"1"), ("b", None), ("", b""), ("größe", b"\xff\x00")]
    (row,) = routed(records(spark, record(headers=given))).collect()
    assert pairs(row) == given


def as_they_arrive(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({name: as_bytes(batch.column(name)) for name in ("key", "value")})


DATA = (None, b"", b"\x00\xff", bytes(range(256)), "größe".encode(), b"\xed\xa0\x80\xc0\x80", b"x" * 10_000)


@pytest.mark.parametrize("style", [None, "HEX"])
def test_keys_and_values_reach_a_worker_byte_for_byte(spark: SparkSession, style: str | None) -> None:
    if style:
        spark.conf.set("spark.sql.binaryOutputStyle", style)  # an operator may: it is about what is shown
    try:
        frame = routed(records(spark, *(record(key=data, value=data and data[::-1]) for data in DATA)).repartition(1))
        arrived = frame.mapInArrow(as_they_arrive, "key binary, value binary").collect()
    finally:
        spark.conf.unset("spark.sql.binaryOutputStyle")
    keys = {None if row["key"] is None else bytes(row["key"]) for row in arrived}
    values = {None if row["value"] is None else bytes(row["value"])[::-1] for row in arrived}
    assert keys == values == set(DATA)


@pytest.mark.parametrize("topic", ["orders", "eu.xaz.bills", "a", "_x-1", "größe", "o" * 249])
def test_the_route_number_of_spark_is_that_of_the_plan(spark: SparkSession, topic: str) -> None:
    (row,) = routed(records(spark, record(topic=topic))).collect()
    assert row["route"] == route_number(topic)
    only = routed(records(spark, record(topic=topic)), only=route_number(topic))
    assert only.collect() == [row]
    assert only.schema["route"].dataType.typeName() == "long"


MOMENTS = [
    -62135596800000,  # the year 1
    -12219292800001,  # a millisecond before the calendar changed
    -12219292800000,
    -1,
    0,
    1,
    999,
    1_774_747_799_999,  # about the hours in which clocks change
    1_774_747_800_000,
    1_792_893_600_000,
    4_102_444_800_001,
    253_402_300_799_999,  # the last millisecond of the year 9999
]


def test_timestamps_are_exact_to_the_millisecond(spark: SparkSession) -> None:
    frame = routed(records(spark, *(record(at, millis=moment) for at, moment in enumerate(MOMENTS))))
    assert {row["offset"]: row["millis"] for row in frame.collect()} == dict(enumerate(MOMENTS))


def test_the_session_keeps_time_in_utc(spark: SparkSession) -> None:
    (row,) = spark.sql("select cast(timestamp_millis(0) as string) as text, current_timezone() as zone").collect()
    assert (row["text"], row["zone"]) == ("1970-01-01 00:00:00", "UTC")


def test_without_a_predicate_every_record_passes(spark: SparkSession) -> None:
    frame = records(spark, record(0), record(1))
    assert offsets(filtered(frame, None)) == [0, 1]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("timestamp > '2026-01-01'", [2]),
        ("partition = 1", [1]),
        ("offset >= 1", [1, 2]),
        ("key = 'a'", [0]),
        ("cast(value as string) like '%x%'", [1]),
        ("value is not null", [0, 1]),
        ("value is null", [2]),
        ("length(value) > 1", [1]),
        ("exists(headers, h -> h.key = 'h' and h.value = X'01')", [1]),
        ("topic = 'orders' and not (partition = 0)", [1, 2]),
        ("false", []),
    ],
)
def test_only_records_for_which_the_predicate_is_true_pass(spark: SparkSession, where: str, kept: list[int]) -> None:
    frame = records(
        spark,
        record(0, key=b"a", millis=0),
        record(1, key=None, value=b"xyz", partition=1, millis=1, headers=[("h", b"\x01")]),
        record(2, key=b"b", value=None, partition=2, millis=1_800_000_000_000, headers=[]),
    )
    assert offsets(filtered(frame, where)) == kept


def test_a_predicate_that_is_null_does_not_pass(spark: SparkSession) -> None:
    assert offsets(filtered(records(spark, record(0, key=None), record(1, key=b"a")), "key <> 'b'")) == [1]


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("kee = 'a'", AnalysisException),
        ("key = ", ParseException),
        ("timestamp + 1", AnalysisException),
        ("nothing(key)", AnalysisException),
    ],
)
def test_a_wrong_predicate_is_found_without_reading_a_record(spark: SparkSession, where: str, error: type) -> None:
    with pytest.raises(error):
        filtered(records(spark, record()), where)
