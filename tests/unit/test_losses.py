"""What stands against a position is a loss when it is proven, or when the brokers keep answering so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.errors import Lost, Unavailable
from barnabas.ledger import records
from barnabas.losses import HICCUP, LASTING_SECONDS, Doubts, FoundLoss, found_loss
from barnabas.model import Followed, Loss, Offsets, Partition, Position, Range, TopicDescription
from barnabas.plan import found_losses, planned
from tests.unit.configurations import mirror
from tests.unit.surveys import Clusters, topic

P0, P1 = Partition("orders", 0), Partition("orders", 1)
SEEN = Followed(200, "id-orders", leader_epoch=5, caught_up=1_000_000)
DAY = 24 * 3600 * 1000
ORDERS = topic("orders")
COMPACTED = replace(ORDERS, keeps_deletions=DAY)
BOTH = Clusters((topic("orders"),), (topic("orders"),))


def found(
    log: Offsets, *, position: int = 200, of: TopicDescription = ORDERS, seen: Followed = SEEN, **more: Any
) -> FoundLoss | None:
    return found_loss(P0, Position(position, "id-orders"), of, log, seen=seen, **more)


@pytest.mark.parametrize(
    ("log", "evidence"),
    [
        (Offsets(0, 100, 6), "answered"),
        (Offsets(0, 100, 5), "answered"),
        (Offsets(0, 100, 4), "outdated"),
        (Offsets(0, 100), "answered"),  # an old broker, which reports no epoch
        (Offsets(220, 300, 6), "answered"),
        (Offsets(220, 300, 4), "outdated"),
    ],
)
def test_an_answer_of_a_leader_before_the_one_that_had_our_position_is_an_old_answer(
    log: Offsets, evidence: str
) -> None:
    loss = found(log)
    assert loss is not None and loss.evidence == evidence


@pytest.mark.parametrize(
    ("cut", "log", "onward"), [(100, Offsets(0, 250, 7), 100), (100, Offsets(0, 120, 7), 100), (0, Offsets(30, 40), 30)]
)
def test_an_epoch_that_ends_before_the_position_proves_a_cut_and_what_follows_it_is_copied(
    cut: int, log: Offsets, onward: int
) -> None:
    loss = found(log, cut=cut)
    assert loss is not None and (loss.evidence, loss.onward) == ("proven", onward)
    assert f"cut off at {cut}, before our position 200" in loss.loss.reason


def test_an_epoch_that_ends_past_a_position_that_was_moved_back_by_hand_proves_nothing() -> None:
    assert found(Offsets(0, 250, 7), position=50, cut=100) is None


@pytest.mark.parametrize(
    ("keeps", "away", "position", "lost"),
    [
        (DAY, DAY + 1, 200, True),
        (DAY, DAY, 200, False),
        (DAY, DAY + 1, 300, False),  # nothing was written since: a quiet topic
        (None, 9 * DAY, 200, False),
    ],
)
def test_deletions_may_be_gone_when_nobody_followed_a_compacted_topic_for_longer_than_it_keeps_them(
    keeps: int | None, away: int, position: int, lost: bool
) -> None:
    of = replace(COMPACTED, keeps_deletions=keeps)
    loss = found(Offsets(0, 300, 5), position=position, of=of, now=SEEN.caught_up + away)
    assert (loss is not None) == lost
    if loss is not None:
        assert (loss.loss.what, loss.loss.range, loss.onward) == ("deletions", Range(200, 300), 200)
        assert loss.evidence == "proven"


@pytest.mark.parametrize(
    ("keeps", "away", "lost"),
    [(1000, HICCUP, False), (1000, HICCUP + 1, True), (DAY, HICCUP + 1, False), (DAY, DAY + 1, True)],
)
def test_a_mirror_that_goes_on_in_its_process_loses_no_deletions_by_a_short_pause(
    keeps: int, away: int, lost: bool
) -> None:
    compacted = {"orders": replace(ORDERS, keeps_deletions=keeps)}
    survey = replace(BOTH.at(50, log=(0, 100)).survey(), source=compacted)
    assert survey.ledger is not None
    survey.ledger.followed[P0] = SEEN
    survey = replace(survey, at=SEEN.caught_up + away)
    assert bool(found_losses(replace(survey, goes_on=True))) == lost
    assert bool(found_losses(survey)) == (away > keeps), "a new process stopped to follow, for whatever time"


def test_nothing_is_said_of_deletions_while_it_is_unknown_when_the_topic_was_followed() -> None:
    never = replace(SEEN, caught_up=0)
    assert found(Offsets(0, 300, 5), of=COMPACTED, seen=never, now=9 * DAY) is None


def test_lost_deletions_stop_the_mirror_with_the_remedy_or_are_noted_and_no_position_moves() -> None:
    survey = replace(
        BOTH.at(50, log=(0, 100)).survey(), source={"orders": COMPACTED}, at=records.now() + DAY, restarts={P0: 90}
    )
    with pytest.raises(
        Lost, match=r"keeps deletions for 24\.0 h .* delete the destination topic and run `position res"
    ):
        planned(mirror(), survey)
    for policy in ("record", "restart"):
        plan = planned(mirror(on_loss=policy), survey)
        assert [loss.what for loss in plan.losses] == ["deletions"]
        assert plan.stretches[P0].position.next == 50


def test_a_survey_shows_all_losses_at_once() -> None:
    clusters = Clusters(
        (topic("orders", 2),),
        logs={P0: Offsets(20, 100), P1: Offsets(0, 250, 7)},
        positions={P0: Position(5, "id-orders"), P1: Position(200, "id-orders")},
    )
    survey = replace(clusters.survey(), cuts={P1: 100})
    assert {p: it.evidence for p, it in found_losses(survey).items()} == {P0: "answered", P1: "proven"}
    assert found_losses(replace(survey, ledger=None)) == {}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def answered(evidence: Any = "answered") -> FoundLoss:
    return FoundLoss(Loss(P0, Range(200, 200), "the log ends at 100"), 100, evidence)


def test_an_answer_counts_when_it_has_lasted_for_a_minute(clock: list[float]) -> None:
    doubts = Doubts()
    for _ in range(6):
        with pytest.raises(Unavailable, match="a broker that lags behind answers so too"):
            doubts.settle([answered()], "m")
        clock[0] += LASTING_SECONDS / 6
    doubts.settle([answered()], "m")


def test_two_answers_are_not_enough_however_long_they_take(clock: list[float]) -> None:
    doubts = Doubts()
    for _ in range(2):
        with pytest.raises(Unavailable):
            doubts.settle([answered()], "m")
        clock[0] += 10 * LASTING_SECONDS
    doubts.settle([answered()], "m")


def test_an_answer_that_fits_begins_the_minute_anew(clock: list[float]) -> None:
    doubts = Doubts()
    for fits in (False, False, True, False, False):
        if fits:
            doubts.settle([], "m")
        else:
            with pytest.raises(Unavailable):
                doubts.settle([answered()], "m")
        clock[0] += 0.4 * LASTING_SECONDS
    with pytest.raises(Unavailable):
        doubts.settle([answered()], "m")
    clock[0] += 0.4 * LASTING_SECONDS
    doubts.settle([answered()], "m")


def test_the_answer_of_an_older_leader_never_counts_and_a_proof_counts_at_once(clock: list[float]) -> None:
    doubts = Doubts()
    doubts.settle([answered("proven")], "m")
    for _ in range(10):
        with pytest.raises(Unavailable, match="the broker that answered is not the last leader we know"):
            doubts.settle([answered("outdated")], "m")
        clock[0] += LASTING_SECONDS
