"""What the driver looks at: positions that stand still while everything before them was worked through."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.errors import Unavailable
from barnabas.ledger.state import LedgerState
from barnabas.ledger.takeover import Epoch
from barnabas.model import Partition, Range
from barnabas.watch import Watch

P0, P1 = Partition("orders", 0), Partition("orders", 1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


class Destination:
    """A cluster with a ledger of this topic id."""

    def __init__(self, topic_id: str) -> None:
        self.topic_id = topic_id

    def topics(self, names: list[str]) -> dict[str, SimpleNamespace]:
        return {name: SimpleNamespace(topic_id=self.topic_id) for name in names}


def made(cluster: Destination | None = None) -> Watch:
    mirror = SimpleNamespace(ledger_topic="_barnabas.m", name="m", topics=SimpleNamespace(keep_in_step=()))
    connection = SimpleNamespace(cluster="grape", properties={"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    surveyor = SimpleNamespace(mirror=mirror, to_destination=connection, destination=cluster, topics=dict)
    epoch = Epoch(7, "r", LedgerState("_barnabas.m"))
    prepared = SimpleNamespace(plan=SimpleNamespace(routes=()), epoch=epoch, ledger_id="first")
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


def test_a_ledger_that_was_made_anew_between_two_looks_ends_the_epoch(clock: list[float]) -> None:
    watch = made(Destination("second"))
    clock[0] += Watch.TOPIC_SECONDS
    with pytest.raises(Unavailable, match="is not the one this run began with"):
        watch.topics_changed()
    watch.close()


def test_one_that_is_still_the_same_does_not(clock: list[float]) -> None:
    watch = made(Destination("first"))
    clock[0] += Watch.TOPIC_SECONDS
    assert watch.topics_changed() is False
    watch.close()
