"""Mirrors that cannot run together are refused: circles, copies onto themselves, many into one by mistake."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError
from barnabas.topology import refuse_circles_and_collisions
from tests.unit.configurations import mirror

ALL = {"match": ".*"}


def hop(path: str, **settings: Any) -> Mirror:
    """`hop("a>b")` copies `orders` from cluster a to cluster b."""
    source, destination = path.split(">")
    return mirror(**({"name": path.replace(">", "-"), "source": source, "destination": destination} | settings))


def refusal(*mirrors: Mirror, topics: dict[str, list[str]] | None = None) -> str | None:
    try:
        refuse_circles_and_collisions(mirrors, topics)
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


FINE = {
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
