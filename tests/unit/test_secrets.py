"""Secrets are references: read when they are used, shown never."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from barnabas.cli import main
from barnabas.config.cluster import Cluster
from barnabas.config.load import load
from barnabas.config.secret import Secret, Text
from barnabas.errors import ConfigError, Unavailable
from barnabas.kafka.settings import connection, java_properties
from tests.unit.configurations import CANARY, GOOD


@pytest.fixture(autouse=True)
def canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_NAME", CANARY)
    monkeypatch.setenv("CANARY_SECRET", CANARY)


class Holder(BaseModel):
    secret: Secret
    name: Text


def test_a_secret_is_read_from_the_environment_or_a_file_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    from_file, from_environment = Secret(f"file:{file}"), Secret("env:CANARY_SECRET")
    assert (from_file.reveal(), from_environment.reveal()) == ("first", CANARY)
    file.write_text("  rotated \r\n")
    monkeypatch.setenv("CANARY_SECRET", " too ")
    assert (from_file.reveal(), from_environment.reveal()) == ("  rotated ", " too ")


def test_a_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "password").write_text("at home")
    assert Secret("file:~/password").reveal() == "at home"


def test_a_secret_that_went_away_is_told_by_its_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CANARY_SECRET")
    with pytest.raises(ConfigError, match="environment variable CANARY_SECRET is not set"):
        Secret("env:CANARY_SECRET").reveal()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, reason in {"nowhere": "No such file", "": "Is a directory", "binary": "not UTF-8 text"}.items():
        with pytest.raises(Unavailable, match=f"secret file .*{name} cannot be read: {reason}"):
            Secret(f"file:{tmp_path / name}").reveal()


def test_an_empty_secret_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SECRET", "")
    with pytest.raises(ConfigError, match="environment variable CANARY_SECRET is empty"):
        Secret("env:CANARY_SECRET").reveal()
    (tmp_path / "half-written").write_text("\n")
    with pytest.raises(Unavailable, match="half-written is empty"):
        Secret(f"file:{tmp_path}/half-written").reveal()


def test_no_text_of_a_secret_shows_its_value() -> None:
    holder = Holder.model_validate({"secret": "env:CANARY_SECRET", "name": "env:CANARY_NAME"})
    shown = [repr(holder), str(holder), holder.model_dump_json(), str(holder.model_dump()), f"{holder.secret}"]
    assert not [text for text in shown if CANARY in text]
    assert all("env:CANARY_SECRET" in text for text in shown)
    assert CANARY.encode() not in pickle.dumps(holder)


def test_a_user_name_may_be_written_as_itself_and_a_secret_may_not() -> None:
    assert Holder.model_validate({"secret": "env:CANARY_SECRET", "name": "me"}).name.reveal() == "me"
    for literal in (CANARY, f"ENV:{CANARY}", f"env {CANARY}", f"vault:{CANARY}", "", 7, None):
        with pytest.raises(ValueError, match="never as itself") as refused:
            Holder.model_validate({"secret": literal, "name": "me"})
        assert "env:NAME or file:PATH" in str(refused.value)


def test_secrets_are_equal_when_their_references_are() -> None:
    assert Secret("env:A") == Secret("env:A") != Secret("env:B")
    assert len({Secret("env:A"), Secret("env:A"), Secret("file:A")}) == 2


def test_a_loaded_configuration_shows_no_secret_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "barnabas.yaml"
    file.write_text(GOOD)
    configuration = load(file)
    assert CANARY not in repr(configuration) + configuration.model_dump_json()
    assert main(["check", "-c", str(file)]) == 0
    assert main(["check", "-c", str(file), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert CANARY not in out + err and out.count("env:CANARY_SECRET") == 2


def test_check_prints_a_configuration_that_can_be_parsed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "barnabas.yaml"
    file.write_text(GOOD)
    assert main(["check", "-c", str(file)]) == 0
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    assert main(["check", "-c", str(file), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == as_yaml
    assert as_yaml["mirrors"][0]["from"]["names"] == ["orders"]


PLAIN = {"mechanism": "PLAIN", "username": "me", "password": "env:CANARY_SECRET"}
OAUTH = {
    "mechanism": "OAUTHBEARER",
    "token_url": "https://idp/token",
    "client_id": "me",
    "client_secret": "env:CANARY_SECRET",
    "scope": "kafka",
}


@pytest.mark.parametrize(
    "sasl", [PLAIN, PLAIN | {"mechanism": "SCRAM-SHA-512"}, OAUTH], ids=["plain", "scram", "oauth"]
)
def test_both_clients_get_the_secret_and_a_connection_does_not_show_it(sasl: dict[str, str]) -> None:
    cluster = Cluster.model_validate({"bootstrap": "b0:9092", "sasl": sasl, "tls": True})
    reached = connection("orange", cluster)
    java = java_properties(cluster)
    assert CANARY in reached.properties.values() and CANARY in java["sasl.jaas.config"]
    assert CANARY not in repr(reached) + str(reached) + repr(cluster)
    assert reached.properties["security.protocol"] == java["security.protocol"] == "SASL_SSL"
    assert reached.properties["sasl.mechanism"] == java["sasl.mechanism"] == sasl["mechanism"]


def test_a_password_cannot_break_out_of_the_jaas_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_SECRET", 'a"b\\c; d')
    java = java_properties(Cluster.model_validate({"bootstrap": "b0:9092", "sasl": PLAIN}))
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    assert java["sasl.jaas.config"] == f'{module} required username="me" password="a\\"b\\\\c; d";'
