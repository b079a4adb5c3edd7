"""Settings that are each right and do not go together are refused with key and line, before any cluster is asked."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barnabas.cli import main
from barnabas.config.document import parse
from barnabas.config.load import Configuration, configured
from barnabas.errors import ConfigError
from barnabas.topology import refuse_circles_and_collisions

CLUSTERS = "clusters:\n  a: {bootstrap: 'a:1'}\n  b: {bootstrap: 'b:1'}\n  c: {bootstrap: 'c:1'}\n"
MIRROR = "groups:\n  - name: g\n    source: a\n    destination: b\n    mirrors:\n      - name: m\n        "
DEMUX = "groups:\n  - {name: g, source: a, destination: a, kind: demux, from: mux-replication_s, mirrors: "


def configuration(text: str, clusters: str = CLUSTERS) -> Configuration:
    return configured(parse(clusters + text, "f"), "f")


class Wrong(NamedTuple):
    text: str
    where: str
    says: str


END = "key: k, serve: {address: 'x:1'}"


def tunnels(entries: str) -> str:
    return f"tunnels:\n  {entries}\n"


TABLE = [
    Wrong(
        f"{MIRROR}merge: true\n        from: [x, y]\n        to: all\n        topics: {{keep_in_step: true}}",
        "f:10: groups[0].mirrors[0]",
        "`merge` and `topics.keep_in_step` do not go together",
    ),
    Wrong(tunnels("t: {cluster: nope, key: k, serve: {address: 'x:1'}}"), "f:6: tunnels.t.cluster", 'cluster "nope"'),
    Wrong(
        tunnels(f"t: {{cluster: a, {END}}}\n  u: {{cluster: b, {END}}}"),
        "f:7: tunnels.u.connect.loopback",
        '127.0.1.1 is that of tunnel "t" too; give each its own',
    ),
    Wrong(f"{DEMUX}[{{name: m, to: all}}]}}", "f:6: groups[0].mirrors[0]", "`to` without {topic} makes one topic"),
    Wrong(
        f"{DEMUX}[{{name: m, to: all, merge: true, registry_of: a, schemas: {{}}}}]}}",
        "f:6: groups[0].mirrors[0]",
        "schemas are looked for by the name of a topic, and `to` makes one of many",
    ),
]


@pytest.mark.parametrize("wrong", TABLE, ids=lambda wrong: wrong.says[:50])
def test_a_wrong_combination_is_refused_with_key_and_line(wrong: Wrong) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration(wrong.text)
    assert str(refused.value).startswith(f"{wrong.where}: ")
    assert wrong.says in str(refused.value)


def test_a_demux_may_make_one_topic_of_many_when_that_is_wanted() -> None:
    assert configuration(f"{DEMUX}[{{name: m, to: all, merge: true}}]}}").mirrors[0].to == "all"


def test_a_tunnel_that_leads_to_another_cluster_is_not_this_ones() -> None:
    clusters = CLUSTERS.replace("'a:1'}", "'a:1', tunnel: t}")
    with pytest.raises(
        ConfigError, match=r'f:2: clusters\.a\.tunnel: tunnel "t" leads to cluster "b", not to this one'
    ):
        configuration(tunnels(f"t: {{cluster: b, {END}}}"), clusters)
    assert configuration(tunnels(f"t: {{cluster: a, {END}}}"), clusters).clusters["a"].tunnel == "t"


@pytest.mark.parametrize("intermediate", ["hub", "spoke"])
def test_a_demux_reads_the_intermediate_topic_that_its_mux_was_told_to_write(intermediate: str) -> None:
    spokes = f"spokes: {{hub: a, intermediate: {intermediate}, from: [x], mux: {{intermediate: mine}}, "
    mux, *others = configuration(spokes + "members: [{cluster: b}]}").mirrors
    assert mux.intermediate_topic == "mine"
    assert [mirror.select.names for mirror in others] == [("mine",)] * (1 if intermediate == "hub" else 2)


def test_two_spokes_do_not_share_an_intermediate_topic() -> None:
    spokes = "spokes: {hub: a, from: [x], mux: {intermediate: mine}, members: [{cluster: b}, {cluster: c}]}"
    with pytest.raises(ConfigError, match=r"both (become|copy) mine"):
        refuse_circles_and_collisions(configuration(spokes).mirrors)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-c", "f.yaml", "--from", "a:1"], "--from stands instead of a file: leave it out, or -c f.yaml"),
        (["-c", "f.yaml", "--topics", "x"], "--topics stands instead of a file"),
        (["--to", "b:1", "--topics", "x"], "--to needs --from HOST:PORT with it, or -c FILE instead"),
        (["--topics", "x"], "--topics needs --from HOST:PORT with it"),
    ],
)
def test_an_option_of_run_is_not_passed_over(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments]) == 2
    assert says in capsys.readouterr().err
