"""No record may reach one place on two ways: meshes, diamonds and rings are refused unless their links are direct."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from barnabas.config.mirror import Mirror
from barnabas.topology import feeders
from tests.unit.configurations import mirror
from tests.unit.test_topology import ALL, demux, hop, mux, refusal, relay

TWO_WAYS = "every record would be there twice"


def mesh(clusters: str, **settings: Any) -> list[Mirror]:
    return [hop(f"{a}>{b}", **({"merge": True} | settings)) for a, b in itertools.permutations(clusters, 2)]


def changed(mirrors: list[Mirror], name: str, **settings: Any) -> list[Mirror]:
    return [m.model_copy(update=settings) if m.name == name else m for m in mirrors]


def diamond(**settings: Any) -> list[Mirror]:
    return [hop(path, **({"merge": True} | settings)) for path in ("a>b", "a>c", "b>d", "c>d")]


DOUBLING: dict[str, list[Mirror]] = {
    "a diamond": diamond(),
    "a diamond with provenance": diamond(provenance=True),
    "a mesh of three with provenance": mesh("abc", provenance=True),
    "a mesh of three of which nobody said merge": mesh("abc", provenance=True, merge=False),
    "a mesh of seven with provenance": mesh("abcdefg", provenance=True),
    "a ring of four with provenance": [
        hop(f"{a}>{b}", provenance=True, merge=True) for a, b in ("ab", "ba", "bc", "cb", "cd", "dc", "da", "ad")
    ],
    "a pair that both feed a third": [
        hop("a>b", provenance=True),
        hop("b>a", provenance=True),
        hop("a>c", merge=True),
        hop("b>c", merge=True),
    ],
    "a long way and a short one": [hop("a>d", merge=True), hop("a>b"), hop("b>c"), hop("c>d", merge=True)],
    "one way renames and the other renames it back": [
        hop("a>d", merge=True),
        hop("a>b", to="x.{topic}"),
        hop("b>d", from_="x.orders", to="orders", merge=True),
    ],
    "through a hub and past it": [mux("a>hub"), demux("hub", merge=True), hop("a>hub", name="past", merge=True)],
    "two muxes of one topic": [mux("a>hub", "s"), demux("hub", "s"), mux("a>hub", "t"), demux("hub", "t")],
    "over another topic of a cluster that it has come from": [
        hop("a>b"),
        hop("b>a", to="{topic}.back"),
        hop("a>c", merge=True),
        hop("a>c", name="late", from_="orders.back", to="orders", merge=True),
    ],
    "a direct mesh with one link that passes copies on": changed(
        mesh("abc", provenance="direct"), "b-c", provenance=True
    ),
    "a direct mesh with one link that knows no provenance": changed(
        mesh("abc", provenance="direct"), "b-c", provenance=False
    ),
    "a direct diamond whose first half does not stamp": changed(
        changed(diamond(provenance="direct"), "a-b", provenance=False), "a-c", provenance=False
    ),
}


@pytest.mark.parametrize("mirrors", DOUBLING.values(), ids=DOUBLING.keys())
def test_two_ways_between_the_same_two_places_are_refused(mirrors: list[Mirror]) -> None:
    said = refusal(*mirrors) or ""
    assert TWO_WAYS in said or "in a circle" in said
    if all(m.provenance for m in mirrors):
        assert TWO_WAYS in said


SINGLE: dict[str, list[Mirror]] = {
    "a direct mesh of three": mesh("abc", provenance="direct"),
    "a direct mesh of seven": mesh("abcdefg", provenance="direct"),
    "a direct mesh with a spoke that is fed": [*mesh("abc", provenance="direct"), hop("d>a", merge=True)],
    "a direct mesh that renames and leaves copies out": mesh(
        "abc", provenance="direct", to="{source}.{topic}", from_={"match": ".*", "except": "[abc][.].*"}, merge=False
    ),
    "a direct mesh that makes one topic of all": mesh("abc", provenance="direct", to="all", from_=ALL),
    "a direct mesh that adds what is not there": mesh(
        "abc", provenance="direct", to={"replace": "(?:all[.])?(.*)", "with": r"all.\1"}, from_=ALL
    ),
    "a direct diamond": diamond(provenance="direct"),
    "a pair that both feed a third directly": [
        hop("a>b", provenance=True),
        hop("b>a", provenance=True),
        hop("a>c", provenance="direct", merge=True),
        hop("b>c", provenance="direct", merge=True),
    ],
    "a line with both ways": [hop(f"{a}>{b}", provenance=True, merge=True) for a, b in ("ab", "ba", "bc", "cb")],
    "a star with both ways": [hop(f"{a}>{b}", provenance=True, merge=True) for a, b in ("ab", "ba", "ac", "ca")],
    "a hub that gets and gives": [
        mux("spoke>hub", provenance=True),
        demux("hub", provenance=True, merge=True),
        hop("hub>spoke", provenance=True),
    ],
    "spokes with relays": [mux("spoke>spoke"), relay("spoke>hub"), demux("hub")],
    "two ways that carry different topics": [hop("a>b"), hop("b>d"), hop("a>d", from_="clicks")],
}


@pytest.mark.parametrize("mirrors", SINGLE.values(), ids=SINGLE.keys())
def test_mirrors_by_which_every_record_arrives_once_are_accepted(mirrors: list[Mirror]) -> None:
    topics = {cluster: ["orders", "other"] for cluster in ("a", "b", "c")}
    assert refusal(*mirrors) is None
    assert refusal(*mirrors, topics=topics) is None


def test_both_ways_are_shown_and_what_to_do() -> None:
    said = refusal(*(m.model_copy(update={"place": "f:7"}) for m in diamond())) or ""
    assert said.startswith('f:7: mirrors "a-b", "b-d", "a-c", "c-d": ')
    assert "a/orders → b/orders → d/orders and a/orders → c/orders → d/orders" in said
    assert "`provenance: direct`" in said


def test_two_ways_of_a_regular_expression_are_found_with_the_topics_that_are_there() -> None:
    mirrors = mesh("abc", provenance=True, from_=ALL)
    assert refusal(*mirrors) is None
    assert TWO_WAYS in (refusal(*mirrors, topics={"a": ["clicks"]}) or "")
    assert refusal(*mirrors, topics={"a": ["__consumer_offsets"]}) is None


def test_a_mirror_that_lies_on_neither_of_two_ways_is_not_told_of_them() -> None:
    mirrors = [*diamond(), hop("d>e"), hop("x>b", from_="other")]
    assert {m.name for m in mirrors if refusal(*mirrors, of=m.name)} == {"a-b", "a-c", "b-d", "c-d"}


def test_a_copy_that_would_come_back_under_another_name_that_is_taken_again_is_a_circle() -> None:
    """Provenance skips what would return to the topic it came from; this comes back as another, at every turn."""
    growing = [
        hop("a>b", from_=ALL, to="{source}.{topic}", provenance=True),
        hop("b>a", from_=ALL, to="{source}.{topic}", provenance=True),
    ]
    said = refusal(*growing, topics={"a": ["orders"], "b": ["clicks"]}) or ""
    assert "records would travel in a circle: a/orders → b/a.orders → a/b.a.orders" in said


@pytest.mark.parametrize("clusters", ["ab", "abc", "abcdefghij"])
def test_direct_mirrors_may_not_make_topics_for_copies_under_new_names_at_every_turn(clusters: str) -> None:
    growing = mesh(clusters, provenance="direct", from_=ALL, to="{source}.{topic}")
    assert refusal(*growing) is None
    for of in (None, "a-b", "b-a"):
        said = refusal(*growing, topics={"a": ["orders"], "b": ["clicks"]}, of=of) or ""
        assert "topics of copies would be copied under new names at every turn: " in said
        assert "`except`" in said


def test_a_mesh_of_many_clusters_is_checked_in_time() -> None:
    clusters = "abcdefghijklmnopqrst"
    topics = {cluster: [f"t{n}" for n in range(5)] for cluster in clusters}
    for provenance, from_ in itertools.product((True, "direct"), ("orders", ALL)):
        mirrors = mesh(clusters, provenance=provenance, from_=from_)
        began = time.process_time()
        for of in (None, "a-b", "s-t"):
            said = refusal(*mirrors, topics=topics if from_ == ALL else None, of=of)
            assert (said is None) == (provenance == "direct"), said
        assert time.process_time() - began < 10


def test_renames_in_all_directions_do_not_hold_up_the_mirrors_of_others() -> None:
    wild = mesh("abcdefghij", provenance=True, from_=ALL, to="{source}.{topic}")
    other = hop("a>z", from_="orders")
    began = time.process_time()
    assert refusal(*wild, other, of=other.name) is None
    assert time.process_time() - began < 10


def test_a_direct_mirror_does_not_wait_for_copies_that_it_leaves_out() -> None:
    into = hop("b>c", provenance="direct", merge=True)
    assert feeders([hop("a>b", provenance=True), into])["b-c"] == set()
    assert feeders([hop("a>b"), into])["b-c"] == {"a-b"}


@pytest.mark.parametrize("wrong", ["indirect", "yes", 1, None, [True]])
def test_provenance_is_true_false_or_direct(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be true, false or direct"):
        mirror(provenance=wrong)


def test_a_demux_has_nothing_that_was_born_where_it_reads() -> None:
    with pytest.raises(ValueError, match="`provenance: direct` is not for a demux"):
        demux("hub", provenance="direct")
