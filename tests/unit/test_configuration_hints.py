"""What is said of a mistake helps with that mistake: no words of a library, no keys that nobody writes."""

from __future__ import annotations

import pytest

from barnabas.cli import main
from barnabas.config.document import parse
from barnabas.config.load import Configuration, configured
from barnabas.config.single import from_environment
from barnabas.errors import ConfigError
from barnabas.topology import refuse_circles_and_collisions

CLUSTERS = "clusters:\n  a: {bootstrap: 'a:1', registry: {url: 'http://a'}}\n  b: {bootstrap: 'b:1', registry: {url: 'http://b'}}\n"
GROUP = "groups:\n  - name: g\n    source: a\n    destination: b\n    mirrors:\n      - name: n\n        "


def configuration(text: str) -> Configuration:
    return configured(parse(CLUSTERS + text, "f"), "f")


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as told:
        refuse_circles_and_collisions(configuration(text).mirrors)
    return str(told.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spokes: {hub: a, from: [x], members: []}", "f:4: spokes.members: is empty: list at least one"),
        (f"{GROUP}from: [x]\n        schemas: {{mode: ids, subjects: {{fixed: ''}}}}", "fixed: must not be empty"),
    ],
)
def test_what_is_empty_is_told_in_plain_words(text: str, says: str) -> None:
    assert says in refused(text)


def test_two_topics_of_one_mirror_that_become_one_name_the_mirror_once() -> None:
    told = refused(f"{GROUP}from: [x, y]\n        to: all")
    assert 'mirror "n": x of "a" and y of "a" both become all at "b"; say `merge: true` if that is wanted' in told
    assert told.count('"n"') == 1


def test_known_keys_are_those_that_somebody_can_write() -> None:
    told = refused(f"{GROUP}zebra: 1\n        from: x")
    known = told.partition("known are: ")[2].split(", ")
    assert {"from", "to", "name"} <= set(known)
    assert not {"place", "group"} & set(known)


@pytest.mark.parametrize("key", ["topics", "from", "schemas", "on_loss"])
def test_a_setting_of_a_mirror_at_the_top_is_told_where_it_belongs(key: str) -> None:
    told = refused(f"{key}: {{}}\n{GROUP}from: x")
    assert told == f"f:4: {key}: belongs to a group or to one of its mirrors, not here"


def test_a_hub_is_no_spoke_of_its_own() -> None:
    told = refused("spokes: {hub: a, from: [x], members: [{cluster: b}, {cluster: a}]}")
    assert told.startswith('f:4: spokes.members[1].cluster: "a" is the hub')
    assert "provenance" not in told


def test_a_fixed_subject_needs_a_level_that_somebody_chose() -> None:
    fixed = "from: x\n        schemas: {mode: ids, subjects: {fixed: all}"
    told = refused(f"{GROUP}{fixed}}}")
    assert told.startswith("f:11: groups[0].mirrors[0].schemas: ")
    assert "`compatibility: NONE`" in told
    for level in ("NONE", "BACKWARD", "source"):
        (mirror,) = configuration(f"{GROUP}{fixed}, compatibility: {level}}}").mirrors
        assert mirror.schemas and mirror.schemas.compatibility == level


def test_the_fourth_variable_has_a_default_and_the_message_about_the_others_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {
        "KAFKA_CLUSTERS_SOURCE_BOOTSTRAP_SERVERS": "a:1",
        "KAFKA_CLUSTERS_SOURCE_TOPIC": "orders",
        "KAFKA_CLUSTERS_DESTINATION_BOOTSTRAP_SERVERS": "b:1",
    }
    found = from_environment(given)
    assert found is not None
    (mirror,) = configured(*found).mirrors
    assert mirror.to == "orders"
    for name in given:
        for key, value in given.items():
            monkeypatch.setenv(key, value)
        monkeypatch.delenv(name)
        assert main(["plan"]) == 2
        told = capsys.readouterr().err
        assert f"environment variable {name} is not set" in told
        others = [key for key in given if key != name]
        assert all(other in told for other in others if other.endswith("SERVERS")), told
        assert "three" not in told
