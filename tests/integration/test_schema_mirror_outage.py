"""Promise: while a registry does not answer the mirror holds and says so; nothing untranslated passes, nothing is lost.

Both registries stand behind gates that demand credentials, which no output may show; the destination's speaks TLS with
a certificate of its own authority. To those who ask, a gate that is
shut is a registry that was killed; behind it the destination's registry keeps what it holds, as one with a disk would.
"""

import base64
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from prometheus_client.parser import text_string_to_metric_families

from barnabas.lab.certificates import Certificates, make_certificates
from barnabas.lab.ports import LOOPBACK, free_ports
from barnabas.schemas.schema import Schema
from tests.barnabas_runs import Run, ran
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until
from tests.registries import versions
from tests.registry_gate import Gate
from tests.schema_mirrors import Lands, canonical, texts, translated, value_of, written

pytest_plugins = ["tests.schema_lands"]

USER, PASSWORD, TOKEN = "carrier", "pass-5e1f0c-word", "token-77ab42-bearer"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, TOKEN, BASIC.split()[1])
PARTITIONS = 2
HOLD_SECONDS = 3.0  # how long the destination is watched standing still


class Load:
    """Orders written without a pause, with the version that is asked for, until it is over."""

    def __init__(self, lands: Lands, topic: str) -> None:
        self.version = 1
        self.written = 0
        self._lands, self._topic = lands, topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        client, _ = self._lands.clients()
        serializers = [AvroSerializer(client, schema.text) for schema in orders(self._lands)]
        while not self._over.is_set():
            version, batch = self.version, []
            for number in range(self.written, self.written + 40):
                order = {f"f{at}": number for at in range(version)}
                value = serializers[version - 1](order, value_of(self._topic))
                batch.append(Record(b"%d" % number, value, (), 1_700_000_000_000 + number, number % PARTITIONS))
            produce(self._lands.source.bootstrap, self._topic, batch)
            self.written += len(batch)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def orders(lands: Lands) -> list[Schema]:
    return versions(f"Order_{lands.mark}", 3)


@dataclass(frozen=True)
class Page:
    """The Prometheus page of a run."""

    port: int

    def values(self, name: str, **labels: str) -> list[float]:
        """The values of a metric whose labels have these values; none while there is no page."""
        try:
            text = httpx.get(f"http://{LOOPBACK}:{self.port}/metrics", timeout=10, trust_env=False).text
        except httpx.TransportError:
            return []
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return [each.value for each in samples if each.name == name and labels.items() <= each.labels.items()]

    def one(self, name: str, **labels: str) -> float:
        [value] = self.values(name, **labels) or [-1.0]
        return value


@dataclass(frozen=True)
class Guarded:
    """Both registries behind their gates, and a configuration that has the keys."""

    lands: Lands
    topic: str
    gates: tuple[Gate, Gate]
    page: Page
    file: Path
    certificates: Certificates

    def keys(self) -> tuple[dict[str, str], dict[str, str]]:
        """What opens each gate: a name and a password; a token and the authority of its certificate."""
        token = {"token": f"file:{self.file.parent / 'token'}", "ca": str(self.certificates.ca)}
        return {"username": "env:SR_USER", "password": "env:SR_PASSWORD"}, token

    def configuration(self, file: Path, access: tuple[dict[str, str], dict[str, str]]) -> Path:
        mirror = {"name": f"m-{self.topic}", "from": self.topic, "to": "{topic}.copy", "schemas": {}}
        blocks = tuple({"url": gate.url, **given} for gate, given in zip(self.gates, access, strict=True))
        return self.lands.configuration(
            file, [mirror], access=(blocks[0], blocks[1]), metrics={"prometheus": {"port": self.page.port}}
        )


@pytest.fixture
def guarded(lands: Lands, tmp_path: Path) -> Iterator[Guarded]:
    topic = lands.topic("orders")
    create_topic(lands.source.bootstrap, topic, PARTITIONS)
    create_topic(lands.destination.bootstrap, f"{topic}.copy", PARTITIONS)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with ExitStack() as stack:
        certificates = make_certificates(tmp_path / "tls", [LOOPBACK])
        one = stack.enter_context(Gate(lands.urls[0], BASIC))
        two = stack.enter_context(Gate(lands.urls[1], f"Bearer {TOKEN}", certificates.server))
        made = Guarded(lands, topic, (one, two), Page(free_ports(1)[0]), tmp_path / "c.yaml", certificates)
        made.configuration(made.file, made.keys())
        yield made


def test_a_mirror_holds_while_the_destinations_registry_is_gone_then_continues_and_is_equal(
    guarded: Guarded, tmp_path: Path
) -> None:
    lands, topic, page = guarded.lands, guarded.topic, guarded.page
    there = lands.destination.bootstrap, f"{topic}.copy"
    runs = [_ahead(guarded, tmp_path)]
    with Run(tmp_path, "-v", "run", "-c", guarded.file, SR_USER=USER, SR_PASSWORD=PASSWORD) as run:
        runs.append(run)
        with Load(lands, topic) as load:
            wait_until(lambda: written(*there) > 200 or run.ended, 120, "records to flow")
            guarded.gates[1].shut()
            load.version = 2  # the mirror must now ask a registry that is gone
            _wait(run, lambda: page.one("barnabas_state", state="waiting") == 1, "the mirror to hold")
            standing, lag = written(*there), page.one("barnabas_lag_records")
            labels = {"cluster": "destination", "state": "open"}
            _wait(run, lambda: 1.0 in page.values("barnabas_breaker", **labels), "an open breaker in the metrics")
            _wait(run, lambda: page.one("barnabas_lag_records") > max(lag, 0), "the lag to be seen growing")
            _stands_still(there, HOLD_SECONDS)
            assert written(*there) == standing, "a record passed without its registry"
            assert page.one("barnabas_breaker", cluster="source", operation="ping", state="closed") == 1
            guarded.gates[1].open()
            _wait(run, lambda: written(*there) > standing, "the mirror to continue")
            guarded.gates[1].registers = False
            load.version = 3
            registering = {**labels, "operation": "register"}
            _wait(run, lambda: page.one("barnabas_breaker", **registering) == 1, "its own breaker for registering")
            assert page.one("barnabas_breaker", **{**registering, "operation": "schema"}) == 0
            guarded.gates[1].registers, standing = True, written(*there)
            _wait(run, lambda: written(*there) > standing, "the mirror to continue once more")
        _wait(run, lambda: page.one("barnabas_lag_records") == 0 and _arrived(guarded) == load.written, "no lag")
        assert 1.0 not in page.values("barnabas_breaker", **labels)
        run.signal(signal.SIGTERM)
        assert run.wait() == 0, run.messages
    here, copy = read_all(lands.source.bootstrap, topic), read_all(*there)
    ids = translated(here, copy)
    assert len(ids) == 3 and not set(ids) & set(ids.values())
    read = AvroDeserializer(lands.clients()[1])
    for record in copy:
        order = read(record.value, value_of(there[1]))
        assert isinstance(order, dict) and set(order.values()) == {int(record.key or b"")}
    assert texts(lands.registries.destination.history(f"{topic}.copy-value")) == canonical(orders(lands))
    for each in (*runs, *_refused(guarded, tmp_path)):
        for secret in SECRETS:
            assert secret not in each.output + each.messages
    assert "no connection" in run.messages or "connection broke" in run.messages


def _wait(run: Run, predicate: Callable[[], bool], what: str) -> None:
    wait_until(lambda: run.ended or predicate(), 120, what)
    assert not run.ended, f"barnabas ended instead of {what}: {run.messages}"


def _arrived(guarded: Guarded) -> int:
    return len(read_all(guarded.lands.destination.bootstrap, f"{guarded.topic}.copy"))


def _stands_still(place: tuple[str, str], seconds: float) -> None:
    """The topic is looked at all this time and does not move."""
    before, until = written(*place), time.monotonic() + seconds
    while time.monotonic() < until:
        assert written(*place) == before


def _ahead(guarded: Guarded, directory: Path) -> Run:
    """`schemas plan` and `copy` before there is any record; what copy said."""
    lands = guarded.lands
    subject, becomes = f"{guarded.topic}-value", f"{guarded.topic}.copy-value"
    number = lands.registries.source.register(subject, orders(lands)[0])
    secrets = {"SR_USER": USER, "SR_PASSWORD": PASSWORD}
    code, plan = ran(directory, "schemas", "plan", "-c", guarded.file, "--format", "json", **secrets)
    [planned] = plan.answer()["mirrors"][0]["subjects"]
    assert (code, planned["source"], planned["destination"]) == (0, subject, becomes)
    assert (planned["there"], planned["missing"], planned["problem"]) == ([], [1], "")
    assert lands.registries.destination.history(becomes) == (), "a plan writes nothing"
    code, copy = ran(directory, "schemas", "copy", "-c", guarded.file, **secrets)
    [version] = lands.registries.destination.history(becomes)
    assert (code, version.id != number) == (0, True), copy.messages
    assert f"{subject} → {becomes}: version 1 has id {version.id}" in copy.output
    return copy


def _refused(guarded: Guarded, directory: Path) -> list[Run]:
    """Wrong and missing credentials of either registry, an authority nobody named: refused, and what was said."""
    right = guarded.keys()
    said = []
    wrong = {"source": ({}, right[1]), "destination": (right[0], right[1] | {"token": "env:SR_PASSWORD"})}
    for name, access in wrong.items():
        file = guarded.configuration(directory / f"{name}.yaml", access)
        code, run = ran(directory, "schemas", "plan", "-c", file, SR_USER=USER, SR_PASSWORD=PASSWORD)
        assert code == 1 and f'registry of "{name}"' in run.messages
        assert "401 'Unauthorized'" in run.messages and "does not accept these credentials" in run.messages
        said.append(run)
    file = guarded.configuration(directory / "no-ca.yaml", (right[0], {"token": right[1]["token"]}))
    code, unknown = ran(directory, "schemas", "plan", "-c", file, SR_USER=USER, SR_PASSWORD=PASSWORD)
    assert code == 1 and "certificate verify failed" in unknown.messages
    said.append(unknown)
    code, checked = ran(directory, "check", "-c", guarded.file, SR_USER=USER, SR_PASSWORD=PASSWORD)
    assert code == 0
    return [*said, checked]
