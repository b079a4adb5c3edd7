"""The ledger's records fold into a state: what they say, what is refused, and that compaction takes nothing away."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from barnabas.errors import Refused
from barnabas.ledger import records
from barnabas.ledger.records import VERSION
from barnabas.ledger.state import ALIVE_MILLIS, LedgerState
from barnabas.model import Followed, Loss, Partition, Position, Range

P0 = Partition("orders", 0)
ID = "barnabas.m.0123456789abcdef.0"
Line = tuple[int, bytes, bytes | None]


def folded(*lines: tuple[bytes, bytes | None], first: int = 0) -> LedgerState:
    return folded_at([(first + at, *line) for at, line in enumerate(lines)])


def folded_at(lines: list[Line]) -> LedgerState:
    state = LedgerState("_barnabas.m")
    for offset, key, value in lines:
        state.add(offset, key, value)
    return state


def epoch_record(run: str, *, seen: int, source: str = "c") -> tuple[bytes, bytes]:
    return records.epoch_key(f"{run} {seen}"), records.epoch_value(run, source, seen)


def position(offset: int, topic_id: str = "id", *, kind: str = "position", epoch: int = 3) -> tuple[bytes, bytes]:
    return records.position_key(P0, kind), records.position_value(Position(offset, topic_id, epoch, 99))


def test_an_epochs_number_is_the_offset_of_its_record() -> None:
    first, second = (epoch_record("host pid 1", seen=seen, source="cluster-a") for seen in (40, 42))
    state = folded(first, position(5), second, first=40)
    assert (state.epoch, state.epoch_run, state.source_cluster) == (42, "host pid 1", "cluster-a")
    assert folded().epoch == -1


def test_an_epoch_that_a_run_left_unfinished_is_not_taken_for_anothers() -> None:
    ours, theirs = (epoch_record(run, seen=1) for run in ("ours", "theirs"))
    assert not folded().begun_by_another_than("ours")
    assert not folded(theirs, ours).begun_by_another_than("ours")
    assert folded(ours, theirs).begun_by_another_than("ours")
    assert folded(ours).begun_by_another_than(None), "a writer of an older epoch is fenced by its own run too"


def test_an_epoch_record_composed_before_the_running_epoch_was_known_is_void() -> None:
    running, late = epoch_record("running", seen=3), epoch_record("dead", seen=5)
    state = folded_at([(5, *running), (9, *late)])
    assert (state.epoch, state.epoch_run) == (5, "running")
    assert folded_at([(5, *running), (9, *epoch_record("next", seen=6))]).epoch == 9


def test_compaction_cannot_put_a_void_epoch_record_in_place_of_a_valid_one() -> None:
    running, late, next_one = (epoch_record(run, seen=seen) for run, seen in (("a", 3), ("dead", 5), ("b", 10)))
    struck: list[Line] = [(13, late[0], None), (14, running[0], None)]
    lines: list[Line] = [(5, *running), (9, *late), (11, *next_one), *struck]
    for gone in (set(), {9}, {9, 13}, {5, 9}, {5, 9, 13, 14}):
        state = folded_at([line for line in lines if line[0] not in gone])
        assert (state.epoch, state.epoch_run) == (11, "b"), gone


def test_an_epoch_record_of_the_older_form_always_begins_an_epoch() -> None:
    old = b'{"kind":"epoch"}', b'{"at":1,"run":"r","source_cluster":"c","version":2}'
    assert folded(old, position(4), old, first=7).epoch == 9


def test_a_writer_is_registered_until_its_tombstone_of_the_same_epoch() -> None:
    old, new = records.writer_key(ID, 1), records.writer_key(ID, 7)
    value = records.writer_value("run")
    assert set(folded((old, value), (new, value)).writers) == {(ID, 1), (ID, 7)}
    assert set(folded((old, value), (new, value), (old, None)).writers) == {(ID, 7)}
    assert set(folded((old, value), (old, None), (old, value)).writers) == {(ID, 1)}


def test_a_position_comes_back_as_it_was_written() -> None:
    assert folded(position(12)).positions() == {P0: Position(12, "id", 3, 99)}


def test_the_last_position_counts_because_only_a_person_moves_it_back() -> None:
    by_hand = records.position_key(P0), records.position_value(Position(5, "id", 4, 100), by="me@here")
    assert json.loads(by_hand[1])["by"] == "me@here"
    assert folded(position(12), by_hand).positions()[P0].next == 5


@pytest.mark.parametrize(("own", "ahead", "expected"), [(5, 9, 9), (9, 5, 9), (7, 7, 7)])
def test_an_advance_never_lowers_a_position(own: int, ahead: int, expected: int) -> None:
    lines = [position(own), position(ahead, kind="advance")]
    assert folded(*lines).positions()[P0].next == expected
    assert folded(*reversed(lines)).positions()[P0].next == expected


def test_an_advance_of_a_topic_that_was_made_anew_does_not_count() -> None:
    state = folded(position(900, "old", kind="advance"), position(5, "new"))
    assert state.positions()[P0] == Position(5, "new", 3, 99)


def test_an_advance_counts_where_nothing_was_ever_copied() -> None:
    assert folded(position(9, kind="advance")).positions()[P0].next == 9
    assert folded(position(9, kind="advance"), (records.position_key(P0, "advance"), None)).positions() == {}


def test_an_advance_of_an_earlier_epoch_does_not_outlive_a_position_that_was_set_back() -> None:
    advance, by_hand = position(900, kind="advance", epoch=3), position(5, epoch=8)
    assert folded(advance, by_hand).positions()[P0].next == 5, "the tombstone of the advance may be cleaned already"
    assert folded(by_hand, position(900, kind="advance", epoch=8)).positions()[P0].next == 900


def test_losses_are_kept_each_and_struck_out_each() -> None:
    lost = [Loss(P0, Range(first, first + 5), "retention", 7) for first in (0, 50)]
    lines: list[tuple[bytes, bytes | None]] = [(records.loss_key(loss), records.loss_value(loss)) for loss in lost]
    assert list(folded(*lines).losses.values()) == lost
    assert list(folded(*lines, (records.loss_key(lost[0]), None)).losses.values()) == lost[1:]


def test_records_and_deletions_that_are_lost_at_one_place_are_two_losses() -> None:
    lost = [Loss(P0, Range(5, 9), "gone", 7, what) for what in ("records", "deletions")]
    assert list(folded(*((records.loss_key(loss), records.loss_value(loss)) for loss in lost)).losses.values()) == lost
    assert records.loss_key(lost[0]) == b'{"first":5,"kind":"loss","partition":0,"topic":"orders"}', (
        "as version 2 has it"
    )


def test_what_a_driver_saw_of_a_partition_comes_back_as_it_was_written_until_its_tombstone() -> None:
    seen = Followed(12, "id", 4, 1234)
    line = records.followed_key(P0), records.followed_value(seen)
    assert folded(line).followed == {P0: seen}
    assert folded(line, (line[0], None)).followed == {}


def test_evidence_about_a_partition_is_what_its_driver_saw_or_the_last_time_in_the_ledger() -> None:
    seen = Followed(10, "id", 4, 1234)
    noted = records.followed_key(P0), records.followed_value(seen)
    assert folded(position(12), noted).evidence() == {P0: seen}
    assert folded(position(12), (noted[0], records.followed_value(replace(seen, topic_id="old")))).evidence() == {
        P0: Followed(12, "id", -1, 99)
    }, "of a topic that was made anew it says nothing"
    other = records.position_key(Partition("orders", 1)), records.position_value(Position(1, "id", 3, 500))
    assert folded(position(12), other).evidence()[P0] == Followed(12, "id", -1, 500)
    assert folded(noted).evidence() == {}
    own = records.position_key(P0), records.position_value(Position(15, "id", 3, 99, leader_epoch=6))
    assert folded(own, noted).evidence() == {P0: Followed(15, "id", 6, 1234)}


def test_a_ledger_of_the_version_before_is_read() -> None:
    key, value = position(12)
    older = json.dumps(json.loads(value) | {"version": 2}).encode()
    assert folded((key, older)).positions() == {P0: Position(12, "id", 3, 99)}


def test_a_position_may_hold_the_leader_epoch_of_its_source() -> None:
    held = Position(12, "id", 3, 99, leader_epoch=5)
    assert folded((records.position_key(P0), records.position_value(held))).positions() == {P0: held}


def test_records_are_json_that_a_person_can_read() -> None:
    key, value = position(12)
    assert key == b'{"kind":"position","partition":0,"topic":"orders"}'
    assert json.loads(value) == {"version": VERSION, "next": 12, "topic_id": "id", "epoch": 3, "at": 99}


def test_a_record_of_a_newer_version_is_refused_and_names_the_remedy() -> None:
    key, value = position(12)
    newer = json.dumps(json.loads(value) | {"version": VERSION + 1}).encode()
    with pytest.raises(Refused, match=f"offset 0 has version {VERSION + 1} .* upgrade this one"):
        folded((key, newer))


KEY, VALUE = position(12)
FOREIGN: list[tuple[Any, Any]] = [
    (None, VALUE),
    (b"", VALUE),
    (b"orders", VALUE),
    (b"\xff\xfe", VALUE),
    (b'["position"]', VALUE),
    (b"{}", VALUE),
    (b'{"kind":"visitor"}', VALUE),
    (b'{"kind":["position"]}', VALUE),
    (b'{"kind":"position","topic":"orders"}', VALUE),
    (b'{"kind":"writer","id":["a"],"epoch":1}', records.writer_value("run")),
    (KEY, b""),
    (KEY, b"12"),
    (KEY, b"hello"),
    (KEY, b"{}"),
    (KEY, b'{"next":12}'),
    (KEY, b'{"version":"1","next":12}'),
    (KEY, b'{"version":null,"next":12}'),
    (KEY, b'{"version":1}'),
    (KEY, VALUE.replace(b'"next":12', b'"next":"12"')),
    (KEY, VALUE.replace(b'"next":12', b'"next":-1')),
    (KEY, VALUE.replace(b'"next":12', b'"next":null')),
    (records.epoch_key("t"), b'{"version":1}'),
    (records.epoch_key("t"), b'{"version":3,"run":"r","source_cluster":"c","seen":"all"}'),
    (records.writer_key("barnabas.other.0123456789abcdef.0", 1), records.writer_value("run")),
    (records.writer_key("payments", 1), records.writer_value("run")),
    (records.writer_key("barnabas.m.host.0", True), records.writer_value("run")),
    (records.alive_key(), b'{"version":3,"run":"r","epoch":1,"at":"now"}'),
    (KEY, VALUE.replace(b'"next":12', b'"next":Infinity')),
    (KEY, b"[" * 100_000),
    (records.loss_key(Loss(P0, Range(0, 1), "x")), b'{"version":1,"next":1}'),
]


@pytest.mark.parametrize(("key", "value"), FOREIGN, ids=str)
def test_a_record_that_somebody_else_wrote_is_refused_with_its_offset(key: Any, value: Any) -> None:
    state = LedgerState("_barnabas.m")
    with pytest.raises(Refused, match=r"ledger _barnabas\.m: offset 17 .*; somebody else writes to this topic"):
        state.add(17, key, value)


def test_a_sign_of_life_counts_for_its_own_epoch_only() -> None:
    epoch, newer = (epoch_record("run", seen=seen) for seen in (0, 1))
    alive = records.alive_key(), records.alive_value("run", 0)
    assert folded(epoch, alive).running()
    assert not folded(epoch).running()
    assert not folded(epoch, alive, newer).running(), "a newer epoch has not given one yet"
    assert not folded(epoch, alive, (records.alive_key(), None)).running()


def test_a_sign_of_life_is_judged_by_the_clock_of_the_broker_that_appended_it() -> None:
    state = LedgerState("_barnabas.m")
    state.add(0, *epoch_record("run", seen=0))
    state.add(1, records.alive_key(), records.alive_value("run", 0), at=5_000_000)
    assert state.running(5_010_000)
    assert not state.running(5_000_000 + ALIVE_MILLIS)


def any_line(chance: random.Random, offset: int) -> tuple[bytes, bytes | None]:
    """Any record that Barnabas writes, or a tombstone of one."""
    partition = Partition(chance.choice("ab"), chance.randrange(2))
    kind = chance.choice(["epoch", "writer", "position", "advance", "followed", "loss", "takes", "alive", "act"])
    if kind == "epoch":
        return epoch_record(f"run {chance.random()}", seen=offset)
    if kind == "writer":
        key, value = records.writer_key(ID, chance.randrange(3)), records.writer_value("run")
    elif kind == "loss":
        loss = Loss(partition, Range(chance.randrange(3), 9), "gone", 1, chance.choice(["records", "deletions"]))
        key, value = records.loss_key(loss), records.loss_value(loss)
    elif kind == "followed":
        seen = Followed(chance.randrange(9), "id", chance.randrange(3), 1)
        key, value = records.followed_key(partition), records.followed_value(seen)
    elif kind == "takes":
        key, value = records.takes_key(), records.takes_value({"match": [f"{chance.random()}"]})
    elif kind == "alive":
        key, value = records.alive_key(), records.alive_value("run", chance.randrange(3))
    elif kind == "act":
        key, value = records.act_key(), records.act_value(records.Act("me", "moved"))
    else:
        where = Position(chance.randrange(9), chance.choice(["id", "other"]), 1, 1)
        key, value = records.position_key(partition, kind), records.position_value(where)
    return key, value if chance.random() < 0.75 else None


def compacted(lines: list[Line], chance: random.Random) -> list[Line]:
    """As a broker may leave a log: of any key all but the last may be gone, and so may a last tombstone."""
    last = {key: offset for offset, key, _ in lines}
    kept = [line for line in lines if line[0] == last[line[1]] or chance.random() < 0.3]
    gone = {key for offset, key, value in kept if value is None and offset == last[key] and chance.random() < 0.5}
    return [line for line in kept if line[1] not in gone]


@pytest.mark.parametrize("seed", range(100))
def test_compaction_changes_nothing_that_a_ledger_says(seed: int) -> None:
    chance = random.Random(seed)
    lines: list[Line] = [(offset, *any_line(chance, offset)) for offset in range(chance.randrange(1, 80))]
    whole = folded_at(lines)
    assert folded_at(compacted(lines, chance)) == whole
    last = {key: offset for offset, key, _ in lines}
    assert folded_at([line for line in lines if line[0] == last[line[1]]]) == whole


def test_a_refusal_counts_until_the_next_epoch_whatever_the_order_they_arrive_in() -> None:
    state = LedgerState("_barnabas.m")
    state.add(3, records.epoch_key("a"), records.epoch_value("first", "c", 3))
    state.add(4, records.ended_key(), records.ended_value(records.End("first", 3, "source log was cut off")))
    end = state.refusal()
    assert end is not None and (end.run, end.reason) == ("first", "source log was cut off") and end.at > 0
    state.add(5, records.epoch_key("b"), records.epoch_value("second", "c", 5))
    assert state.refusal() is None
    state.add(6, records.ended_key(), records.ended_value(records.End("first", 3, "late")))
    assert state.refusal() is None, "it was refused before the second run began"
    state.add(7, records.ended_key(), records.ended_value(records.End("second", 5, "not allowed")))
    state.add(8, records.ended_key(), None)
    assert state.refusal() is None
