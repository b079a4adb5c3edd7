"""What a survey makes of clusters that do not answer, and of mirrors that are asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import survey
from barnabas.cli import main
from barnabas.config.document import parse
from barnabas.config.load import Configuration, configured
from barnabas.errors import ConfigError, Unavailable
from barnabas.lab.certificates import make_certificates
from barnabas.survey import Surveyor, surveyor_anew

NOBODY = """\
clusters:
  a: {bootstrap: '127.0.0.1:1'}
  b: {bootstrap: '127.0.0.1:1'}
  c: {bootstrap: '127.0.0.1:1'}
groups:
  - name: g
    destination: c
    from: {match: '.*'}
    mirrors:
      - {name: a-c, source: a}
      - {name: b-c, source: b}
      - {name: idle, source: b, enabled: false}
"""


def configuration(chosen: frozenset[str] = frozenset()) -> Configuration:
    return configured(parse(NOBODY, "f"), "f").model_copy(update={"chosen": chosen})


def test_another_mirrors_cluster_that_does_not_answer_holds_this_one_up_no_longer_than_a_moment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(survey, "OTHERS_SECONDS", 0.2)
    surveyor = Surveyor(configuration(), configuration().mirrors[0])
    with caplog.at_level("INFO"):
        assert surveyor._names(["orders"]) == {"a": {"orders"}}
    assert 'mirror "a-c": not compared with the topics of others: cluster "b"' in caplog.text


def test_a_disabled_mirror_that_is_asked_for_by_name_runs_together_with_the_others() -> None:
    assert [mirror.name for mirror in configuration().together()] == ["a-c", "b-c"]
    assert [mirror.name for mirror in configuration(frozenset(["idle"])).together()] == ["a-c", "b-c", "idle"]


@pytest.mark.parametrize(("extra", "code"), [([], 0), (["--mirror", "back"], 2)])
def test_a_circle_through_a_disabled_mirror_is_refused_when_it_is_asked_for(
    extra: list[str], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "clusters: {a: {bootstrap: 'a:1'}, b: {bootstrap: 'b:1'}}\n"
        "groups:\n  - name: g\n    from: orders\n    mirrors:\n"
        "      - {name: there, source: a, destination: b}\n"
        "      - {name: back, source: b, destination: a, enabled: false}\n"
    )
    assert main(["check", "-c", str(file), *extra]) == code
    assert ("records would travel in a circle" in capsys.readouterr().err) == (code == 2)


def test_a_certificate_that_is_being_replaced_is_waited_for_by_a_mirror_that_has_run(tmp_path: Path) -> None:
    ca = make_certificates(tmp_path, ["localhost"]).ca
    secured = NOBODY.replace("a: {bootstrap: '127.0.0.1:1'}", f"a: {{bootstrap: '127.0.0.1:1', tls: {{ca: {ca}}}}}")
    given = configured(parse(secured, "f"), "f")
    there = ca.read_bytes()
    ca.unlink()
    with pytest.raises(ConfigError, match=r"f:2: clusters.a: .*ssl.ca.location"):
        Surveyor(given, given.mirrors[0])
    with pytest.raises(Unavailable, match=r"f:2: clusters.a: .*ssl.ca.location"):
        surveyor_anew(given, given.mirrors[0])
    ca.write_bytes(there)
    surveyor_anew(given, given.mirrors[0])
