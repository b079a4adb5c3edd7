"""Where partitions begin: offsets that a topic does not have are refused with the numbers."""

from __future__ import annotations

import getpass
from typing import Any

import pytest

from barnabas.beginning import refuse_foreign_topics, refuse_outside
from barnabas.commands import position
from barnabas.errors import ConfigError
from barnabas.model import Offsets, Partition
from tests.unit.configurations import mirror

LOGS = {Partition("orders", 0): Offsets(10, 100), Partition("orders", 1): Offsets(0, 7)}


def starting(offsets: dict[str, dict[int, int]], **settings: Any) -> Any:
    return mirror(place="f:7", start={"offsets": offsets}, **settings)


def test_offsets_of_a_topic_that_the_mirror_never_takes_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r'f:7: mirror "m": start[.]offsets: the mirror takes no topic ordrs; it takes orders'
    ):
        refuse_foreign_topics(starting({"ordrs": {0: 5}}))
    refuse_foreign_topics(starting({"orders": {0: 5}}))
    refuse_foreign_topics(starting({"orders.new": {0: 5}}, from_={"match": "orders.*"}))


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        ({2: 0}, "orders has no partition 2; it has 2, from 0 to 1"),
        ({0: 9}, r"orders-0: 9 is outside the log, which is \[10, 100\); write an offset that is there"),
        ({0: 101}, r"orders-0: 101 is outside the log, which is \[10, 100\)"),
        ({0: 10, 1: 8}, r"orders-1: 8 is outside the log, which is \[0, 7\)"),
    ],
)
def test_an_offset_outside_its_log_is_refused_with_the_numbers(offsets: dict[int, int], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        refuse_outside(starting({"orders": offsets}), LOGS)


def test_an_offset_at_either_end_and_of_a_topic_that_is_not_there_passes() -> None:
    refuse_outside(starting({"orders": {0: 10, 1: 7}}), LOGS)
    refuse_outside(starting({"orders": {0: 100}}), LOGS)
    refuse_outside(starting({"later": {9: 9}}, from_={"match": ".*"}), LOGS)
    refuse_outside(starting({"orders": {0: 1}}), {})


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert position._user().startswith("uid ")
