"""What a mirror's board says: counts, lag, what the driver must advance, and what a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.board import MirrorBoard
from barnabas.commands.tables import printed, size
from barnabas.commands.view import summary
from barnabas.errors import Unavailable
from barnabas.metrics import Collector, report
from barnabas.model import Offsets, Partition, Position, Range, Receipt
from barnabas.plan import planned, route_number
from barnabas.schemas.breaker import BreakerState
from tests.unit.configurations import mirror
from tests.unit.surveys import Clusters, topic

P0, P1 = Partition("orders", 0), Partition("orders", 1)
PLAN = planned(
    mirror(to="{topic}.copy"),
    Clusters(
        (topic("orders", 2),),
        (topic("orders.copy", 2),),
        logs={P0: Offsets(0, 100), P1: Offsets(0, 50)},
        positions={P0: Position(10, "id-orders"), P1: Position(50, "id-orders")},
    ).survey(),
)


@pytest.fixture
def board() -> MirrorBoard:
    made = MirrorBoard("m")
    made.begin(PLAN, 7)
    return made


def receipt(partition: Partition, first: int, following: int, **more: int) -> Receipt:
    """A receipt for [first, following) with every record written; 10 bytes each."""
    count = following - first
    known = {"route": route_number(partition.topic), "partition": partition.number, "first": first, "next": following}
    known |= {"records": count, "bytes": 10 * count} | more
    return Receipt(**{name: known.get(name, 0) for name in Receipt.__dataclass_fields__})


def batch(board: MirrorBoard, receipts: list[Receipt], ends: Mapping[Partition, int], **more: Any) -> None:
    read = sum(r.records for r in receipts)
    known: dict[str, Any] = {"ends": dict(ends), "latest": {}, "read": read, "read_bytes": None, "millis": 5}
    board.batch(receipts, **(known | more))


def test_a_board_begins_with_the_positions_and_ends_of_its_plan(board: MirrorBoard) -> None:
    assert (board.state, board.epoch, board.target, board.lag()) == ("copying", 7, 90, 90)
    assert board.committed == {P0: 10, P1: 50}
    assert board.behind_plan() == {}


def test_a_batch_counts_what_its_receipts_prove(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 40), receipt(P1, 50, 55)], {P0: 40, P1: 55}, latest={P0: 100, P1: 60})
    batch(board, [receipt(P0, 40, 100)], {P0: 100, P1: 55}, latest={P0: 100, P1: 60})
    assert (board.records, board.bytes, board.read, board.batches) == (95, 950, 95, 2)
    assert board.topics == {"orders.copy": (95, 950)}
    assert board.committed == {P0: 100, P1: 55} and board.lag() == 5
    assert board.copied_to_target == 95 and board.behind_plan() == {}


def test_a_record_that_was_set_aside_does_not_count_as_written_to_its_topic(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 40, quarantined=3)], {P0: 40, P1: 50})
    assert (board.records, board.quarantined, board.topics) == (30, 3, {"orders.copy": (27, 300)})


def test_a_demux_counts_by_its_intermediate_topic() -> None:
    """Which topics its records went to, receipts do not tell."""
    made = MirrorBoard("d")
    demux = mirror(kind="demux", source="grape", to="{identifier}.{topic}")
    made.begin(planned(demux, Clusters((topic("orders"),)).survey()), 1)
    batch(made, [receipt(P0, 0, 5)], {P0: 5})
    assert made.topics == {"orders": (5, 50)}


def test_a_batch_whose_end_no_record_reached_is_behind_its_plan_until_it_is_advanced(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 38)], {P0: 40, P1: 50})
    assert board.behind_plan() == {P0: Range(38, 40)}
    board.advanced({P0: 40})
    assert board.behind_plan() == {} and board.committed[P0] == 40


def test_a_batch_without_a_record_is_behind_its_plan_too(board: MirrorBoard) -> None:
    batch(board, [], {P0: 100, P1: 50})
    assert board.behind_plan() == {P0: Range(10, 100)}
    assert board.records == 0 and board.copied_to_target == 90


def test_an_advance_never_lowers_what_is_committed(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 100)], {P0: 100, P1: 50})
    board.advanced({P0: 60})
    assert board.committed[P0] == 100


def test_a_partition_that_the_plan_does_not_know_is_never_advanced(board: MirrorBoard) -> None:
    batch(board, [], {P0: 10, P1: 50, Partition("orders", 2): 900})
    assert board.behind_plan() == {}


def test_lag_is_what_lies_between_the_committed_and_the_end_and_never_negative(board: MirrorBoard) -> None:
    batch(board, [receipt(P1, 50, 70)], {P0: 10, P1: 70}, latest={P0: 300, P1: 60})
    assert board.lag() == 290


def test_filtered_records_are_those_read_and_not_written(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 40, records=12)], {P0: 40, P1: 50}, read=30)
    assert (board.read, board.records, board.filtered) == (30, 12, 18)


def test_a_new_epoch_keeps_the_counts_and_takes_positions_from_its_plan(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 40)], {P0: 40, P1: 50})
    board.change("waiting", Unavailable("the source does not answer"))
    assert (board.state, board.restarts) == ("waiting", 1)
    board.begin(PLAN, 12)
    assert (board.epoch, board.error, board.records, board.restarts) == (12, None, 30, 1)
    assert board.committed[P0] == 10
    assert board.target == 120, "30 that were copied, and 90 that this plan finds"


def test_only_waiting_is_a_restart(board: MirrorBoard) -> None:
    for state in ("copying", "done", "stopped", "refused"):
        board.change(state)
    assert board.restarts == 0 and board.error is None


def test_a_rate_is_over_the_time_that_passed(board: MirrorBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    assert board.rate() == (0.0, 0.0)
    batch(board, [receipt(P0, 10, 40)], {P0: 40})
    clock[0] += 2
    assert board.rate() == (15.0, 150.0)
    for _ in range(30):
        clock[0] += 1
        last = board.rate()
    assert last == (0.0, 0.0)


def test_what_was_worked_through_without_a_record_to_copy_is_no_lag(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 99)], {P0: 100, P1: 50})
    assert board.lag() == 0 and board.lag_seconds() < 1


def test_a_summary_says_what_was_copied(board: MirrorBoard) -> None:
    batch(board, [receipt(P0, 10, 100)], {P0: 100, P1: 50})
    board.change("done")
    assert summary(board, 2.04) == "m: done, copied 90 records, 900 B, in 2.0 s, lag 0, 0 restarts"


def test_a_table_is_aligned_numbers_to_the_right_and_words_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    printed("routes", ("from", "n", "ok"), [("orders", 1234567, True), ("c", 5, None)])
    assert capsys.readouterr().out == (
        "routes\n  from            n  ok\n  orders  1,234,567  yes\n  c               5  -\n"
    )


def test_an_empty_table_is_its_title_and_headings(capsys: pytest.CaptureFixture[str]) -> None:
    printed("none", ("a", "long heading"), [])
    assert capsys.readouterr().out == "none\n  a  long heading\n"


def test_a_column_with_a_gap_is_written_with_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    printed("t", ("n",), [(12,), (None,), (False,), (1.5,)])
    assert capsys.readouterr().out.split() == ["t", "n", "12", "-", "no", "1.5"]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"), (5e9, "5.0 GB"), (12e15, "12000.0 TB")],
)
def test_a_size_is_in_units_of_a_thousand(count: float, text: str) -> None:
    assert size(count) == text


def test_the_console_tells_of_breakers_that_are_open_and_not_of_those_that_are_closed(board: MirrorBoard) -> None:
    closed, opened = BreakerState("closed", 0, 0, ""), BreakerState("open", 5, 1, "refused")
    operations = [f"operation{n}" for n in range(7)]
    board.breakers = lambda: {c: dict.fromkeys(operations, closed) for c in ("orange", "grape")}
    lines = report(Collector(lambda: [board], list)).splitlines()
    assert not [line for line in lines if "barnabas_breaker" in line]
    assert any("barnabas_lag_records mirror=m 90" in line for line in lines)
    board.breakers = lambda: {"grape": {**dict.fromkeys(operations, closed), "register": opened}}
    (line,) = [one for one in report(Collector(lambda: [board], list)).splitlines() if "barnabas_breaker" in one]
    assert line.split() == [
        "barnabas_breaker",
        "mirror=m",
        "cluster=grape",
        "operation=register",
        "state=open",
        "1",
    ]
