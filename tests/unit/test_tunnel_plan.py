"""The plan and the configuration of a tunnel: one file says everything to both sides."""

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from barnabas.config.cluster import Cluster
from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import ConfigError
from barnabas.tunnel.commands import add_parsers, run
from barnabas.tunnel.keys import create
from barnabas.tunnel.plan import as_text, planned

EXAMPLE = Path(__file__).parents[2] / "examples" / "tunnel.yaml"


def configuration() -> SimpleNamespace:
    document = yaml.safe_load(EXAMPLE.read_text())
    clusters = {name: Cluster.model_validate(given) for name, given in document["clusters"].items()}
    tunnels = {name: Tunnel.model_validate(given) for name, given in document["tunnels"].items()}
    return SimpleNamespace(clusters=clusters, tunnels=tunnels)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parsers(parser.add_subparsers())
    return parser.parse_args(words)


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ORANGE_KEY", "ORANGE_SECRET", "GRAPE_KEY", "GRAPE_SECRET"):
        monkeypatch.setenv(name, "do-not-print")


def test_the_plan_opens_one_port_from_one_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parsed("plan", "-c", "FILE"), configuration()) == 0
    text = capsys.readouterr().out
    assert "allow TCP in  198.51.100.7 → 203.0.113.4:7443" in text
    assert "allow TCP out 198.51.100.7 → 203.0.113.4:7443" in text
    assert "do-not-print" not in text
    assert run(parsed("plan", "-c", "FILE", "--format", "json"), configuration()) == 0
    source, destination = json.loads(capsys.readouterr().out)["eu"]
    assert [o["target"] for o in source["openings"] if o["direction"] == "in"] == ["203.0.113.4:7443"]
    assert [o["target"] for o in destination["openings"]] == ["203.0.113.4:7443"]
    assert all(address.startswith("127.0.1.") for _, address in destination["names"])


def test_a_tunnel_without_an_origin_says_that_the_port_is_open_to_all() -> None:
    tunnel = Tunnel.model_validate({"cluster": "orange", "key": "k", "serve": {"address": "203.0.113.4:7443"}})
    text = as_text("eu", planned("eu", tunnel, [Address("b0.orange.test", 9092)]))
    assert "allow TCP in  any address → 203.0.113.4:7443" in text
    assert "give connect.from" in text


def test_hosts_prints_the_names_of_listed_brokers_without_asking(capsys: pytest.CaptureFixture[str]) -> None:
    known = configuration()
    tunnel = known.tunnels["eu"]
    listed = tunnel.serve.model_copy(update={"brokers": (Address("b0.orange.example", 9092),)})
    known.tunnels["eu"] = tunnel.model_copy(update={"serve": listed})
    assert run(parsed("hosts", "-c", "FILE", "--tunnel", "eu"), known) == 0
    assert "\tb0.orange.example\n" in capsys.readouterr().out


def test_a_tunnel_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match='no tunnel "us"; known are: eu'):
        run(parsed("plan", "-c", "FILE", "--tunnel", "us"), configuration())


def test_keygen_prints_the_path_and_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parsed("keygen", "--output", str(tmp_path / "key"), "--years", "3")) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'key'}\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"address": "203.0.113.4"}, "write host:port"),
        ({"address": "203.0.113.4:http"}, 'the port "http" is not a number from 1 to 65535'),
        ({"address": "a b:1"}, "is not a host name"),
        ({"brokers": []}, "no broker is listed"),
        ({"brokers": ["b0:0"]}, "is not a number from 1 to 65535"),
        ({"bröker": 1}, "Extra inputs"),
    ],
)
def test_a_mistake_in_the_configuration_is_told(change: dict[str, Any], message: str) -> None:
    given = {"cluster": "orange", "key": "k", "serve": {"address": "203.0.113.4:7443", **change}}
    with pytest.raises(ValidationError, match=message):
        Tunnel.model_validate(given)


def test_the_end_at_the_destination_is_open_to_this_machine_only() -> None:
    given = {"cluster": "o", "key": "k", "serve": {"address": "a:1"}, "connect": {"loopback": "10.0.0.1"}}
    with pytest.raises(ValidationError, match=r"10\.0\.0\.1 is not in 127\.0\.0\.0/8"):
        Tunnel.model_validate(given)


def test_an_address_of_version_6_stands_in_brackets() -> None:
    assert str(Address.parse("[2001:db8::1]:7443")) == "[2001:db8::1]:7443"
    with pytest.raises(ValueError, match="in brackets"):
        Address.parse("nonsense::here:7443")


def test_a_ca_file_that_is_no_pem_ends_serve_before_it_listens(tmp_path: Path) -> None:
    given, ca = configuration(), tmp_path / "ca.pem"
    ca.write_text("not a certificate")
    create(tmp_path / "key")
    given.clusters["orange"] = Cluster.model_validate({"bootstrap": "b0.example.com:9092", "tls": {"ca": str(ca)}})
    given.tunnels["eu"] = given.tunnels["eu"].model_copy(update={"key": tmp_path / "key"})
    with pytest.raises(ConfigError, match=r'"orange": the client does not take its settings: .*ssl\.ca\.location'):
        run(parsed("serve", "-c", "FILE"), given)
