"""A mirror's rules and what both clusters said become a plan, or a refusal that says what to do."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from barnabas.copied_settings import COPIED_SETTINGS
from barnabas.errors import ConfigError, Lost, Refused
from barnabas.model import Loss, Offsets, Partition, Position, Range, TopicDescription
from barnabas.plan import Creation, Growth, Plan, planned, route_number
from tests.unit.configurations import mirror
from tests.unit.surveys import Clusters, ledger, topic

P0, P1 = Partition("orders", 0), Partition("orders", 1)
OWN_TIMESTAMPS = {"message.timestamp.type": "CreateTime"}
BOTH = Clusters((topic("orders"),), (topic("orders"),))
EMPTY = Clusters((topic("orders", 4, replication=3),))


def created(plan: Plan) -> Creation:
    (creation,) = plan.creations
    return creation


def test_a_topic_that_is_on_both_sides_is_copied_from_its_start_to_its_end() -> None:
    survey = replace(BOTH, logs={P0: Offsets(10, 250)}, starts={P0: 40}).survey()
    plan = planned(mirror(), survey)
    (route,) = plan.routes
    assert (route.source, route.destination, route.topic_id, route.partitions) == ("orders", "orders", "id-orders", 1)
    stretch = plan.stretches[P0]
    assert (stretch.position, stretch.end, stretch.known) == (Position(40, "id-orders"), 250, False)
    assert (plan.records, plan.creations, plan.growths, plan.losses, plan.absent) == (210, (), (), (), ())


def test_a_known_position_goes_before_the_start() -> None:
    plan = planned(mirror(start="latest"), BOTH.at(70, log=(0, 100), start=100).survey())
    assert plan.stretches[P0].position == Position(70, "id-orders", 3, 99)
    assert plan.stretches[P0].known and plan.records == 30


@pytest.mark.parametrize("position", [0, 100])
def test_the_first_and_the_last_offset_of_a_log_are_good_positions(position: int) -> None:
    assert planned(mirror(), BOTH.at(position, log=(0, 100)).survey()).losses == ()


def test_topics_that_are_not_there_yet_are_named() -> None:
    assert planned(mirror(from_=["orders", "later"]), BOTH.survey()).absent == ("later",)


def test_a_destination_topic_that_somebody_deleted_is_told_from_one_that_never_was_there() -> None:
    never, once = EMPTY.survey(), EMPTY.at(7, log=(0, 100)).survey()
    assert planned(mirror(), never).gone == ()
    assert [route.destination for route in planned(mirror(), once).gone] == ["orders"]
    assert planned(mirror(), BOTH.at(7, log=(0, 100)).survey()).gone == ()


def test_a_route_number_is_the_crc_of_the_name() -> None:
    assert route_number("orders") == zlib.crc32(b"orders")
    assert route_number("größe") == zlib.crc32("größe".encode())


# creation


def test_a_missing_topic_is_created_like_its_source() -> None:
    assert created(planned(mirror(), EMPTY.survey())) == Creation("orders", 4, 3, OWN_TIMESTAMPS)


def test_numbers_of_a_new_topic_follow_the_rules() -> None:
    rules = {"replication": {"from": "source", "max": 2}, "partitions": 8}
    assert created(planned(mirror(topics=rules), EMPTY.survey())) == Creation("orders", 8, 2, OWN_TIMESTAMPS)


def test_settings_are_copied_at_creation_and_the_configured_ones_win() -> None:
    source = topic("orders", cleanup_policy="compact", retention_ms="5", leader_replication_throttled_replicas="*")
    rules = {"settings": {"retention.ms": 7, "unclean.leader.election.enable": False}}
    assert created(planned(mirror(topics=rules), Clusters((source,)).survey())).settings == {
        "cleanup.policy": "compact",
        "retention.ms": "7",
        "unclean.leader.election.enable": "false",
        **OWN_TIMESTAMPS,
    }
    assert "leader.replication.throttled.replicas" not in COPIED_SETTINGS


def test_a_new_topic_keeps_the_timestamps_it_is_given_however_its_source_makes_them() -> None:
    source = topic("orders", message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms="1")
    assert created(planned(mirror(), Clusters((source,)).survey())).settings == OWN_TIMESTAMPS


@pytest.mark.parametrize(
    ("clicks", "room"),
    [
        (topic("clicks", 2), 1_114_124),
        (topic("clicks", 2, max_message_bytes="5000000"), 5_065_536),
        (topic("clicks", 2, max_message_bytes=str(2**31 - 1)), 2**31 - 1),
        (replace(topic("clicks", 2), largest=10_485_760), 10_551_296),  # by its broker's default
    ],
)
def test_an_intermediate_topic_stamps_records_itself_and_has_room_for_the_largest_with_its_headers(
    clicks: TopicDescription, room: int
) -> None:
    sources = topic("orders", 4, retention_ms="5", max_message_bytes="100"), clicks
    mux = {"kind": "mux", "identifier": "eu", "from_": ["orders", "clicks"]}
    carrying = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(room)}
    made = created(planned(mirror(**mux), Clusters(sources).survey()))
    assert made == Creation("mux-replication_eu", 4, 1, carrying)
    asked = mirror(**mux, topics={"settings": {"message.timestamp.type": "CreateTime"}})
    assert created(planned(asked, Clusters(sources).survey())).settings["message.timestamp.type"] == "CreateTime"


def test_a_missing_topic_is_refused_when_creation_is_off() -> None:
    with pytest.raises(
        Refused, match=r'"grape" has no topic orders and `topics\.create` is false: create it with .* 4 '
    ):
        planned(mirror(topics={"create": False}), EMPTY.survey())


def test_fewer_partitions_than_the_source_need_partitioning_by_key() -> None:
    rules = {"partitions": 2}
    with pytest.raises(Refused, match="would get 2 partitions and orders has 4; set `partitioning: key`"):
        planned(mirror(topics=rules), EMPTY.survey())
    assert created(planned(mirror(topics=rules, partitioning="key"), EMPTY.survey())).partitions == 2


def test_many_into_one_creates_the_largest() -> None:
    survey = Clusters((topic("a", 2), topic("b", 5), topic("c", 3))).survey()
    plan = planned(mirror(from_=["a", "b", "c"], to="all", merge=True), survey)
    assert created(plan).topic == "all" and created(plan).partitions == 5


# growth

GROWN = Clusters((topic("orders", 3),), (topic("orders", 2),), positions={P0: Position(5, "id-orders")})


def test_a_destination_grows_when_the_source_grew_after_we_began() -> None:
    plan = planned(mirror(), GROWN.survey())
    assert plan.growths == (Growth("orders", 2, 3),)
    assert plan.stretches[P0].known and not plan.stretches[Partition("orders", 2)].known


def test_a_destination_that_was_smaller_before_we_began_is_not_ours_to_grow() -> None:
    with pytest.raises(Refused, match='orders at "grape" has 2 partitions and orders has 3; add partitions, or set'):
        planned(mirror(), replace(GROWN, positions={}).survey())


def test_nothing_grows_when_creation_is_off() -> None:
    with pytest.raises(Refused, match="has 2 partitions and orders has 3"):
        planned(mirror(topics={"create": False}), GROWN.survey())


def test_by_key_no_number_of_partitions_is_wrong() -> None:
    assert planned(mirror(partitioning="key"), replace(GROWN, positions={}).survey()).growths == ()


def test_a_larger_destination_is_left_as_it_is() -> None:
    survey = Clusters((topic("orders", 2),), (topic("orders", 9),)).survey()
    assert planned(mirror(), survey).growths == ()


def test_many_into_one_grows_to_the_largest() -> None:
    begun = {Partition(name, 0): Position(1, f"id-{name}") for name in "ab"}
    survey = Clusters((topic("a", 4), topic("b", 3)), (topic("all", 2),), positions=begun).survey()
    assert planned(mirror(from_=["a", "b"], to="all", merge=True), survey).growths == (Growth("all", 2, 4),)


# refusals


def test_a_ledger_of_another_source_cluster_is_refused() -> None:
    survey = replace(BOTH.survey(), ledger=ledger({}, source_cluster="elsewhere"))
    with pytest.raises(Refused, match='belongs to source cluster elsewhere and "orange" is source-cluster'):
        planned(mirror(), survey)


def test_one_cluster_under_two_names_is_refused() -> None:
    with pytest.raises(Refused, match='"orange" and "grape" are one cluster, source-cluster'):
        planned(mirror(), replace(BOTH.survey(), destination_id="source-cluster"))


def test_two_topics_into_one_must_be_wanted() -> None:
    survey = Clusters((topic("a"), topic("b"))).survey()
    with pytest.raises(Refused, match="a and b both become all; say `merge: true` if that is wanted"):
        planned(mirror(from_=["a", "b"], to="all"), survey)


def test_two_topics_of_one_route_number_are_refused() -> None:
    twins = ("plumless", "buckeroo")  # the well-known pair with one CRC-32
    assert route_number(twins[0]) == route_number(twins[1])
    with pytest.raises(Refused, match="plumless and buckeroo have the same route number 1306201125"):
        planned(mirror(from_=list(twins)), Clusters(tuple(map(topic, twins))).survey())


def test_two_topics_of_a_demux_with_the_same_number_are_refused() -> None:
    rules = mirror(kind="demux", from_="orders", to="{topic}.copy", destination="orange")
    met = {f"{name}.copy": (name, 1) for name in ("a", "b")}
    assert len(planned(rules, BOTH.survey(), met).demuxed) == 2
    with pytest.raises(Refused, match="buckeroo and plumless have the same route number"):
        planned(rules, BOTH.survey(), {name: (name, 1) for name in ("plumless", "buckeroo")})


def test_a_name_that_cannot_be_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigError, match="change `to`"):
        planned(mirror(to="{topic}" * 60), Clusters((topic("orders"),)).survey())


# losses: (position, topic id, log) → reason, lost range, where to go on with `record`

OVERTAKEN = (5, "id-orders", (20, 100)), "retention deleted it", Range(5, 20), 20
RECREATED_SHORTER = (50, "id-old", (0, 10)), "was deleted and made anew", Range(50, 50), 0
RECREATED_LONGER = (50, "id-old", (3, 900)), "was deleted and made anew", Range(50, 50), 3
CUT_OFF = (50, "id-orders", (0, 40)), "the log ends at 40, before our position 50", Range(50, 50), 40
LOSSES = pytest.mark.parametrize(
    ("known", "reason", "lost", "onward"),
    [OVERTAKEN, RECREATED_SHORTER, RECREATED_LONGER, CUT_OFF],
    ids=["overtaken", "shorter", "longer", "cut off"],
)
Known = tuple[int, str, tuple[int, int]]


def after_loss(known: Known, on_loss: str, start: int | None = None) -> Plan:
    position, topic_id, log = known
    return planned(mirror(on_loss=on_loss), BOTH.at(position, topic_id=topic_id, log=log, start=start).survey())


@LOSSES
def test_a_loss_stops_the_mirror_unless_told_otherwise(known: Known, reason: str, lost: Range, onward: int) -> None:
    with pytest.raises(Lost) as stopped:
        after_loss(known, "stop")
    said = str(stopped.value)
    first, end = known[2]
    assert f'mirror "m": orders-0 position {known[0]}, log [{first}, {end})' in said
    assert reason in said and "`on_loss: record`" in said


@LOSSES
def test_a_loss_is_recorded_and_copying_goes_on_where_the_log_allows(
    known: Known, reason: str, lost: Range, onward: int
) -> None:
    plan = after_loss(known, "record", start=9)
    (loss,) = plan.losses
    assert (loss.partition, loss.range) == (P0, lost) and reason in loss.reason
    assert plan.stretches[P0].position == Position(onward, "id-orders")
    assert not plan.stretches[P0].known, "the new position must be written down"


@pytest.mark.parametrize(
    ("known", "start", "onward"),
    [(OVERTAKEN[0], 60, 60), (OVERTAKEN[0], 0, 20), (RECREATED_LONGER[0], 500, 500), (CUT_OFF[0], 0, 40)],
)
def test_a_restart_begins_where_start_says_and_never_copies_a_range_twice(
    known: Known, start: int, onward: int
) -> None:
    plan = after_loss(known, "restart", start=start)
    assert plan.stretches[P0].position.next == onward
    assert [type(loss) for loss in plan.losses] == [Loss]


def test_a_loss_of_one_partition_leaves_the_others_where_they_were() -> None:
    clusters = Clusters(
        (topic("orders", 2),),
        (topic("orders", 2),),
        logs={P0: Offsets(20, 100), P1: Offsets(0, 100)},
        positions={P0: Position(5, "id-orders"), P1: Position(60, "id-orders")},
    )
    plan = planned(mirror(on_loss="record"), clusters.survey())
    assert [loss.partition for loss in plan.losses] == [P0]
    assert plan.stretches[P1].known and plan.stretches[P1].position.next == 60


def test_a_plan_without_topics_is_empty() -> None:
    plan = planned(mirror(), Clusters(()).survey())
    assert (plan.routes, plan.records, plan.absent) == ((), 0, ("orders",))


def test_a_mux_spreads_its_sources_as_it_began_however_many_partitions_are_added() -> None:
    mux = mirror(kind="mux", identifier="eu")
    for partitions, first, spread in ((4, 0, 4), (8, 4, 4), (3, 4, 3)):
        survey = replace(BOTH, destination=(topic("mux-replication_eu", partitions),), positions={}).survey()
        assert survey.ledger is not None
        survey.ledger.spread = first
        assert planned(mux, survey).spread == spread
