"""What a running mirror notes of its source: when it had everything, and what of that is worth a record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.follower import CaughtUp, is_news
from barnabas.model import Followed, Partition

P0 = Partition("orders", 0)
NOTED = Followed(200, "id", leader_epoch=5, caught_up=1_000_000)
DAY = 24 * 3600 * 1000


def test_a_partition_without_records_past_its_position_is_caught_up_at_every_look() -> None:
    caught_up = CaughtUp()
    assert [caught_up.time(P0, 100, 100, at) for at in (10, 20, 30)] == [10, 20, 30]


def test_where_records_flow_without_a_pause_the_end_of_an_earlier_look_is_reached() -> None:
    caught_up = CaughtUp()
    looks = [caught_up.time(P0, at * 10 - 5, at * 10, at) for at in range(1, 7)]
    assert looks == [None, 1, 2, 3, 4, 5]


def test_a_partition_that_falls_behind_keeps_the_time_at_which_it_had_everything() -> None:
    caught_up = CaughtUp()
    assert caught_up.time(P0, 100, 100, 10) == 10
    assert [caught_up.time(P0, 100 + at, 1000 * at, at) for at in (20, 30, 40)] == [None] * 3
    assert caught_up.time(P0, 20_000, 40_000, 50) == 20, "what was there at the first of these looks is copied"
    assert caught_up.time(P0, 39_999, 41_000, 60) is None
    assert caught_up.time(P0, 40_000, 41_000, 70) == 50


@pytest.mark.parametrize(
    ("change", "keeps", "news"),
    [
        ({}, None, False),
        ({"next": 201}, None, True),
        ({"leader_epoch": 6}, None, True),
        ({"leader_epoch": 4, "next": 201}, None, False),
        ({"caught_up": NOTED.caught_up + DAY}, None, False),
        ({"caught_up": NOTED.caught_up + 59_999}, DAY, False),
        ({"caught_up": NOTED.caught_up + 60_000}, DAY, True),
        ({"caught_up": NOTED.caught_up + 10_000}, 1000, True),
    ],
)
def test_what_is_new_is_noted_and_a_quiet_compacted_topic_once_a_minute(
    change: dict[str, Any], keeps: int | None, news: bool
) -> None:
    assert is_news(NOTED, replace(NOTED, **change), keeps) == news
    assert is_news(None, NOTED, keeps)
