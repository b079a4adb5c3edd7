"""A batch as rows for the producer: a mux tells where from; what a demux cannot place or translate is set aside."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from barnabas.errors import TopicsNeeded
from barnabas.model import Connection, Route
from barnabas.plan import route_number
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TopicRoute, TranslationSettings
from barnabas.schemas.wire import prefixed
from barnabas.spoke import ALL, Spoke
from barnabas.worker import rows as module
from barnabas.worker.rows import Rows, rows
from barnabas.worker.task import WriteTask
from barnabas.worker.translate import Translator
from tests.unit.test_translate import GUID, HEADERS, UNKNOWN, Table, becomes

NUMBER = route_number("orders")
REGISTRY = RegistrySettings("nowhere", "http://127.0.0.1:9")
SETTINGS = TranslationSettings("m", REGISTRY, REGISTRY, SchemaRules(), (TopicRoute(NUMBER, "orders", "orders"),))
OWN, MUX = ("own", b"1"), ("MUX_SOURCE_TOPIC", b"orders")
GOOD, LOST, UNTRANSLATED = 0, 1, 2
COLUMNS: dict[str, Any] = {
    "key": pa.array([b"k"] * 3, pa.binary()),
    "value": pa.array([prefixed(n, b"v") for n in (5, 6, UNKNOWN)], pa.binary()),
    "headers": pa.array([[OWN], [OWN, MUX, ("__value_schema_id", b"\x01" + GUID.bytes)], [OWN]], HEADERS),
    "route": pa.array([7] * 3, pa.int64()),
    "partition": pa.array([0] * 3, pa.int32()),
    "offset": pa.array([20, 21, 22], pa.int64()),
    "millis": pa.array([1000, 2001, 1002], pa.int64()),
    "to_topic": pa.array(["orders", None, "orders"]),
    "to_partition": pa.array([1, None, 1], pa.int32()),
    "to_partitions": pa.array([2, None, 2], pa.int32()),
    "from_topic": pa.array(["orders", None, "orders"]),
    "came_headers": pa.array([[OWN, MUX]] * 3, HEADERS),
    "came_millis": pa.array([2000, 2001, 2002], pa.int64()),
}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """Schema ids become others by arithmetic, and no registry is asked."""
    made = Table()
    monkeypatch.setattr(module, "translator", lambda settings, epoch: Translator(settings, made))
    return made


def task_of(*routes: Route, **rules: Any) -> WriteTask:
    """A task of mirror `m` with these routes."""
    return WriteTask(
        "m", "_barnabas.m", 1, "r", Connection("hub", "h:1", {}), {route.number: route for route in routes}, **rules
    )


@pytest.fixture
def ready(table: Table) -> Rows:
    task = task_of(
        Route(7, "mux-replication_eu", "id", "{topic}", 1),
        demuxed={"orders": Route(NUMBER, "orders", "", "orders", 2)},
        on_bad_record="quarantine",
        schemas=SETTINGS,
        on_bad="quarantine",
        quarantine="m.quarantine",
    )
    return rows(task, pa.RecordBatch.from_pydict(COLUMNS))


def test_a_good_record_goes_where_it_belongs_with_the_destinations_schema_id(ready: Rows) -> None:
    assert (ready.topics[GOOD], ready.partitions[GOOD], ready.millis[GOOD]) == ("orders", 1, 1000)
    assert ready.values[GOOD].as_py() == prefixed(becomes(5, NUMBER), b"v")
    assert ready.headers[GOOD] == [OWN]


def test_no_registry_is_asked_about_a_record_that_belongs_nowhere_and_its_bytes_stay(ready: Rows, table: Table) -> None:
    assert [number for _, _, number in table.asked] == [5, UNKNOWN]
    assert (ready.topics[LOST], ready.values[LOST].as_py(), ready.millis[LOST]) == (
        "m.quarantine",
        prefixed(6, b"v"),
        2001,
    )
    said = dict(ready.headers[LOST] or [])
    assert said["MUX_SOURCE_TOPIC"] == b"orders" and said["__value_schema_id"] == b"\x01" + GUID.bytes
    assert b"MUX_* headers" in (said["barnabas.quarantine.reason"] or b"")


def test_a_record_that_cannot_be_translated_is_set_aside_with_the_headers_and_the_time_it_came_with(
    ready: Rows,
) -> None:
    assert ready.topics[UNTRANSLATED] == "m.quarantine" and ready.millis[UNTRANSLATED] == 2002
    assert ready.values[UNTRANSLATED].as_py() == prefixed(UNKNOWN, b"v")
    headers = ready.headers[UNTRANSLATED] or []
    assert headers[:2] == [OWN, MUX]
    assert dict(headers[2:])["barnabas.quarantine.offset"] == b"22"
    assert ready.quarantined == [LOST, UNTRANSLATED]


def test_a_record_of_a_topic_that_a_demux_may_not_make_or_grow_is_set_aside_and_others_arrive() -> None:
    task = task_of(
        Route(7, "mux-replication_eu", "id", "{topic}", 1),
        demuxed={"orders": Route(NUMBER, "orders", "", "orders", 2)},
        declined=frozenset({"orders", "invented"}),
        on_bad_record="quarantine",
        quarantine="m.quarantine",
    )
    columns = COLUMNS | {
        "to_topic": pa.array(["orders", "orders", "invented"]),
        "to_partition": pa.array([1, 2, 0], pa.int32()),
        "to_partitions": pa.array([2, 3, 10_000], pa.int32()),
        "from_topic": pa.array(["orders", "orders", "invented"]),
    }
    made = rows(task, pa.RecordBatch.from_pydict(columns))
    assert made.topics == ["orders", "m.quarantine", "m.quarantine"]
    reason = (dict(made.headers[2] or [])["barnabas.quarantine.reason"] or b"").decode()
    assert reason.startswith("topic invented with 10,000 partitions is beyond")
    assert "topics.create_at_most" in reason
    assert (made.headers[2] or [])[:2] == [OWN, MUX], "as it came"
    with pytest.raises(TopicsNeeded):
        rows(replace(task, declined=frozenset()), pa.RecordBatch.from_pydict(columns))


@pytest.mark.parametrize(
    "each",
    [
        [[OWN, MUX], [MUX, OWN], [OWN, OWN]],
        [[OWN], [MUX], [("own", None)]],
        [[OWN], [], [OWN, MUX]],
        [[], [], [OWN]],
    ],
    ids=["two each", "one each", "some none", "only the last"],
)
def test_every_record_has_its_own_headers_in_their_order(each: list[list[tuple[str, bytes | None]]]) -> None:
    task = task_of(Route(7, "orders", "id", "orders", 1))
    names = ("key", "value", "route", "partition", "offset", "millis")
    padded = {name: pa.concat_arrays([COLUMNS[name], COLUMNS[name]]) for name in names}
    padded |= {"headers": pa.array([[("other", b"row")]] * 3 + each, HEADERS)}
    whole = pa.RecordBatch.from_pydict(padded)
    for batch in (whole.slice(3), whole.slice(3).take(pa.array([0, 1, 2]))):
        assert rows(task, batch).headers == each


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary()], ids=str)
def test_bytes_and_quarantined_records_are_those_of_each_source_partition(table: Table, binary: pa.DataType) -> None:
    task = task_of(
        Route(7, "orders", "id", "orders", 3), schemas=SETTINGS, on_bad="quarantine", quarantine="m.quarantine"
    )
    numbers = [5, UNKNOWN, 5, UNKNOWN, UNKNOWN]
    values = [b"before the slice", *(prefixed(n, b"v" * row) for row, n in enumerate(numbers, 1))]
    columns = {
        "key": pa.array([b"x", None, b"", b"four", None, b"k"], binary),
        "value": pa.array(values, binary),
        "headers": pa.array([[OWN], [], None, [OWN], [], []], HEADERS),
        "route": pa.array([7] * 6, pa.int64()),
        "partition": pa.array([0, 0, 0, 2, 2, 1], pa.int32()),
        "offset": pa.array([8, 9, 10, 3, 4, 0], pa.int64()),
        "millis": pa.array([1] * 6, pa.int64()),
    }
    made = rows(task, pa.RecordBatch.from_pydict(columns).slice(1))
    counted = [(run.partition, made.bytes_of(run), made.quarantined_of(run)) for run in made.runs]
    assert counted == [(0, 6 + 7, 1), (2, 4 + 8 + 9, 1), (1, 1 + 10, 1)]


def test_a_mux_tells_where_records_came_from_behind_their_own_headers() -> None:
    own = [("a", b"1"), ("a", None), ("b", b"")]
    columns = {
        "key": pa.array([b"k"] * 3, pa.binary()),
        "value": pa.array([b"v"] * 3, pa.binary()),
        "headers": pa.array([own, [], own], HEADERS),
        "route": pa.array([7, 7, 8], pa.int64()),
        "partition": pa.array([2, 2, 0], pa.int32()),
        "offset": pa.array([20, 21, 5], pa.int64()),
        "millis": pa.array([1000, -1, 253402300799999], pa.int64()),
    }
    task = task_of(
        Route(7, "orders", "id", "mux", 3),
        Route(8, "clicks", "id", "mux", 1),
        spread=4,
        spoke=Spoke("eu", "b0:9092,b1:9092", "cluster-id", "mux"),
    )
    made = rows(task, pa.RecordBatch.from_pydict(columns))

    def told(topic: bytes, partition: bytes, partitions: bytes, moment: bytes) -> list[tuple[str, bytes]]:
        says = (topic, partition, partitions, moment, b"b0:9092,b1:9092", b"mux", b"eu", b"cluster-id")
        return list(zip(ALL, says, strict=True))

    assert made.headers == [
        [*own, *told(b"orders", b"2", b"3", b"1000")],
        told(b"orders", b"2", b"3", b"-1"),
        [*own, *told(b"clicks", b"0", b"1", b"253402300799999")],
    ]
    assert made.millis == [1000, -1, 253402300799999]
