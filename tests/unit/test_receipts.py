"""Receipts: every micro-batch counts once, whoever tells of it first, and none that cannot be read counts at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.board import MirrorBoard
from barnabas.model import Partition, Route
from barnabas.receipts import FIELDS, ReceiptListener, _Callbacks

QUERY = "orders#1"


class Told:
    """What the JVM hands over: a progress that can be asked for its JSON."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    def progress(self) -> Told:
        return self

    def json(self) -> str:
        return json.dumps(self._told)


class Ended:
    """A query that is over, with its last progresses."""

    def __init__(self, *progresses: dict[str, Any]) -> None:
        self._jsq = self
        self._progresses = [Told(each) for each in progresses]

    def recentProgress(self) -> list[Told]:
        return self._progresses


def progress(batch: int, *, records: int = 5, **others: Any) -> dict[str, Any]:
    receipt = dict.fromkeys(FIELDS, 0) | {"route": 7, "records": records, "next": (batch + 1) * records}
    end = {"orders": {"0": (batch + 1) * records}}
    return {
        "name": QUERY,
        "batchId": batch,
        "batchDuration": 20,
        "numInputRows": records,
        "durationMs": {"addBatch": 15},
        "sources": [{"endOffset": end, "latestOffset": end}],
        "observedMetrics": {"receipts": {"all": [receipt]}},
        **others,
    }


@pytest.fixture
def board() -> MirrorBoard:
    made = MirrorBoard("orders")
    made.routes = {7: Route(7, "orders", "id", "orders.copy", 1)}
    return made


@pytest.fixture
def listener(board: MirrorBoard) -> ReceiptListener:
    made = ReceiptListener()
    made.follow(QUERY, board)
    return made


def heard(listener: ReceiptListener, told: dict[str, Any]) -> None:
    _Callbacks(listener._take).onQueryProgress(Told(told))


def caught_up(listener: ReceiptListener, *progresses: dict[str, Any]) -> None:
    listener.catch_up(Ended(*progresses))  # type: ignore[arg-type]


@pytest.mark.parametrize("already", [0, 1, 3])
def test_what_the_bus_has_not_brought_is_caught_up_once_and_a_late_call_counts_nothing(
    listener: ReceiptListener, board: MirrorBoard, already: int
) -> None:
    all_of_it = [progress(batch) for batch in range(3)]
    for told in all_of_it[:already]:
        heard(listener, told)
    caught_up(listener, *all_of_it)
    for told in all_of_it:
        heard(listener, told)
    assert (board.records, board.read, board.batches) == (15, 15, 3)
    assert board.committed == {Partition("orders", 0): 15}


def test_a_query_that_is_forgotten_touches_no_board(listener: ReceiptListener, board: MirrorBoard) -> None:
    listener.forget(QUERY)
    heard(listener, progress(0))
    assert board.batches == 0


def test_a_micro_batch_without_rows_offsets_or_a_name_is_no_surprise(
    listener: ReceiptListener, board: MirrorBoard
) -> None:
    heard(listener, progress(0, name=None))
    heard(listener, progress(0, sources=[]))
    assert board.batches == 0
    bare = progress(0, numInputRows=0, sources=[{"endOffset": None}])
    del bare["observedMetrics"]
    heard(listener, bare)
    heard(listener, progress(1, observedMetrics={"read": {"bytes": None}}))
    assert (board.batches, board.records, board.read_bytes) == (2, 0, 0)


def test_a_progress_that_cannot_be_read_is_not_counted_as_taken_and_fails_where_it_counts(
    listener: ReceiptListener, board: MirrorBoard, caplog: pytest.LogCaptureFixture
) -> None:
    unreadable = progress(0, sources=[{"endOffset": "what is this"}])
    heard(listener, unreadable)
    assert "cannot be read" in caplog.text
    with pytest.raises(AttributeError):
        caught_up(listener, unreadable)
    assert board.batches == 0


def test_one_that_only_says_that_nothing_was_there_is_not_taken_for_the_next_micro_batch(board: MirrorBoard) -> None:
    listener = ReceiptListener()
    listener.follow(QUERY, board)
    idle = progress(1, records=0, durationMs={"latestOffset": 3})
    listener.catch_up(Ended(progress(0), idle))  # type: ignore[arg-type]
    listener.catch_up(Ended(progress(0), idle, progress(1)))  # type: ignore[arg-type]
    assert (board.records, board.batches) == (10, 2)
