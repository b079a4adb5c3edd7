"""`spokes:` is written out as mirrors, and each demux reads the registry of the spoke that its records come from."""

from __future__ import annotations

import argparse

import pytest

from barnabas.commands.choose import chosen
from barnabas.config.document import parse
from barnabas.config.load import Configuration, configured
from barnabas.errors import ConfigError
from barnabas.survey import Surveyor

HUB = """\
clusters:
  hub: {bootstrap: 'h:1', registry: {url: 'http://hub'}}
  one: {bootstrap: 'a:1', registry: {url: 'http://one'}}
  two: {bootstrap: 'b:1'}
spokes:
  hub: hub
  from: orders
  demux: {schemas: {mode: ids}}
  members: [{cluster: one, identifier: eu}]
"""
DEMUX = """\
groups:
  - name: g
    mirrors: [{name: d, kind: demux, source: hub, destination: hub, from: mux-replication_eu, schemas: {}}]
"""


def configuration(text: str) -> Configuration:
    return configured(parse(text, "f"), "f")


@pytest.mark.parametrize("intermediate", ["hub", "spoke"])
def test_a_demux_looks_schema_ids_up_in_the_registry_of_its_spoke(intermediate: str) -> None:
    made = configuration(HUB.replace("hub: hub", f"hub: hub\n  intermediate: {intermediate}"))
    demux = made.mirrors[-1]
    assert (demux.name, demux.source, demux.registry_of) == ("demux_eu", "hub", "one")
    settings = Surveyor(made, demux).translation(())
    assert settings is not None
    assert (settings.source.name, settings.source.url) == ("one", "http://one")
    assert (settings.destination.name, settings.destination.url) == ("hub", "http://hub")


def test_a_demux_may_say_which_registry_it_reads_instead() -> None:
    made = configuration(HUB.replace("demux: {", "demux: {registry_of: hub, "))
    assert made.mirrors[-1].registry_of == "hub"


def test_a_demux_that_does_not_say_whose_schema_ids_it_carries_is_refused() -> None:
    clusters = HUB[: HUB.index("spokes:")]
    with pytest.raises(ConfigError, match="a demux needs `registry_of`: the cluster in whose registry"):
        configuration(clusters + DEMUX)
    assert configuration(clusters + DEMUX.replace("schemas: {}", "schemas: {}, registry_of: one")).mirrors


def test_only_a_demux_reads_the_registry_of_another_cluster() -> None:
    with pytest.raises(ConfigError, match="`registry_of` is for a demux"):
        configuration(HUB.replace("  demux: {", "  mux: {registry_of: one}\n  demux: {"))


@pytest.mark.parametrize(
    ("named", "lacks"), [("two", 'cluster "two" has no `registry`'), ("three", 'cluster "three" does not exist')]
)
def test_a_cluster_without_a_registry_is_refused_before_anything_starts(named: str, lacks: str) -> None:
    made = configuration(HUB.replace("demux: {", f"demux: {{registry_of: {named}, "))
    with pytest.raises(ConfigError, match=f'f:8: mirror "demux_eu": registry_of: {lacks}'):
        chosen(argparse.Namespace(mirror=[]), made)
