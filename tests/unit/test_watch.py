"""What the driver looks at: positions that stand still while everything before them was worked through."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.model import Partition, Range
from barnabas.watch import Watch

P0, P1 = Partition("orders", 0), Partition("orders", 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def made() -> Watch:
    mirror = SimpleNamespace(ledger_topic="_barnabas.m", name="m")
    connection = SimpleNamespace(cluster="grape", properties={"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    surveyor = SimpleNamespace(mirror=mirror, to_destination=connection)
    prepared = SimpleNamespace(plan=SimpleNamespace(routes=()), epoch=SimpleNamespace(number=7, run="r"))
    return Watch(cast(Any, surveyor), cast(Any, prepared))


def test_a_position_follows_where_records_flow_of_which_none_is_copied(clock: list[float]) -> None:
    watch, position, advances = made(), 0, 0
    for tenth in range(600):  # a minute in which every tenth of a second brings ten records that are filtered away
        clock[0] += 0.1
        moved = watch.stale({P0: Range(position, 10 * (tenth + 1))})
        if moved:
            position, advances = moved[P0], advances + 1
    assert position > 5900
    assert 20 <= advances <= 60
    watch.close()


def test_a_position_that_tasks_move_is_left_to_them(clock: list[float]) -> None:
    watch = made()
    for second in range(60):
        clock[0] += 1.1
        assert watch.stale({P0: Range(second * 100, second * 100 + 5), P1: Range(second, 1000)}) == {}
    watch.close()
