"""A file, the command line or the environment becomes a Configuration: defaults of groups, names, enabled, merging."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from barnabas.config.cluster import Cluster
from barnabas.config.document import parse
from barnabas.config.guarantees import GUARDED, GUARDED_PREFIXES, refuse_guarded
from barnabas.config.load import Configuration, configured, load
from barnabas.config.single import VARIABLES, from_arguments, from_environment
from barnabas.config.topics import Count
from barnabas.errors import ConfigError
from barnabas.kafka.settings import connection, java_properties
from tests.unit.configurations import mirror

CLUSTERS = "clusters:\n  orange: {bootstrap: 'o:1'}\n  grape: {bootstrap: 'g:1'}\n  plum: {bootstrap: 'p:1'}\n"


def configuration(groups: str) -> Configuration:
    return configured(parse(CLUSTERS + groups, "f"), "f")


TWO_GROUPS = """
groups:
  - name: prod
    source: orange
    destination: grape
    on_loss: record
    topics: {create: false, settings: {retention.ms: 1000}}
    consumer: {fetch.min.bytes: 1}
    mirrors:
      - from: orders
      - name: clicks
        from: [clicks, views]
        destination: plum
        on_loss: restart
        topics: {create: true}
        consumer: {fetch.max.bytes: 2}
  - name: test
    enabled: false
    source: plum
    destination: grape
    mirrors:
      - {from: a, to: '{topic}.copy'}
      - {from: b, enabled: true}
"""


def test_every_setting_of_a_group_is_the_default_of_its_mirrors() -> None:
    orders = configuration(TWO_GROUPS).mirrors[0]
    assert (orders.group, orders.source, orders.destination, orders.on_loss) == ("prod", "orange", "grape", "record")
    assert orders.topics.create is False and orders.topics.settings == {"retention.ms": 1000}
    assert orders.consumer == {"fetch.min.bytes": 1}


def test_a_mirror_overrides_its_group_setting_by_setting() -> None:
    clicks = configuration(TWO_GROUPS).mirrors[1]
    assert (clicks.source, clicks.destination, clicks.on_loss) == ("orange", "plum", "restart")
    assert clicks.topics.create is True and clicks.topics.settings == {"retention.ms": 1000}
    assert clicks.consumer == {"fetch.min.bytes": 1, "fetch.max.bytes": 2}


def test_a_mirror_replaces_its_groups_choices_whole() -> None:
    made = configuration("""
groups:
  - name: g
    source: orange
    destination: grape
    from: {match: 'a.*', except: 'a.b'}
    start: {offsets: {a: {0: 5}}}
    topics: {partitions: {from: source, max: 12}, settings: {retention.ms: 1}}
    mirrors:
      - {name: m, from: {match: 'b.*'}, start: latest, topics: {partitions: {fixed: 3}}}
""").mirrors[0]
    assert (made.select.match, made.select.but, made.start.at) == (("b.*",), (), "latest")
    assert made.topics.partitions == Count(fixed=3) and made.topics.settings == {"retention.ms": 1}


def test_a_disabled_group_disables_its_mirrors_whatever_they_say() -> None:
    assert [m.name for m in configuration(TWO_GROUPS).enabled()] == ["prod__orders__orders", "clicks"]


def test_generated_names_are_made_of_group_source_and_destination_topic() -> None:
    names = [m.name for m in configuration(TWO_GROUPS).mirrors]
    assert names == ["prod__orders__orders", "clicks", "test__a__a.copy", "test__b__b"]
    assert [m.name for m in configuration(TWO_GROUPS).mirrors] == names, "a ledger is found again by this name"


def test_a_generated_name_knows_the_clusters_and_a_list_of_one_topic() -> None:
    (made,) = configuration(
        "groups: [{name: g, source: orange, destination: grape, to: '{source}.{topic}', mirrors: [{from: [a]}]}]"
    ).mirrors
    assert made.name == "g__a__orange.a"
    assert made.ledger_topic == "_barnabas.g__a__orange.a"


def test_two_mirrors_of_one_name_are_refused_across_groups_too() -> None:
    group = "{name: g, source: orange, destination: grape, mirrors: [{from: a}]}"
    with pytest.raises(ConfigError, match='two mirrors are called "g__a__a"; they would share a ledger'):
        configuration(f"groups:\n  - {group}\n  - {group}\n")


def test_a_mistake_in_a_group_is_told_with_the_line_of_the_group() -> None:
    text = TWO_GROUPS.replace("on_loss: record", "on_loss: forget").replace("        on_loss: restart\n", "")
    with pytest.raises(ConfigError, match=r"f:10: groups\[0\]\.mirrors\[0\]\.on_loss: must be"):
        configuration(text)


def test_a_mistake_that_every_mirror_overrides_is_none() -> None:
    text = TWO_GROUPS.replace("destination: grape\n    on_loss", "destination: nowhere\n    on_loss")
    text = text.replace("- from: orders", "- {from: orders, destination: grape}")
    assert configuration(text).mirrors[0].destination == "grape"


def test_a_cluster_may_be_written_as_text_or_list_with_or_without_tls() -> None:
    for bootstrap in ("b0:9092, b1:9093", ["b0:9092", "b1:9093"]):
        assert Cluster.model_validate({"bootstrap": bootstrap}).bootstrap == "b0:9092,b1:9093"
    assert Cluster.model_validate({"bootstrap": "[::1]:9092"}).bootstrap == "[::1]:9092"
    assert Cluster.model_validate({"bootstrap": "b:1", "tls": False}).tls is None
    assert Cluster.model_validate({"bootstrap": "b:1", "tls": True}).tls is not None


@pytest.mark.parametrize(
    ("tls", "sasl", "protocol"),
    [(False, None, "PLAINTEXT"), (True, None, "SSL"), (False, "PLAIN", "SASL_PLAINTEXT"), (True, "PLAIN", "SASL_SSL")],
)
def test_the_protocol_follows_from_sasl_and_tls_for_both_clients(
    tls: bool, sasl: str | None, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("P", "p")
    block = {"mechanism": sasl, "username": "u", "password": "env:P"} if sasl else None
    cluster = Cluster.model_validate({"bootstrap": "b:1", "tls": tls, "sasl": block})
    assert connection("c", cluster).properties["security.protocol"] == protocol
    assert java_properties(cluster)["security.protocol"] == protocol


def test_client_settings_are_merged_and_the_most_specific_wins() -> None:
    cluster = Cluster.model_validate({"bootstrap": "b:1", "settings": {"client.id": "mine", "a": 1, "b": True}})
    properties = connection("c", cluster, {"a": 2}).properties
    assert (properties["client.id"], properties["a"], properties["b"]) == ("mine", 2, True)
    java = java_properties(cluster, {"a": 2})
    assert (java["client.id"], java["a"], java["b"]) == ("mine", "2", "true")


@pytest.mark.parametrize("name", [*GUARDED, *(f"{prefix}x" for prefix in GUARDED_PREFIXES)])
def test_a_guarded_setting_is_refused_however_it_is_written(name: str) -> None:
    for spelling in (name, name.upper(), f"kafka.{name}"):
        with pytest.raises(Exception, match="may not be set: "):
            refuse_guarded({"linger.ms": 5, spelling: 1})


def test_settings_that_no_promise_hangs_on_pass() -> None:
    settings = {"linger.ms": 5, "fetch.min.bytes": 1, "compression.type": "zstd", "client.rack": "a"}
    assert refuse_guarded(settings) == settings


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"fixed": 5}, [5, 5, 5]),
        ({"from": "source"}, [1, 3, 9]),
        ({"from": "source", "min": 2}, [2, 3, 9]),
        ({"from": "source", "max": 3}, [1, 3, 3]),
        ({"from": "source", "min": 3, "max": 3}, [3, 3, 3]),
    ],
)
def test_a_count_is_fixed_or_the_sources_within_bounds(rule: dict[str, object], expected: list[int]) -> None:
    assert [Count.model_validate(rule).of(source) for source in (1, 3, 9)] == expected


@pytest.mark.parametrize(
    ("written", "millis"),
    [
        ("2026-01-31T00:00:00Z", 1769817600000),
        ("2026-01-31", 1769817600000),
        ("2026-01-31T01:00:00+01:00", 1769817600000),
        ("2026-01-31T00:00:00.007", 1769817600007),
        (0, 0),
        (1769817600000, 1769817600000),
        ("9999-12-31T23:59:59.999Z", 253402300799999),
    ],
)
def test_a_start_is_a_moment_exact_to_the_millisecond_in_utc_unless_it_says_otherwise(
    written: str | int, millis: int
) -> None:
    start = mirror(start=written).start
    assert (start.at, start.millis) == ("timestamp", millis)


def test_a_start_is_a_word_or_offsets_of_partitions() -> None:
    assert mirror().start.at == mirror(start="earliest").start.at == "earliest"
    assert mirror(start="latest").start.at == "latest"
    chosen = mirror(start={"offsets": {"orders": {"0": 5, "2": 7}}}).start
    assert (chosen.at, chosen.offsets) == ("offsets", {"orders": {0: 5, 2: 7}})


def arguments(**given: str | None) -> argparse.Namespace:
    return argparse.Namespace(**{"source": "a:1", "destination": "b:1", "topics": "orders", **given})


def test_the_command_line_makes_one_mirror_a_topic_each_under_its_own_name() -> None:
    made = configured(*from_arguments(arguments(topics="orders, clicks")))
    assert [m.select.names for m in made.mirrors] == [("orders",), ("clicks",)]
    assert [m.name for m in made.mirrors] == ["single__orders__orders", "single__clicks__clicks"]
    assert [c.bootstrap for c in made.clusters.values()] == ["a:1", "b:1"]


@pytest.mark.parametrize("missing", ["destination", "topics"])
def test_a_command_line_that_lacks_a_part_says_which(missing: str) -> None:
    with pytest.raises(ConfigError, match="needs --to HOST:PORT and --topics NAME") as refused:
        from_arguments(arguments(**{missing: None}))
    assert refused.value.exit_code == 2


def test_a_bad_address_on_the_command_line_is_told_like_one_in_a_file() -> None:
    with pytest.raises(ConfigError, match=r"command line:1: clusters\.source\.bootstrap: 'nowhere' is not HOST:PORT"):
        configured(*from_arguments(arguments(source="nowhere")))


ENVIRONMENT = {VARIABLES["source"]: "a:1", VARIABLES["topic"]: "orders", VARIABLES["destination"]: "b:1"}


def test_four_variables_make_one_mirror_and_the_fourth_may_be_left_out() -> None:
    for extra, to in (({}, "orders"), ({VARIABLES["to"]: "copies"}, "copies")):
        found = from_environment(ENVIRONMENT | extra)
        assert found is not None
        (made,) = configured(*found).mirrors
        assert (made.select.names, made.to) == (("orders",), to)


def test_an_environment_without_brokers_is_no_configuration() -> None:
    assert from_environment({}) is None
    assert from_environment({VARIABLES["topic"]: "orders", "PATH": "/bin"}) is None


@pytest.mark.parametrize("missing", list(ENVIRONMENT))
def test_a_missing_variable_is_named(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"environment variable {missing} is not set"):
        from_environment({name: value for name, value in ENVIRONMENT.items() if name != missing})


def test_a_file_loads_with_its_spark_and_its_disabled_mirrors(tmp_path: Path) -> None:
    file = tmp_path / "barnabas.yaml"
    file.write_text(CLUSTERS + TWO_GROUPS + "spark: {master: 'local[3]', settings: {spark.ui.enabled: false}}\n")
    loaded = load(file)
    assert (loaded.spark.master, loaded.spark.settings) == ("local[3]", {"spark.ui.enabled": False})
    assert len(loaded.mirrors) == 4
