"""Mirrors that cannot run together are refused: circles, copies onto themselves, many into one by mistake."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError
from barnabas.topology import feeders, is_written, refuse_circles_and_collisions, rivals
from tests.unit.configurations import mirror

ALL = {"match": ".*"}


def hop(path: str, **settings: Any) -> Mirror:
    """`hop("a>b")` copies `orders` from cluster a to cluster b."""
    source, destination = path.split(">")
    return mirror(**({"name": path.replace(">", "-"), "source": source, "destination": destination} | settings))


def refusal(*mirrors: Mirror, topics: dict[str, list[str]] | None = None, of: str | None = None) -> str | None:
    try:
        refuse_circles_and_collisions(mirrors, topics, of)
    except ConfigError as error:
        return str(error)
    return None


CIRCLES = {
    "there and back": [hop("a>b"), hop("b>a")],
    "round three clusters": [hop("a>b"), hop("b>c"), hop("c>a")],
    "back under another name that is taken again": [
        hop("a>b", from_={"names": ["orders"], "match": "orders.*"}, to="{topic}.x"),
        hop("b>a", from_=ALL),
    ],
    "longer at every turn": [
        hop("a>b", to="{topic}.x"),
        hop("b>a", from_=ALL),
        hop("a>b", from_=ALL, name="z", to="{topic}.y"),
    ],
    "a circle that is entered from outside": [hop("a>b"), hop("b>c", from_=ALL), hop("c>b", from_=ALL)],
    "only one of two skips what came from there": [hop("a>b", provenance=True), hop("b>a")],
}


@pytest.mark.parametrize("mirrors", CIRCLES.values(), ids=CIRCLES.keys())
def test_records_may_not_travel_in_a_circle(mirrors: list[Mirror]) -> None:
    assert "records would travel in a circle: " in (refusal(*mirrors) or "")


def test_a_circle_is_told_step_by_step() -> None:
    said = refusal(hop("a>b", place="f:7"), hop("b>a", place="f:9")) or ""
    assert said.startswith(
        'f:7: mirrors "a-b", "b-a": records would travel in a circle: a/orders → b/orders → a/orders'
    )


def mux(path: str, identifier: str = "s", **settings: Any) -> Mirror:
    return hop(path, **({"name": f"mux-{identifier}", "kind": "mux", "identifier": identifier} | settings))


def demux(cluster: str, identifier: str = "s", **settings: Any) -> Mirror:
    named = {"name": f"demux-{identifier}", "kind": "demux", "from_": f"mux-replication_{identifier}"}
    return hop(f"{cluster}>{cluster}", **(named | settings))


def relay(path: str, **settings: Any) -> Mirror:
    return hop(path, **({"name": "relay", "from_": "mux-replication_s"} | settings))


CIRCLES_OF_A_HUB = {
    "back from the hub": [mux("spoke>hub"), demux("hub"), hop("hub>spoke")],
    "back from the hub through a relay": [mux("spoke>spoke"), relay("spoke>hub"), demux("hub"), hop("hub>spoke")],
    "back under another name": [
        mux("spoke>hub", from_=["orders", "s.orders"]),
        demux("hub", to="{identifier}.{topic}"),
        hop("hub>spoke", from_="s.orders"),
    ],
    "out of the hub into itself": [mux("hub>hub"), demux("hub")],
    "the intermediate topic comes back": [
        mux("spoke>hub", from_=["orders", "mux-replication_s"]),
        hop("hub>spoke", from_="mux-replication_s"),
    ],
}


@pytest.mark.parametrize("mirrors", CIRCLES_OF_A_HUB.values(), ids=CIRCLES_OF_A_HUB.keys())
def test_records_may_not_travel_in_a_circle_through_a_hub(mirrors: list[Mirror]) -> None:
    assert "records would travel in a circle: " in (refusal(*mirrors) or "")


def test_a_circle_through_a_hub_is_found_with_the_topics_that_are_there() -> None:
    round_trip = mux("spoke>hub", from_=ALL), demux("hub"), hop("hub>spoke", from_=ALL)
    assert refusal(*round_trip) is None
    steps = "spoke/clicks → hub/mux-replication_s → hub/clicks → spoke/clicks"
    assert steps in (refusal(*round_trip, topics={"spoke": ["clicks"]}) or "")


def test_a_mux_may_not_take_its_own_intermediate_topic() -> None:
    own = mux("spoke>spoke", from_=["orders", "mux-replication_s"])
    assert 'topic mux-replication_s of "spoke" would be copied onto itself' in (refusal(own) or "")


@pytest.mark.parametrize("taken", ["orders", ALL], ids=["by name", "by regular expression"])
def test_a_mux_shares_its_intermediate_topic_with_nobody_by_mistake(taken: Any) -> None:
    said = refusal(mux("spoke>hub", from_=taken), hop("x>hub", to="mux-replication_s")) or ""
    assert 'both become mux-replication_s at "hub"; say `merge: true` on both' in said


def test_a_demux_and_a_mirror_share_a_topic_only_when_both_say_so() -> None:
    spoke = mux("spoke>hub")
    assert 'both become orders at "hub"' in (refusal(spoke, demux("hub"), hop("x>hub")) or "")
    assert refusal(spoke, demux("hub", merge=True), hop("x>hub", merge=True)) is None


FINE = {
    "spokes that share the topics of a hub": [
        mux("a>hub", "a", from_=["x", "y"]),
        demux("hub", "a"),
        mux("b>hub", "b", from_=["x", "y"]),
        demux("hub", "b"),
    ],
    "back from the hub under a name that nobody takes": [
        mux("spoke>hub"),
        demux("hub", to="{identifier}.{topic}"),
        hop("hub>spoke", from_="s.orders"),
    ],
    "two ways that skip what came from there": [hop("a>b", provenance=True), hop("b>a", provenance=True)],
    "two ways under other names": [hop("a>b", to="{topic}.a"), hop("b>a", to="{topic}.b")],
    "a chain": [hop("a>b"), hop("b>c"), hop("c>d")],
    "a fan": [hop("a>b"), hop("a>c")],
    "different topics": [hop("a>b"), hop("b>a", from_="clicks")],
    "back under a name that nobody takes": [hop("a>b"), hop("b>a", to="{topic}.back")],
    "many into one that is wanted": [hop("a>c", merge=True), hop("b>c", merge=True)],
}


@pytest.mark.parametrize("mirrors", FINE.values(), ids=FINE.keys())
def test_mirrors_that_do_no_harm_to_each_other_pass(mirrors: list[Mirror]) -> None:
    assert refusal(*mirrors) is None


def test_regular_expressions_are_followed_with_the_topics_that_are_there() -> None:
    two_ways = hop("a>b", from_=ALL), hop("b>a", from_=ALL)
    assert refusal(*two_ways) is None
    assert "in a circle: a/clicks → b/clicks → a/clicks" in (refusal(*two_ways, topics={"a": ["clicks"]}) or "")
    assert refusal(*two_ways, topics={"a": ["__consumer_offsets"]}) is None


@pytest.mark.parametrize("merging", [(False, False), (True, False), (False, True)])
def test_many_into_one_must_be_wanted_by_all(merging: tuple[bool, bool]) -> None:
    said = refusal(hop("a>c", merge=merging[0]), hop("b>c", merge=merging[1])) or ""
    assert 'orders of "a" and orders of "b" both become orders at "c"; say `merge: true` on both' in said


def test_one_topic_is_not_copied_twice_under_one_name_even_if_that_is_wanted() -> None:
    said = refusal(hop("a>b", merge=True), hop("a>b", name="again", merge=True)) or ""
    assert "every record would be there twice" in said


def test_two_topics_of_one_mirror_into_one_must_be_wanted_too() -> None:
    assert "both become all" in (refusal(hop("a>b", from_=["x", "y"], to="all")) or "")
    assert refusal(hop("a>b", from_=["x", "y"], to="all", merge=True)) is None


def test_a_name_that_cannot_be_is_found_before_any_cluster_is_asked() -> None:
    assert "change `to`" in (refusal(hop("a>b", to="{topic} copy")) or "")


@pytest.mark.parametrize("to", ["{topic}", "all"])
def test_two_regular_expressions_into_one_are_found_with_the_topics_of_every_source(to: str) -> None:
    pair = hop("a>c", from_=ALL, to=to), hop("b>c", from_=ALL, to=to)
    topics = {"a": ["orders"], "b": ["orders", "__consumer_offsets"]}
    assert 'orders of "a" and orders of "b" both become' in (refusal(*pair, topics=topics) or "")
    assert refusal(*pair, topics={"a": ["orders"], "b": []}) is None


def test_the_third_topic_of_a_merge_is_not_copied_twice_either() -> None:
    pair = hop("a>b", from_=["x", "y"], to="all", merge=True), hop("a>b", name="z", from_="y", to="all", merge=True)
    assert "both copy y to all" in (refusal(*pair) or "")


def test_a_mirror_is_told_only_of_what_it_has_a_part_in() -> None:
    topics = {"a": ["o"], "b": ["o"], "c": ["o"], "long": ["o" * 249]}
    mirrors = [hop("a>z", from_=ALL), hop("b>z", from_=ALL), hop("c>z", from_=ALL, to="{topic}.c")]
    mirrors.append(hop("long>z", from_=ALL, to="{topic}.too-long"))
    assert refusal(*mirrors, topics=topics, of="c-z") is None
    assert "both become o" in (refusal(*mirrors, topics=topics, of="b-z") or "")
    assert "change `to`" in (refusal(*mirrors, topics=topics, of="long-z") or "")


def test_rivals_are_the_sources_of_other_regular_expressions_into_the_same_cluster() -> None:
    own = hop("a>z", from_=ALL)
    mirrors = [own, hop("b>z", from_=ALL), hop("a>z", name="too", from_=ALL), hop("c>z"), hop("d>y", from_=ALL)]
    assert rivals(mirrors, own) == ["a", "b"]
    assert rivals([own], own) == []


def test_a_mirror_is_fed_by_those_whose_copies_it_takes_on() -> None:
    hub = [mux("spoke>spoke"), relay("spoke>hub"), demux("hub"), hop("hub>far", from_=ALL), hop("spoke>else")]
    assert feeders(hub) == {
        "mux-s": set(),
        "relay": {"mux-s"},
        "demux-s": {"relay"},
        "hub-far": {"relay", "demux-s"},
        "spoke-else": set(),
    }


def test_what_is_certain_by_names_goes_before_what_a_regular_expression_may_bring() -> None:
    back = hop("hub>spoke", name="back", from_={"match": "config.*"})
    assert feeders([mux("spoke>hub"), demux("hub"), back]) == {"mux-s": set(), "demux-s": {"mux-s"}, "back": set()}


def test_mirrors_that_feed_each_other_do_not_wait_for_each_other() -> None:
    both_ways = [hop("a>b", from_=ALL, provenance=True), hop("b>a", from_=ALL, provenance=True), hop("b>c", from_=ALL)]
    assert feeders(both_ways) == {"a-b": set(), "b-a": set(), "b-c": {"a-b"}}


def test_a_topic_is_known_to_be_made_where_a_mirrors_names_say_so() -> None:
    mirrors = [mux("spoke>hub"), hop("a>b", to="{topic}.copy"), hop("b>c", from_=ALL)]
    assert is_written(mirrors, ("hub", "mux-replication_s"))
    assert is_written(mirrors, ("b", "orders.copy"))
    assert not is_written(mirrors, ("b", "orders"))
    assert not is_written(mirrors, ("c", "orders.copy"))


def diamond(*wheres: str | None, merge: bool = True) -> list[Mirror]:
    east, west, into_east, into_west = wheres
    return [
        hop("a>b", where=east),
        hop("a>c", where=west),
        hop("b>d", where=into_east, merge=merge),
        hop("c>d", where=into_west, merge=merge),
    ]


EU, US = "key LIKE 'eu%'", "key LIKE 'us%'"


@pytest.mark.parametrize("wheres", [(EU, US, None, None), (None, None, EU, US), (EU, None, None, US)])
def test_two_ways_that_each_have_a_condition_of_their_own_may_lead_to_a_merged_topic(wheres: tuple[str | None]) -> None:
    assert refusal(*diamond(*wheres)) is None
    assert "two ways lead from orders" in (refusal(*diamond(*wheres, merge=False)) or "")


@pytest.mark.parametrize("wheres", [(EU, None, None, None), (EU, EU, None, None), (EU, None, None, EU)])
def test_two_ways_are_refused_unless_each_has_a_condition_that_the_other_lacks(wheres: tuple[str | None]) -> None:
    assert "two ways lead from orders" in (refusal(*diamond(*wheres)) or "")


def test_each_of_three_ways_must_have_a_condition_that_every_other_lacks() -> None:
    def third(where: str) -> list[Mirror]:
        return [hop("a>e", where=where), hop("e>d", merge=True)]

    two = diamond(EU, US, None, None)
    assert refusal(*two, *third("key LIKE 'as%'")) is None
    assert "b-d" in (refusal(*two, *third(EU)) or "") and "c-d" in (refusal(*two, *third(US)) or "")


def test_a_way_that_goes_on_from_a_shared_topic_is_no_way_of_its_own() -> None:
    behind = [hop("d>e", merge=True), hop("a>e", where=US, merge=True)]
    assert "two ways lead from orders" in (refusal(*diamond(EU, US, None, None), *behind) or "")
    two_diamonds = [hop("d>e", where="partition = 0"), hop("d>f", where="partition = 1")]
    two_diamonds += [hop("e>g", merge=True), hop("f>g", merge=True)]
    assert refusal(*diamond(EU, US, None, None), *two_diamonds) is None
