"""The benchmark's own arithmetic: a wrong figure would look just like a right one."""

import math

from bench.growth import Lot, told
from bench.latency import percentile, summary
from bench.meter import Sample, Steady, steady
from bench.picture import bars
from bench.processes import parsed
from bench.race import Result
from bench.restart import LAST, broken_down
from bench.shapes import SHAPES, TAIL_BYTES, schema_id, tail
from bench.table import races, ratio


def _samples(rate: float, seconds: float, *, slow_for: float = 0.0, idle_for: float = 2.0) -> list[Sample]:
    """A run that waits, copies at a tenth of its rate for a while, then at its rate; two CPU seconds a second."""
    found, offsets = [], 0.0
    for tick in range(int(seconds * 5)):
        at = tick / 5
        if at > idle_for:
            offsets += rate / 5 * (0.1 if at < idle_for + slow_for else 1.0)
        found.append(Sample(100 + at, int(offsets), 2 * at, at, 3.5 * at))
    return found


def _result(contender: str, rate: float) -> Result:
    part = Steady(10.0, 1, rate, 2.0, 1.0, 0.1)
    return Result(contender, "100B", 4, first_record_seconds=8.0, steady=part, peak_memory=1_000_000)


def test_a_slow_warm_up_does_not_count() -> None:
    part = steady(_samples(1_000, 30, slow_for=10), warm_seconds=10.5, total=1_000_000, per_offset=1.0)
    assert part is not None
    assert math.isclose(part.rate, 1_000, rel_tol=0.01)
    assert math.isclose(part.cpu_per_million, 2_000, rel_tol=0.01)
    assert math.isclose(part.elsewhere, 0.5, rel_tol=0.01)


def test_a_warm_up_ends_when_half_is_copied() -> None:
    """And not before: the first samples are slow for as long as that takes."""
    part = steady(_samples(1_000, 30, slow_for=10), warm_seconds=100, total=20_000, per_offset=1.0)
    whole = steady(_samples(1_000, 30, slow_for=10), warm_seconds=100, total=1_000_000, per_offset=1.0)
    assert part is not None and whole is None
    assert part.seconds < 10
    assert math.isclose(part.rate, 1_000, rel_tol=0.01)


def test_markers_of_transactions_are_no_records() -> None:
    part = steady(_samples(1_000, 30), warm_seconds=5, total=1_000_000, per_offset=0.9)
    assert part is not None
    assert math.isclose(part.rate, 900, rel_tol=0.01)


def test_a_copy_that_stands_still_at_its_end_is_not_called_slow() -> None:
    samples = _samples(1_000, 22)
    still = [Sample(samples[-1].at + n, samples[-1].offsets, 40, 20, 70) for n in range(1, 30)]
    part = steady(samples + still, warm_seconds=5, total=20_000, per_offset=1.0)
    assert part is not None
    assert math.isclose(part.rate, 1_000, rel_tol=0.01)


def test_a_run_without_a_steady_part_has_no_figure() -> None:
    assert steady(_samples(1_000, 4), warm_seconds=10, total=1_000_000, per_offset=1.0) is None
    assert steady([], warm_seconds=10, total=1_000_000, per_offset=1.0) is None


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([7.0], 0.5) == 7.0


def test_what_was_sent_before_the_warm_up_ended_is_not_late() -> None:
    seen = [(1.0, 9.0), (10.0, 10.2), (11.0, 11.4), (20.0, 29.0)]
    found = summary("it", seen, 10.0, 20.0, 0.5)
    assert found.records == 2
    assert math.isclose(found.p50, 200, rel_tol=0.001)
    assert math.isclose(found.worst, 400, rel_tol=0.001)


def test_no_arrival_is_said_and_not_taken_for_speed() -> None:
    assert summary("it", [], 0.0, 1.0, 0.5).note == "no record arrived"


def test_contenders_are_compared_round_by_round() -> None:
    ours, peers = [_result("barnabas", 150), _result("barnabas", 300)], [_result("mm2-tuned", r) for r in (100, 200)]
    assert ratio(ours, [*ours, *peers]) == 1.5
    assert math.isnan(ratio(ours, ours))


def test_a_contender_that_failed_stands_in_the_table_with_its_reason() -> None:
    table = races([_result("barnabas", 150), Result("mm2", "100B", 4, note="mm2 ended with 1")])
    assert "| 100B | 4 | barnabas | 150 |" in table
    assert "mm2 ended with 1" in table


def test_the_picture_shows_every_contender() -> None:
    picture = bars([_result("barnabas", 150), _result("mm2-tuned", 100), Result("loop", "100B", 4)], "a & b")
    assert picture.count("<rect") == 4
    assert "150 barnabas" in picture and "– loop" in picture and "a &amp; b" in picture


def test_a_process_name_with_spaces_and_parentheses_is_read() -> None:
    fields = ["S", "1", "7", "7", *["0"] * 7, "11", "22", "33", "44", *["0"] * 4, "5000", *["0"] * 20]
    stat = parsed(f"42 (a ) b) {' '.join(fields)}")
    assert (stat.pid, stat.session, stat.cpu_ticks, stat.started) == (42, 7, 110, 5000)


def test_growth_that_is_not_proportional_is_called_so() -> None:
    even = [Lot(n, 2.0 * n, 1) for n in (1, 2, 4, 8)]
    assert "\nproportional: at most 0 %" in told(even)
    assert "NOT proportional" in told([*even[:3], Lot(8, 40.0, 1)])


def test_the_steps_of_a_restart_add_up() -> None:
    steps = broken_down(100.0, [(103.0, "Spark UI at x"), (104.5, "bench: copying")], 106.0)
    assert steps["in all"] == 6.0
    assert sum(seconds for step, seconds in steps.items() if step != "in all") == 6.0
    assert steps[LAST] == 1.5


def test_records_are_as_large_as_their_shape_says_and_carry_their_number() -> None:
    for shape in SHAPES.values():
        value = shape.body(513) + (12345).to_bytes(TAIL_BYTES, "big")
        assert len(value) == shape.value_bytes
        assert tail(value) == 12345
        if shape.avro:
            assert value[0] == 0 and schema_id(value) == 513
