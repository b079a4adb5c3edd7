"""What a refusal by a broker teaches: the next epoch judges so that it is not refused again."""

from __future__ import annotations

from barnabas.errors import Untimely
from barnabas.lessons import Lessons
from barnabas.model import ANY_TIME
from tests.unit.configurations import mirror


def test_after_a_timestamp_was_refused_clocks_may_differ_by_five_minutes_and_no_second_refusal_is_learned_from() -> (
    None
):
    lessons = Lessons(mirror(on_bad_record="quarantine"))
    assert lessons.nearer(3_600_000) == 3_600_000
    assert lessons.learn(Untimely("refused"), can_weigh=lambda: False)
    assert [lessons.nearer(limit) for limit in (3_600_000, 1_000, ANY_TIME)] == [3_300_000, 0, ANY_TIME]
    assert not lessons.learn(Untimely("refused"), can_weigh=lambda: False)


def test_a_mirror_that_stops_at_bad_records_learns_nothing() -> None:
    lessons = Lessons(mirror(on_bad_record="stop"))
    assert not lessons.learn(Untimely("refused"), can_weigh=lambda: False)
    assert lessons.nearer(3_600_000) == 3_600_000
