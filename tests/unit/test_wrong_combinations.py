"""Settings that are each right and do not go together are refused with key and line, before any cluster is asked."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from barnabas.config.document import parse
from barnabas.config.load import Configuration, configured
from barnabas.errors import ConfigError

CLUSTERS = "clusters:\n  a: {bootstrap: 'a:1'}\n  b: {bootstrap: 'b:1'}\n  c: {bootstrap: 'c:1'}\n"
MIRROR = "groups:\n  - name: g\n    source: a\n    destination: b\n    mirrors:\n      - name: m\n        "
DEMUX = "groups:\n  - {name: g, source: a, destination: a, kind: demux, from: mux-replication_s, mirrors: "


def configuration(text: str, clusters: str = CLUSTERS) -> Configuration:
    return configured(parse(clusters + text, "f"), "f")


class Wrong(NamedTuple):
    text: str
    where: str
    says: str


TABLE = [
    Wrong(f"{DEMUX}[{{name: m, to: all}}]}}", "f:6: groups[0].mirrors[0]", "`to` without {topic} makes one topic"),
]


@pytest.mark.parametrize("wrong", TABLE, ids=lambda wrong: wrong.says[:50])
def test_a_wrong_combination_is_refused_with_key_and_line(wrong: Wrong) -> None:
    with pytest.raises(ConfigError) as refused:
        configuration(wrong.text)
    assert str(refused.value).startswith(f"{wrong.where}: ")
    assert wrong.says in str(refused.value)


def test_a_demux_may_make_one_topic_of_many_when_that_is_wanted() -> None:
    assert configuration(f"{DEMUX}[{{name: m, to: all, merge: true}}]}}").mirrors[0].to == "all"
