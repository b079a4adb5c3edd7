"""MUX_* headers come off: what a mux tells, a demux understands; what nobody told is never guessed."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas import mux, spoke
from barnabas.predicate import RECORD_SCHEMA

pytest_plugins = ["tests.spark_session"]

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


def test_a_demux_takes_off_what_a_mux_put_on(spark: SparkSession) -> None:
    own: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None)]
    before, after = spoke.Spoke("eu", "b0:9092", "cluster-id", "mux-replication_eu").around_timestamp("orders", 2, 3)
    muxed = intermediate(spark, [[*own, *before, (spoke.TIMESTAMP, b"1234"), *after]])
    (row,) = through(spark, muxed, "{identifier}.{topic}.of.{source}")
    assert pairs(row) == own
    assert (row["to_topic"], row["to_partition"], row["to_partitions"]) == ("eu.orders.of.hub", 2, 3)
    assert row["from_topic"] == "orders"
    (kept,) = through(spark, muxed, keep=True)
    assert [name for name, _ in pairs(kept)] == ["a", "a", *spoke.ALL]


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


BROKEN: list[tuple[str, bytes | None]] = [
    *[(spoke.TOPIC, value) for value in (None, b"", b"no topic's name", b"orders\n", b"\xff", b".", b"..", b"x" * 250)],
    *[(spoke.TOPIC, value) for value in (b"__offsets", b"_barnabas.m", b"m.quarantine", b"_schemas")],
    *[(spoke.PARTITION, value) for value in (None, b"-1", b"two", b"10000", b"2147483647", b"99999999999")],
    *[(spoke.PARTITIONS, value) for value in (None, b"", b"abc", b"2", b"0", b"-1", b"10001", b"99999999999")],
]


def changed(**values: bytes | None) -> list[tuple[str, bytes | None]]:
    """What a mux says of a record, behind a header of its own, some of it otherwise."""
    told = dict.fromkeys(spoke.ALL, b"x") | {spoke.TOPIC: b"orders", spoke.IDENTIFIER: b"eu"}
    told |= {spoke.PARTITION: b"2", spoke.PARTITIONS: b"3", spoke.TIMESTAMP: b"1234"}
    return [("own", b"x"), *(told | values).items()]


def stayed(row: Any, headers: list[tuple[str, bytes | None]]) -> bool:
    """It belongs nowhere, and its headers and its timestamp are as they came."""
    nowhere = (row["to_topic"], row["to_partition"], row["to_partitions"]) == (None, None, None)
    return nowhere and pairs(row) == headers and row["timestamp"] == MOMENT.astimezone().replace(tzinfo=None)


def test_what_a_header_does_not_say_or_cannot_mean_is_not_guessed(spark: SparkSession) -> None:
    last = [changed(**{name: value}) for name, value in BROKEN]
    elsewhere = [[*headers[1:], headers[0]] for headers in last]
    missing = [[h for h in changed() if h[0] != name] for name in (spoke.TOPIC, spoke.PARTITION)]
    huge = [h for h in changed(**{spoke.PARTITION: b"2147483647"}) if h[0] != spoke.PARTITIONS]
    cases = [*last, *elsewhere, *missing, huge, []]
    for row, headers in zip(through(spark, intermediate(spark, cases)), cases, strict=True):
        assert stayed(row, headers), (row, headers)


def intermediate(spark: SparkSession, cases: list[list[tuple[str, bytes | None]]]) -> DataFrame:
    return records(spark, *[("mux-replication_eu", 0, headers) for headers in cases])


def test_an_identifier_that_makes_no_name_is_broken_only_where_it_is_needed(spark: SparkSession) -> None:
    cases = [changed(**{spoke.IDENTIFIER: value}) for value in (None, b"", b"a b", b"_", b"x" * 243)]
    frame = intermediate(spark, cases)
    rows = through(spark, frame, "{identifier}_{topic}")
    assert all(stayed(row, headers) for row, headers in zip(rows, cases, strict=True))
    assert {row["to_topic"] for row in through(spark, frame)} == {"orders"}


MOMENTS: dict[bytes, int] = {
    b"2026-01-02T03:04:05Z": MILLIS - 678,
    b"2026-01-02T05:04:05+02:00": MILLIS - 678,
    b"2026-01-01T22:34:05.678-04:30": MILLIS,
    b"2026-01-02t03:04:05.678912345z": MILLIS,
    b"1582-10-15T00:00:00Z": -12_219_292_800_000,
    b"9999-12-31T23:59:59.999Z": 253_402_300_799_999,
    b"1969-12-31T23:59:59.999Z": -1,
    b"1234": 1234,
}
NO_MOMENTS: tuple[bytes | None, ...] = (
    *(None, b"", b"yesterday", b"-12219292800001", b"9223372036854776", b"9" * 30, b"\xff", b"2026-01-02"),
    *(b"03:04:05Z", b"2026-01-02T03:04:05", b"2026-01-02T03:04:05 Europe/Prague", b"2026-02-30T03:04:05Z"),
    *(b"0001-01-01T00:00:00Z", b"1582-10-14T23:59:59Z", b"2026-01-02T03:04:05Z\n", b"2026-01-02T03:04:60Z"),
)


def seed(own: list[tuple[str, bytes | None]], moment: bytes | None) -> list[tuple[str, bytes | None]]:
    """What the multiplexer of another project writes: six headers, its time as RFC 3339."""
    said = {"TOPIC": b"orders", "TOPIC_PARTITION": b"2", "TIMESTAMP": moment, "BOOTSTRAP_SERVERS": b"b:1"}
    headers: list[tuple[str, bytes | None]] = [(f"MUX_SOURCE_{name}", value) for name, value in said.items()]
    return [*own, *headers, (spoke.INTERMEDIATE, b"mux-replication_eu"), (spoke.IDENTIFIER, b"eu")]


def arrivals(spark: SparkSession, cases: list[list[tuple[str, bytes | None]]]) -> list[Any]:
    shaped = mux.demultiplexed(intermediate(spark, cases), "{topic}", keep_headers=False, names={})
    return shaped.selectExpr("to_topic", "to_partition", "unix_millis(timestamp) AS millis", "headers").collect()


def test_a_time_is_read_as_rfc_3339_with_fractions_and_offsets_and_as_milliseconds(spark: SparkSession) -> None:
    cases = [form for moment in MOMENTS for form in (seed([], moment), changed(**{spoke.TIMESTAMP: moment}))]
    found = [(row["to_topic"], row["to_partition"], row["millis"]) for row in arrivals(spark, cases)]
    assert found == [("orders", 2, millis) for millis in MOMENTS.values() for _ in range(2)]


def test_a_record_whose_header_holds_no_time_keeps_its_own(spark: SparkSession) -> None:
    cases = [form for moment in NO_MOMENTS for form in (seed([], moment), changed(**{spoke.TIMESTAMP: moment}))]
    cases += [[h for h in form if h[0] != spoke.TIMESTAMP] for form in (seed([], b""), changed())]
    for row, headers in zip(arrivals(spark, cases), cases, strict=True):
        assert (row["to_topic"], row["to_partition"], row["millis"]) == ("orders", 2, MILLIS), (row, headers)


def test_of_headers_that_are_there_twice_the_last_counts_and_none_stays(spark: SparkSession) -> None:
    first: list[tuple[str, bytes | None]] = [(spoke.TOPIC, b"other"), (spoke.TIMESTAMP, b"1"), ("own", b"x")]
    for repeated in (
        seed(first, b"2026-01-02T03:04:05Z"),
        [*seed([], b"1"), (spoke.TIMESTAMP, b"%d" % MILLIS), *first[2:]],
    ):
        (row,) = arrivals(spark, [repeated])
        assert (row["to_topic"], row["to_partition"]) == ("orders", 2)
        assert row["millis"] // 1000 == MILLIS // 1000
        assert pairs(row) == [("own", b"x")]


def test_eight_headers_that_only_look_like_those_of_a_mux_are_read_by_their_names(spark: SparkSession) -> None:
    """A name stands twice, and the first, the second and the last are where a mux has them."""
    alike = [name for name in spoke.ALL if name != spoke.PARTITIONS]
    told = dict(changed())
    alike.insert(5, spoke.TIMESTAMP)
    (row,) = arrivals(spark, [[(name, told[name]) for name in alike]])
    assert (row["to_topic"], row["to_partition"], row["millis"], pairs(row)) == ("orders", 2, 1234, [])


def test_a_mux_behind_a_mux_takes_off_its_own_headers_only(spark: SparkSession) -> None:
    inner = changed(**{spoke.TOPIC: b"inner"})
    (row,) = arrivals(spark, [[*inner, *changed()[1:]]])
    assert (row["to_topic"], pairs(row)) == ("orders", inner)


@pytest.mark.parametrize("millis", [-12_219_292_800_000, -1, 253_402_300_800_000, 9_223_372_036_854_775])
def test_every_time_that_a_mirror_copies_comes_through_a_hub_too(spark: SparkSession, millis: int) -> None:
    frame = intermediate(spark, [changed(**{spoke.TIMESTAMP: b"%d" % millis})])
    shaped = mux.demultiplexed(frame, "{topic}", keep_headers=False, names={})
    (row,) = shaped.selectExpr("to_topic", "unix_millis(timestamp) AS millis").collect()
    assert (row["to_topic"], row["millis"]) == ("orders", millis)


def test_the_largest_of_everything_is_whole_and_is_shown_as_it_came_too(spark: SparkSession) -> None:
    told = {
        spoke.TOPIC: b"x" * 249,
        spoke.PARTITION: b"9999",
        spoke.PARTITIONS: b"10000",
        spoke.TIMESTAMP: b"253402300799999",
    }
    shaped = mux.demultiplexed(
        intermediate(spark, [changed(**told)]), "{topic}", keep_headers=False, names={}, as_came=True
    )
    (row,) = shaped.selectExpr("*", "unix_millis(timestamp) AS millis").drop("timestamp").collect()
    assert (row["to_topic"], row["to_partition"], row["to_partitions"]) == ("x" * 249, 9999, 10000)
    assert (row["millis"], row["came_millis"], pairs(row)) == (253402300799999, MILLIS, [("own", b"x")])
    assert [h["key"] for h in row["came_headers"]] == ["own", *spoke.ALL]
