"""Which rows cannot be written as they are: a record's size is exact before it is produced, whatever it holds."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from barnabas.errors import BadRecord
from barnabas.model import Connection, Route
from barnabas.spoke import Spoke
from barnabas.worker.rows import Rows, rows
from barnabas.worker.task import Limits, WriteTask
from barnabas.worker.unwritable import record_bytes
from tests.raw_kafka import RawRecord, _batch
from tests.unit.test_translate import HEADERS

YEAR_2025 = 1_750_000_000_000
Pairs = list[tuple[str, bytes | None]]
Given = tuple[bytes | None, bytes | None, Pairs, int]


def task_of(largest: int = 1000, client: int = 10_000, quarantine: int = 5_000, **rules: Any) -> WriteTask:
    limits = Limits({"there": largest}, min(largest, client), client, quarantine)
    given: dict[str, Any] = {"on_bad_record": "quarantine", "quarantine": "m.quarantine", "limits": limits, **rules}
    routes = {7: Route(7, "here", "id", "there", 3)}
    return WriteTask("m", "_barnabas.m", 1, "r", Connection("c", "h:1", {}), routes, **given)


def batch_of(*records: Given) -> pa.RecordBatch:
    keys, values, headers, millis = zip(*records, strict=True)
    columns = {
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array([list(each) for each in headers], HEADERS),
        "route": pa.array([7] * len(records), pa.int64()),
        "partition": pa.array([2] * len(records), pa.int32()),
        "offset": pa.array(range(40, 40 + len(records)), pa.int64()),
        "millis": pa.array(millis, pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def reasons(ready: Rows) -> dict[int, str]:
    return {
        row: (dict(ready.headers[row] or [])["barnabas.quarantine.reason"] or b"").decode() for row in ready.quarantined
    }


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (None, None, []),
        (b"", b"", [("", None)]),
        (b"k" * 63, b"v" * 64, [("h", b""), ("Brno·ž", b"x" * 8191), ("日本", None)]),
        (b"k" * 8192, b"v" * 1_048_576, [(f"h{n}", b"%d" % n) for n in range(200)]),
    ],
)
def test_the_size_of_a_record_is_what_a_batch_of_it_takes(
    key: bytes | None, value: bytes | None, headers: Pairs
) -> None:
    raw = RawRecord(key, value, YEAR_2025, tuple((name.encode(), held) for name, held in headers))
    sizes = [-1 if part is None else len(part) for part in (key, value)]
    assert record_bytes(sizes[0], sizes[1], headers) == len(_batch([raw]))


@pytest.mark.parametrize("headers", [[], [("h", b"x" * 100)]], ids=["none", "one"])
def test_a_record_of_exactly_the_largest_size_is_copied_and_one_byte_more_is_not(headers: Pairs) -> None:
    room = max(n for n in range(1000) if record_bytes(1, n, headers) <= 1000)
    made = rows(task_of(), batch_of(*((b"k", b"v" * n, headers, YEAR_2025) for n in (room, room + 1, 0, room))))
    assert made.topics == ["there", "m.quarantine", "there", "there"]
    says = "1,001 bytes with its headers are more than topic there takes, 1,000: raise max.message.bytes"
    assert reasons(made) == {1: says}


def test_a_record_for_which_not_even_the_quarantine_has_room_leaves_its_origin_and_its_key() -> None:
    large: Given = (b"key", b"v" * 6_000, [("own", b"1")], YEAR_2025)
    keyed: Given = (b"k" * 6_000, None, [], YEAR_2025)
    made = rows(task_of(), batch_of((b"a", b"b", [], YEAR_2025), large, keyed))
    assert [value.as_py() for value in made.values] == [b"b", None, None]
    assert made.keys == [b"a", b"key", None]
    for row, said in ((1, b"value and headers"), (2, b"key, value and headers")):
        headers = dict(made.headers[row] or [])
        assert headers["barnabas.quarantine.left_out"] == said
        assert headers["barnabas.quarantine.offset"] == b"%d" % (40 + row)
        assert "own" not in headers
    assert made.bytes_of(made.runs[0]) == 2 + 6_003 + 6_000, "what was read counts"


def test_every_reason_is_found_and_a_timestamp_that_a_topic_may_refuse_stands_in_a_header() -> None:
    later = int(time.time() * 1000) + 3_600_000
    given: list[Given] = [
        (b"k", b"v", [("caf\ufffd", b"1")], later),
        (b"k", b"v", [("a\0b", b"1"), ("own", b"2")], YEAR_2025),
        (b"k", b"v", [], 0),
        (b"k", b"v", [], -12_219_292_800_001),
        (b"k", b"v", [], -1),
    ]
    made = rows(task_of(), batch_of(*given))
    assert made.topics == ["m.quarantine"] * 4 + ["there"]
    found = reasons(made)
    assert ["header name" in found[row] for row in (0, 1)] == [True, True]
    assert "zero_timestamps" in found[2] and "1582" in found[3]
    assert [made.millis[row] for row in (1, 4)] == [YEAR_2025, -1]
    assert all(abs(made.millis[row] - time.time() * 1000) < 60_000 for row in (0, 2, 3)), "when it was set aside"
    held = [dict(headers or []).get("barnabas.quarantine.timestamp") for headers in made.headers]
    assert held == [b"%d" % later, None, b"0", b"-12219292800001", None]
    assert (made.headers[1] or [])[:2] == [("a\ufffdb", b"1"), ("own", b"2")]


def test_a_timestamp_that_the_topic_refuses_is_found_and_none_at_all_is_taken() -> None:
    hour, now = 3_600_000, int(time.time() * 1000)
    limits = Limits({}, 10_000, 10_000, 5_000, {"there": (24 * hour, hour), "elsewhere": (1, 1)})
    moments = (now, now + hour - 60_000, now + hour + 60_000, now - 23 * hour, now - 25 * hour, -1)
    given: list[Given] = [(b"k", b"v", [], at) for at in moments]
    made = rows(task_of(limits=limits), batch_of(*given))
    assert made.topics == ["there", "there", "m.quarantine", "there", "m.quarantine", "there"]
    assert [text.rpartition("see its ")[2] for text in reasons(made).values()] == [
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
    ]


def test_a_compacted_topic_gets_no_record_without_a_key_and_its_neighbours_arrive() -> None:
    given: list[Given] = [(key, b"v", [], YEAR_2025) for key in (b"k", None, b"", None)]
    limits = Limits({}, 10_000, 10_000, 5_000, compacted=frozenset({"there"}))
    made = rows(task_of(limits=limits), batch_of(*given))
    assert made.topics == ["there", "m.quarantine", "there", "m.quarantine"]
    assert set(reasons(made).values()) == {"topic there is compacted and takes no record without a key"}
    with pytest.raises(BadRecord, match="here-2 offset 41: topic there is compacted"):
        rows(task_of(limits=limits, on_bad_record="stop"), batch_of(*given))
    elsewhere = Limits({}, 10_000, 10_000, 5_000, compacted=frozenset({"elsewhere"}))
    assert rows(task_of(limits=elsewhere), batch_of(*given)).topics == ["there"] * 4
    assert limits.lenient().compacted == {"there"}


def test_by_default_the_first_such_record_stops_the_mirror_with_its_place_the_reason_and_the_ways_on() -> None:
    given: list[Given] = [(b"k", b"v", [], YEAR_2025), (b"k", b"v" * 2_000, [], YEAR_2025)]
    with pytest.raises(BadRecord) as refused:
        rows(task_of(on_bad_record="stop"), batch_of(*given))
    said = str(refused.value)
    assert said.startswith('mirror "m": here-2 offset 41: 2,07')
    assert "raise max.message.bytes; set `on_bad_record: quarantine`" in said
    assert said.endswith("barnabas position set --mirror m --topic here --partition 2 --to 42")


def test_a_mux_judges_with_the_headers_that_it_adds_and_sets_a_record_aside_without_them() -> None:
    spoke = Spoke("eu", "b:1", "cluster", "there")
    fits = 1000 - record_bytes(1, 0, []) - 1
    made = rows(
        task_of(spread=2, spoke=spoke), batch_of((b"k", b"v" * fits, [], YEAR_2025), (b"k", b"v", [], YEAR_2025))
    )
    assert made.topics == ["m.quarantine", "there"]
    assert not [name for name, _ in made.headers[0] or [] if name.startswith("MUX_")]
    assert next(name for name, _ in made.headers[1] or []) == "MUX_SOURCE_TOPIC"
