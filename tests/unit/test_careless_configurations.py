"""What is easily written without being meant: told with its line, instead of read as something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.cli import main
from barnabas.config.load import load
from barnabas.config.secret import Secret
from barnabas.errors import ConfigError, Unavailable
from tests.unit.configurations import GOOD
from tests.unit.test_wrong_configurations import ORDERS, Wrong, at_cluster, at_mirror, written

MIRROR = "      - name: orders\n        from: orders\n"
EMPTY = "nothing stands behind it"
EARLY = "a number is milliseconds since 1970"
TABLE = [
    Wrong("tls: false", "tls:  # {ca: ca.pem}", 5, "clusters.orange.tls", EMPTY),
    at_mirror("schemas:", 16, "schemas", EMPTY),
    at_mirror("where:", 16, "where", EMPTY),
    at_mirror("where: ' '", 16, "where", "is empty"),
    Wrong("spark:", "metrics: {console: }\nspark:", 8, "metrics.console", EMPTY),
    at_mirror("start: 1750000000", 16, "start", EARLY),
    at_mirror("start: 20260131", 16, "start", EARLY),
    at_mirror("start: 12:30:00", 16, "start", EARLY),
    Wrong(MIRROR, "      - form: orders\n", 14, f"{ORDERS}.form", 'unknown key; did you mean "from"?'),
    Wrong(MIRROR, "      - to: orders\n", 14, f"{ORDERS}.from", "is missing"),
    Wrong(MIRROR, "      - from: 123\n", 14, f"{ORDERS}.from", "must be a name, a list of names"),
    Wrong(MIRROR, "      - from: o\n        to: 5\n", 15, f"{ORDERS}.to", "must be text"),
    Wrong("username: env:CANARY_NAME", "username: yes", 4, "clusters.orange.sasl.username", "must be text: put it in"),
    Wrong("username: env:CANARY_NAME", "username: 0123", 4, "clusters.orange.sasl.username", "must be text: put it in"),
    Wrong("tls: false", "tls: {ca: ~nobody-of-this-name/ca.pem}", 5, "clusters.orange.tls.ca", "home directory"),
    at_mirror("topics: {partitions: {fixed: 6, max: 3}}", 16, "topics.partitions", "give a number, or {from: source}"),
]


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_NAME", "me")
    monkeypatch.setenv("CANARY_SECRET", "hush")


@pytest.mark.parametrize("wrong", TABLE, ids=lambda wrong: f"{wrong.key}: {wrong.new.strip()}"[:60])
def test_it_is_told_with_key_and_line(wrong: Wrong, tmp_path: Path) -> None:
    file = written(tmp_path, wrong)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert str(refused.value).startswith(f"{file}:{wrong.line}: {wrong.key}: ")
    assert wrong.says in str(refused.value)


def test_a_null_that_somebody_wrote_is_meant(tmp_path: Path) -> None:
    (mirror,) = load(written(tmp_path, at_mirror("schemas: null", 0, "", ""))).mirrors
    assert mirror.schemas is None


def test_a_password_without_its_space_is_not_shown_where_it_stands_twice(tmp_path: Path) -> None:
    file = written(tmp_path, at_cluster("sasl: {password:hunter2, password:hunter2}", 0, "", ""))
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert "`password:…` stands twice" in str(refused.value) and "hunter2" not in str(refused.value)


@pytest.mark.parametrize("to", ["hub/{topic}", "__{topic}", "{{topic}}"])
def test_a_template_that_no_topic_can_be_called_by_is_refused_before_any_topic_is_seen(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "barnabas.yaml"
    file.write_text(GOOD.replace(MIRROR, f"      - {{name: a, from: {{match: 'eu.*'}}, to: '{to}'}}\n"))
    assert main(["check", "-c", str(file)]) == 2
    assert f'{file}:14: mirror "a": topic would become' in capsys.readouterr().err


def test_an_empty_name_of_a_file_is_not_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, Wrong("", "", 0, "", ""))
    monkeypatch.chdir(tmp_path)
    assert main(["check"]) == 0
    assert main(["check", "-c", ""]) == 2
    assert main(["run", "--from", "", "--to", "b:1", "--topics", "t"]) == 2
    err = capsys.readouterr().err
    assert "-c names no file: is a variable empty?" in err and "is not HOST:PORT" in err


def test_a_secret_of_the_environment_ends_where_one_in_a_file_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDED", "secret\n")
    assert Secret("env:PADDED").reveal() == "secret"
    monkeypatch.setenv("PADDED", "\n")
    with pytest.raises(ConfigError, match="PADDED is empty"):
        Secret("env:PADDED").reveal()


@pytest.mark.parametrize("name", ["~nobody-of-this-name/password", "a\0b"])
def test_a_secrets_file_that_can_be_none_is_told(name: str) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        Secret(f"file:{name}").reveal()


def test_a_user_without_a_home_may_use_every_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert main(["lab", "status"]) == 1
    assert "say where the lab lives with --directory" in capsys.readouterr().err
    assert main(["lab", "status", "--directory", os.devnull]) == 1
    assert "Not a directory" in capsys.readouterr().err
