"""Secrets and files are looked for by who is about to use them, and told with key and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli import main

BOTH_SIDES = """\
clusters:
  orange:
    bootstrap: b0.orange:9092
    sasl: {mechanism: PLAIN, username: me, password: env:ORANGE}
    tunnel: eu
  grape:
    bootstrap: b0.grape:9092
    sasl: {mechanism: PLAIN, username: env:GRAPE_NAME, password: file:/no/password}
    tls: {ca: /no/ca.pem}
  plum: {bootstrap: 'b0.plum:9092', registry: {url: 'http://r', token: env:PLUM}}
tunnels:
  eu: {cluster: orange, key: eu.key, serve: {address: 'gate:7443'}}
groups:
  - name: g
    mirrors:
      - {name: over, source: orange, destination: grape, from: orders}
      - {name: idle, source: plum, destination: orange, from: bills, enabled: false}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("ORANGE", "GRAPE_NAME", "PLUM"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "c.yaml"
    path.write_text(BOTH_SIDES)
    return str(path)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_a_tunnel_is_planned_without_the_secrets_of_either_side(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tunnel", "plan", "-c", file]) == 0, said(capsys)


def test_serve_needs_the_secrets_of_its_own_cluster(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tunnel", "serve", "-c", file]) == 2
    assert f"{file}:4: clusters.orange.sasl.password: environment variable ORANGE is not set" in said(capsys)


@pytest.mark.parametrize("command", ["run", "plan", "status", "check"])
def test_a_mirror_needs_those_of_both_clusters_at_once(
    command: str, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "-c", file]) == 2
    assert f"{file}:4: clusters.orange.sasl.password: environment variable ORANGE is not set" in said(capsys)
    monkeypatch.setenv("ORANGE", "x")
    assert main([command, "-c", file]) == 2
    assert f"{file}:8: clusters.grape.sasl.username: environment variable GRAPE_NAME is not set" in said(capsys)


def test_a_cluster_that_only_disabled_mirrors_use_needs_nothing_until_one_is_asked_for(
    tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ORANGE", "GRAPE_NAME"):
        monkeypatch.setenv(name, "x")
    (tmp_path / "password").write_text("x")
    text = BOTH_SIDES.replace("/no/password", str(tmp_path / "password")).replace("tls: {ca: /no/ca.pem}", "tls: true")
    Path(file).write_text(text)
    assert main(["check", "-c", file]) == 0, said(capsys)
    assert main(["check", "-c", file, "--mirror", "idle"]) == 2
    assert f"{file}:10: clusters.plum.registry.token: environment variable PLUM is not set" in said(capsys)


def test_a_demux_needs_the_secrets_of_the_registry_it_asks_and_no_others_of_that_cluster(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text("""\
clusters:
  spoke:
    bootstrap: b0.spoke:9092
    sasl: {mechanism: PLAIN, username: me, password: env:ORANGE}
    registry: {url: 'http://r', token: env:PLUM}
  hub: {bootstrap: 'b0.hub:9092', registry: {url: 'http://r'}}
groups:
  - name: g
    mirrors:
      - {name: d, kind: demux, source: hub, destination: hub, from: mux, schemas: {value: registry}, registry_of: spoke}
""")
    assert main(["check", "-c", file]) == 2
    assert f"{file}:5: clusters.spoke.registry.token: environment variable PLUM is not set" in said(capsys)
    monkeypatch.setenv("PLUM", "")
    assert main(["check", "-c", file]) == 2
    assert "environment variable PLUM is empty" in said(capsys)
    monkeypatch.setenv("PLUM", "x")
    assert main(["check", "-c", file]) == 0, said(capsys)
