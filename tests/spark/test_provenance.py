"""Provenance along several mirrors, with applications between them: no brokers, but the transforms of real Spark."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.config.mirror import Mirror
from barnabas.model import Route
from barnabas.naming import destination_name, selected
from barnabas.plan import Plan, route_number
from barnabas.predicate import RECORD_SCHEMA
from barnabas.provenance import ORIGIN
from barnabas.shape import shaped
from barnabas.spoke import Spoke
from tests.unit.test_topology import ALL, demux, hop, mux

pytest_plugins = ["tests.spark_session"]

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
Place = tuple[str, str]
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass
class World:
    """Clusters a, b, c… with topics; the id of cluster a is id-a. Mirrors copy each record of a topic once."""

    spark: SparkSession
    logs: dict[Place, list[tuple[str, Headers]]] = field(default_factory=dict)

    def write(self, place: str, *names: str, headers: Headers = ()) -> None:
        """`write("a/orders", "first")`."""
        cluster, _, topic = place.partition("/")
        self.logs.setdefault((cluster, topic), []).extend((name, headers) for name in names)

    def hand_on(self, place: str, to: str) -> None:
        """An application that reads a topic and writes to another one, headers and all, as Kafka Streams does."""
        for name, headers in list(self.logs[_place(place)]):
            self.write(to, f"{name}+", headers=headers)

    def names(self, place: str) -> list[str]:
        return [name for name, _ in self.logs.get(_place(place), [])]

    def stamps(self, place: str, name: str) -> list[str]:
        """The origin headers of a record; one of them for each, where no earlier version has written any."""
        (headers,) = [headers for other, headers in self.logs[_place(place)] if other == name]
        return [(value or b"").decode() for key, value in headers if key == ORIGIN]

    def run(self, *mirrors: Mirror) -> None:
        """Until nothing is left to copy."""
        at: Counter[tuple[str, Place]] = Counter()
        for turn in itertools.count():
            moved = [self._copy(mirror, at) for mirror in mirrors]
            if not any(moved):
                return
            assert turn < 8, "records travel in a circle"

    def _copy(self, mirror: Mirror, at: Counter[tuple[str, Place]]) -> bool:
        topics = selected(mirror, [topic for cluster, topic in self.logs if cluster == mirror.source])
        waiting = {t: self.logs[mirror.source, t][at[mirror.name, (mirror.source, t)] :] for t in topics}
        rows = [
            (b"k", name.encode(), topic, 0, 0, MOMENT, 0, list(headers))
            for topic, records in waiting.items()
            for name, headers in records
        ]
        at.update({(mirror.name, (mirror.source, topic)): len(records) for topic, records in waiting.items()})
        if not rows:
            return False
        plan = plan_of(mirror, *topics)
        found = shaped(self.spark.createDataFrame(rows, RECORD_SCHEMA), mirror, plan).collect()
        for row in found:
            route = next(route for route in plan.routes if route.number == row["route"])
            headers = tuple((h["key"], None if h["value"] is None else bytes(h["value"])) for h in row["headers"])
            to = row["to_topic"] if mirror.kind == "demux" else route.destination
            told = told_by(mirror, route.source) if mirror.kind == "mux" else ()
            self.write(f"{mirror.destination}/{to}", row["value"], headers=(*headers, *told))
        return bool(found)


def _place(text: str) -> Place:
    cluster, _, topic = text.partition("/")
    return cluster, topic


def plan_of(mirror: Mirror, *topics: str) -> Plan:
    named = [(t, str(mirror.to) if mirror.kind == "demux" else destination_name(mirror, t)) for t in topics]
    routes = tuple(Route(route_number(topic), topic, "id", name, 1) for topic, name in named)
    return Plan(mirror.name, f"id-{mirror.source}", f"id-{mirror.destination}", routes, (), (), {})


def told_by(mirror: Mirror, topic: str) -> Headers:
    """What a mux's writer adds, behind a record's own headers."""
    spoke = Spoke(mirror.identifier or "", "b:1", f"id-{mirror.source}", mirror.intermediate_topic)
    before, after = spoke.around_timestamp(topic, 0, 1)
    return (*before, ("MUX_SOURCE_TIMESTAMP", b"1"), *after)


@pytest.fixture
def world(spark: SparkSession) -> World:
    return World(spark)


def both_ways(**settings: Any) -> list[Mirror]:
    return [hop("a>b", **({"provenance": True} | settings)), hop("b>a", **({"provenance": True} | settings))]


def mesh(clusters: str, **settings: Any) -> Iterator[Mirror]:
    for a, b in itertools.permutations(clusters, 2):
        yield hop(f"{a}>{b}", **({"provenance": "direct", "merge": True} | settings))


def old(*clusters: str) -> Headers:
    """Stamps as they were before topics were named in them."""
    return tuple((ORIGIN, f"id-{cluster}".encode()) for cluster in clusters)


@pytest.mark.parametrize("provenance", [True, "direct"])
def test_both_sides_of_a_pair_end_with_the_union(world: World, provenance: Any) -> None:
    world.write("a/orders", "1", "2")
    world.write("b/orders", "3")
    world.run(*both_ways(provenance=provenance))
    assert world.names("a/orders") == ["1", "2", "3"]
    assert sorted(world.names("b/orders")) == ["1", "2", "3"]
    assert world.stamps("b/orders", "1") == ["id-a/orders id-b/orders"]
    assert world.stamps("a/orders", "1") == []


@pytest.mark.parametrize("provenance", [True, "direct"])
@pytest.mark.parametrize("enriched", ["enriched", "a.orders"])
def test_what_an_application_makes_of_copies_is_born_where_it_writes_it(
    world: World, provenance: Any, enriched: str
) -> None:
    world.write("a/orders", "1")
    pair = both_ways(provenance=provenance, from_=ALL)
    world.run(*pair)
    world.hand_on("b/orders", f"b/{enriched}")
    later = World(world.spark, {("b", enriched): world.logs["b", enriched]})
    later.run(*pair)
    assert later.names(f"a/{enriched}") == later.names(f"b/{enriched}") == ["1+"]
    assert later.stamps(f"a/{enriched}", "1+") == [f"id-b/{enriched} id-a/{enriched}"]


@pytest.mark.parametrize("provenance", [True, "direct"])
def test_a_derived_record_may_even_become_the_topic_that_it_was_made_of(world: World, provenance: Any) -> None:
    world.write("a/orders", "1")
    there = hop("a>b", provenance=provenance)
    world.run(there)
    world.hand_on("b/orders", "b/done")
    world.run(hop("b>a", from_="done", to="orders", merge=True, provenance=provenance))
    assert world.names("a/orders") == ["1", "1+"]


def test_a_record_that_is_handed_on_at_every_cluster_keeps_the_stamp_of_its_last_copy_only(world: World) -> None:
    own: Headers = (("x", b"1"), ("x", None))
    world.write("a/s0", "1", headers=own)
    for step, (source, destination) in enumerate([("a", "b"), ("b", "a")] * 2):
        world.run(hop(f"{source}>{destination}", from_=f"s{step}", provenance=True))
        world.hand_on(f"{destination}/s{step}", f"{destination}/s{step + 1}")
    assert world.stamps("a/s3", "1+++") == ["id-b/s3 id-a/s3"]
    assert world.logs["a", "s3"][0][1][:2] == own


def test_what_a_third_cluster_sent_does_not_go_round_between_two(world: World) -> None:
    world.write("c/orders", "1")
    world.run(hop("c>a", provenance=True, merge=True), *both_ways(merge=True))
    assert [world.names(f"{cluster}/orders") for cluster in "abc"] == [["1"]] * 3
    assert world.stamps("b/orders", "1") == ["id-c/orders id-a/orders id-b/orders"]


def test_with_provenance_copies_go_on_and_return_to_no_topic_they_were_in(world: World) -> None:
    world.write("a/orders", "1")
    line = [hop(f"{a}>{b}", provenance=True, merge=True) for a, b in ("ab", "ba", "bc", "cb")]
    world.run(*line)
    assert [world.names(f"{cluster}/orders") for cluster in "abc"] == [["1"]] * 3


def test_a_copy_may_come_back_as_another_topic(world: World) -> None:
    world.write("a/orders", "1")
    world.run(hop("a>b", provenance=True), hop("b>a", to="{topic}.back", provenance=True))
    assert world.names("a/orders.back") == ["1"]


def test_in_a_direct_mesh_every_record_is_everywhere_once(world: World) -> None:
    for cluster in "abc":
        world.write(f"{cluster}/orders", f"{cluster}1", f"{cluster}2")
    world.run(*mesh("abc"))
    for cluster in "abc":
        assert sorted(world.names(f"{cluster}/orders")) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    world.hand_on("b/orders", "b/enriched")
    derived = World(world.spark, {("b", "enriched"): world.logs["b", "enriched"]})
    derived.run(*mesh("abc", from_="enriched"))
    for cluster in "abc":
        assert sorted(derived.names(f"{cluster}/enriched")) == ["a1+", "a2+", "b1+", "b2+", "c1+", "c2+"]


RENAMES: dict[str, dict[str, Any]] = {
    "by a template": {"to": "{source}.{topic}"},
    "into one": {"to": "all", "merge": True},
    "by a replacement": {"to": {"replace": "(.)(.*)", "with": r"\2.\1"}},
    "by a replacement that a template could say": {"to": {"replace": "(.*)", "with": r"x.\1"}},
}


@pytest.mark.parametrize("rename", RENAMES.values(), ids=RENAMES.keys())
def test_direct_mirrors_that_rename_leave_copies_where_they_are(world: World, rename: dict[str, Any]) -> None:
    for cluster, topic in itertools.product("abc", ("orders", "clicks")):
        world.write(f"{cluster}/{topic}", f"{cluster}.{topic}")
    mirrors = list(mesh("abc", from_=ALL, **rename))
    world.run(*mirrors)
    for cluster in "abc":
        held = Counter(name for (at, _), records in world.logs.items() if at == cluster for name, _ in records)
        assert held == {f"{other}.{topic}": 1 for other, topic in itertools.product("abc", ("orders", "clicks"))}


def test_a_copy_that_a_mirror_without_provenance_carried_on_is_born_there_for_direct_ones(world: World) -> None:
    world.write("a/orders", "1")
    world.run(hop("a>b", provenance=True), hop("b>c"), hop("c>d", provenance="direct"))
    assert world.names("d/orders") == ["1"]
    assert world.stamps("d/orders", "1") == ["id-c/orders id-d/orders"]


def test_through_a_hub_and_back_nothing_returns_and_what_the_hub_made_does(world: World) -> None:
    world.write("s/orders", "1")
    there, apart = mux("s>h", provenance=True), demux("h", provenance=True, merge=True)
    back = hop("h>s", from_=["orders", "made"], provenance=True)
    world.run(there, apart, back)
    assert world.names("h/orders") == ["1"] and world.names("s/orders") == ["1"]
    assert world.stamps("h/orders", "1") == ["id-s/orders id-h/mux-replication_s id-h/orders"]
    world.hand_on("h/orders", "h/made")
    World(world.spark, world.logs).run(hop("h>s", from_="made", provenance=True))
    assert world.names("s/made") == ["1+"]


def test_a_record_that_a_demux_cannot_place_keeps_its_headers(world: World) -> None:
    frame = world.spark.createDataFrame([(b"k", b"v", "mux-replication_s", 0, 0, MOMENT, 0, [])], RECORD_SCHEMA)
    apart = demux("h", provenance=True)
    (row,) = shaped(frame, apart, plan_of(apart, "mux-replication_s")).collect()
    assert (row["to_topic"], row["headers"]) == (None, [])


def test_stamps_without_a_topic_keep_their_meaning(world: World) -> None:
    world.write("b/orders", "none", headers=((ORIGIN, None), ("other", b"id-a")))
    world.write("b/orders", "a", headers=old("a"))
    world.write("b/orders", "c", headers=(("x", None), *old("c")))
    world.write("b/orders", "ca", headers=old("c", "a"))
    world.run(hop("b>a", provenance=True), hop("b>d", provenance="direct"))
    assert world.names("a/orders") == ["none", "c"]
    assert world.names("d/orders") == ["none"]
    assert world.stamps("a/orders", "c") == ["id-c", "id-b/orders id-a/orders"]
    world.run(hop("a>c", provenance=True))
    assert world.names("c/orders") == ["none"]


def test_what_was_derived_of_a_copy_of_a_copy_by_an_earlier_version_is_born_where_it_is_written(world: World) -> None:
    """The last header tells of the last copy; what stands before it is older news."""
    handed: Headers = (*old("a"), (ORIGIN, b"id-b/orders id-c/orders"))
    world.write("c/enriched", "derived", headers=handed)
    world.write("c/orders", "copy", headers=handed)
    world.run(hop("c>a", from_=["enriched", "orders"], provenance=True))
    assert (world.names("a/enriched"), world.names("a/orders")) == (["derived"], [])
    assert world.stamps("a/enriched", "derived") == ["id-a", "id-c/enriched id-a/enriched"]


def test_names_that_end_or_begin_alike_are_not_taken_for_each_other(world: World) -> None:
    for topic in ("orders", "s", "orders2", "x.orders"):
        world.write("a/orders", "1")
        world.write(f"b/{topic}", topic, headers=((ORIGIN, b"id-a/x.orders id-b/orders"),))
    world.run(hop("b>a", from_=["s", "orders2", "x.orders", "orders"], provenance=True, to="{topic}"))
    assert world.names("a/s") == ["s"] and world.names("a/orders2") == ["orders2"]
    assert world.names("a/x.orders") == ["x.orders"] and "orders" in world.names("a/orders")


def test_a_stamp_without_a_topic_that_names_the_source_is_no_copys(world: World) -> None:
    world.write("b/orders", "mine", headers=old("b"))
    world.run(hop("b>a", provenance="direct"))
    assert world.names("a/orders") == ["mine"]


def test_an_application_that_writes_back_to_the_topic_it_read_is_taken_for_the_mirror(world: World) -> None:
    """Nothing tells the two apart: README says so."""
    world.write("a/orders", "1")
    world.run(*both_ways())
    world.hand_on("b/orders", "b/orders")
    World(world.spark, world.logs).run(hop("b>a", provenance=True))
    assert world.names("a/orders") == ["1"]
