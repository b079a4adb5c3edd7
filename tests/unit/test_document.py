"""YAML text becomes values that know their lines."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from barnabas.config.document import Section, line_of, merged, parse, read, written
from barnabas.errors import ConfigError

TEXT = """\
# a comment
clusters:
  orange: {bootstrap: 'b0:9092',
           tls: true}

groups:
  - name: prod
    mirrors:
      - from:
          - a
          - b
"""


def test_every_key_and_item_knows_its_line() -> None:
    root = parse(TEXT, "f")
    lines = {
        ("clusters",): 2,
        ("clusters", "orange", "tls"): 4,
        ("groups", 0, "name"): 7,
        ("groups", 0, "mirrors", 0, "from"): 9,
        ("groups", 0, "mirrors", 0, "from", 1): 11,
    }
    assert {path: line_of(root, path) for path in lines} == lines


def test_the_line_of_something_that_is_not_there_is_that_of_what_should_hold_it() -> None:
    root = parse(TEXT, "f")
    assert line_of(root, ("groups", 0, "mirrors", 7, "from")) == 8
    assert line_of(root, ("nothing",)) == 2


def test_steps_that_nobody_wrote_are_left_out_of_a_path() -> None:
    root = parse(TEXT, "f")
    assert written(root, ("groups", 0, "mirrors", 0, "from", "names", 1)) == ("groups", 0, "mirrors", 0, "from", 1)
    assert written(root, ("clusters", "orange", "tls", "bool")) == ("clusters", "orange", "tls")
    assert written(root, ("groups", 9)) == ("groups",)


def test_dates_stay_text_and_other_scalars_are_what_yaml_says() -> None:
    root = parse("a: 2026-01-31\nb: 2026-01-31T00:00:00Z\nc: 12\nd: no\ne: 1.5\nf: ~\ng: '12'\n", "f")
    assert list(root.values()) == ["2026-01-31", "2026-01-31T00:00:00Z", 12, False, 1.5, None, "12"]


def test_keys_are_the_words_as_written() -> None:
    assert list(parse("on: 1\n0: 2\n1.0: 3\nnull: 4\n", "f")) == ["on", "0", "1.0", "null"]


@pytest.mark.parametrize("text", ["a: 1\na: 1\n", "a: {b: 1, b: 2}\n", "- {b: 1, b: 2}\n", "a: 1\n'a': 2\n"])
def test_a_key_that_stands_twice_is_refused_wherever_it_is(text: str) -> None:
    with pytest.raises(ConfigError, match="stands twice, first in line 1; keep one"):
        parse(text, "f")


def test_a_merged_map_gives_way_to_keys_written_beside_it() -> None:
    root = parse("a: &a {x: 1, y: 1}\nb:\n  <<: *a\n  y: 2\nc:\n  <<: [{x: 5}, *a]\nd: *a\n", "f")
    assert root["b"] == {"x": 1, "y": 2}
    assert root["c"] == {"x": 5, "y": 1}
    assert root["d"] == root["a"] == {"x": 1, "y": 1}
    assert line_of(root, ("b", "y")) == 4 and line_of(root, ("b", "x")) == 1


def test_an_empty_document_is_an_empty_map() -> None:
    assert parse("", "f") == parse("# only words\n", "f") == {}


def test_own_settings_lie_over_defaults_map_within_map_each_with_its_line() -> None:
    root = parse(
        "group:\n  topics: {create: true,\n    partitions: 3}\n  to: x\nown:\n  topics:\n    create: false\n", "f"
    )
    result = merged(root["group"], root["own"])
    assert result == {"topics": {"create": False, "partitions": 3}, "to": "x"}
    assert [line_of(result, ("topics", key)) for key in ("create", "partitions")] == [7, 3]
    assert root["group"]["topics"]["create"] is True, "the defaults were changed for the next mirror"


@pytest.mark.parametrize(("default", "own"), [("{a: 1}", "x"), ("x", "{a: 1}"), ("[1, 2]", "[3]"), ("{a: 1}", "~")])
def test_what_is_no_map_on_both_sides_is_replaced_whole(default: str, own: str) -> None:
    root = parse(f"d: {{k: {default}}}\no: {{k: {own}}}\n", "f")
    assert merged(root["d"], root["o"])["k"] == root["o"]["k"]


@pytest.mark.parametrize("key", ["from", "to", "start", "replication", "partitions"])
def test_what_is_one_choice_is_replaced_whole_at_any_depth(key: str) -> None:
    root = parse(f"d: {{t: {{x: 1, {key}: {{a: 1}}}}}}\no: {{t: {{{key}: {{b: 2}}}}}}\n", "f")
    assert merged(root["d"], root["o"]) == {"t": {"x": 1, key: {"b": 2}}}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: there is no such file; name the configuration with -c FILE"):
        read(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "latin.yaml")


def test_a_section_is_an_ordinary_map_to_everybody_else() -> None:
    section = Section(3)
    section.put("a", 1, 4)
    assert section == {"a": 1} and dict(section) == {"a": 1}


def bomb(levels: int, open_: str, close: str) -> str:
    """Each level names the one before ten times; a million values and more stand in a few lines."""
    lines = [f"a0: &a0 {open_}{'k: ' if open_ == '{' else ''}x{close}"]
    for level in range(1, levels):
        aliases = ", ".join((f"k{n}: " if open_ == "{" else "") + f"*a{level - 1}" for n in range(10))
        lines.append(f"a{level}: &a{level} {open_}{aliases}{close}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("open_", "close"), ["[]", "{}"])
def test_aliases_that_stand_for_more_than_memory_holds_are_refused(open_: str, close: str) -> None:
    assert len(parse(bomb(4, open_, close), "f")) == 4
    with pytest.raises(ConfigError, match=r"f:1: .* with its aliases written out it has more than 1,000,000 values"):
        parse(bomb(30, open_, close), "f")


def test_merges_of_merges_are_refused_too() -> None:
    text = "a0: &a0 {k: 1}\n" + "".join(
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}], k{level}: 1}}\n" for level in range(1, 30)
    )
    with pytest.raises(ConfigError, match="more than 1,000,000 values"):
        parse(text, "f")


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "[" * 5000 + "]" * 5000, "- " * 20_000, "? " * 20_000])
def test_a_text_that_is_nested_too_deeply_is_a_mistake_with_a_place(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f:\d+: not"):
        parse(text, "f")


def test_any_text_is_values_or_a_mistake_with_a_place() -> None:
    chance = random.Random(11)
    marks = [
        *"{}[]:,&*!|>'\"%@`#?-\n\t \\",
        "<<: ",
        "*a",
        "&a ",
        "!!int ",
        "!!binary ",
        "\n  ",
        ".inf",
        "0x",
        "\x00",
        "é",
    ]
    taken = refused = 0
    for _ in range(1500):
        text = list(TEXT)
        for _ in range(chance.randrange(1, 6)):
            text[chance.randrange(len(text))] = chance.choice(marks)
        try:
            assert isinstance(parse("".join(text), "f"), Section)
            taken += 1
        except ConfigError as error:
            assert re.match(r"f:\d+: ", str(error))  # noqa: PT017 - every one of them
            refused += 1
    assert taken > 100
    assert refused > 100
