"""What a run knows of its ledger shows when the ledger has lost records, and only then."""

import pytest

from barnabas.errors import Refused
from barnabas.ledger import records
from barnabas.ledger.state import LedgerState
from barnabas.ledger.witness import Witness
from barnabas.model import Partition, Position

P0 = Partition("orders", 0)
WITNESS = Witness("topic", 5, {P0: Position(200, "id", 5)})


def ledger(*positions: Position) -> LedgerState:
    state = LedgerState("_barnabas.m")
    for offset, position in enumerate(positions):
        state.add(offset, records.position_key(P0), records.position_value(position))
    return state


@pytest.mark.parametrize(
    "position",
    [
        Position(200, "id", 5),
        Position(250, "id", 5),
        Position(0, "made anew", 6),
        Position(100, "id", 6),
    ],
    ids=["the same", "further on", "of another topic", "moved back by a later epoch of this run"],
)
def test_a_position_that_is_not_older_is_taken(position: Position) -> None:
    WITNESS.refuse_lost(ledger(position))


@pytest.mark.parametrize("position", [Position(199, "id", 5), Position(100, "id", 2)])
def test_an_older_position_is_refused(position: Position) -> None:
    with pytest.raises(Refused, match=f"has position {position.next} and this run saw 200 committed"):
        WITNESS.refuse_lost(ledger(position))


def test_a_position_that_is_gone_is_refused() -> None:
    with pytest.raises(Refused, match="has no position and this run saw 200 committed"):
        WITNESS.refuse_lost(ledger())


def test_a_topic_that_one_broker_does_not_know_is_asked_for_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    witness = Witness("topic")
    assert not witness.is_missing(there=True)
    assert witness.is_missing(there=False) and not witness.is_missing(there=True)
    for seconds in (0.0, 4.0, 4.0):
        now[0] += seconds
        assert witness.is_missing(there=False)
    now[0] += 4.0
    assert not witness.is_missing(there=False), "four answers in twelve seconds"
