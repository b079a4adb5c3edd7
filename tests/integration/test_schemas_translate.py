"""Promise: records leave with ids of the destination's registry and are otherwise what they were."""

import secrets
import uuid
from typing import Any

import httpx
import pyarrow as pa
import pytest

from barnabas.errors import Refused, Unavailable
from barnabas.lab.registry import Registry
from barnabas.schemas.resolver import Resolver
from barnabas.schemas.schema import Schema
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TranslationSettings
from barnabas.schemas.wire import prefixed, schema_id
from barnabas.worker.translate import Translated, Translator
from tests.registries import Registries, avro, proto, versions

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def registries(source_registry: Registry, destination_registry: Registry) -> Registries:
    return Registries.with_other_ids(source_registry, destination_registry)


@pytest.fixture
def topic() -> str:
    return f"orders-{secrets.token_hex(4)}"


def translator(settings: TranslationSettings) -> Translator:
    return Translator(settings, Resolver(settings))


def translate(
    settings: TranslationSettings, values: list[bytes | None], routes: Any = 0, headers: Any = None
) -> Translated:
    nothing = pa.nulls(len(values), pa.binary())
    return translator(settings).translate(
        routes=routes, keys=nothing, values=pa.array(values, pa.binary()), headers=headers
    )


def schema_at(registries: Registries, payload: bytes) -> Schema:
    number = schema_id(payload)
    assert number is not None
    found = registries.destination.schema(number)
    assert found is not None
    return found


def test_every_record_names_the_same_schema_at_the_destination(registries: Registries, topic: str) -> None:
    schemas = versions("Order", 5)
    ids = registries.fill(f"{topic}-value", schemas)
    values = [prefixed(ids[at], secrets.token_bytes(at)) for at in (4, 0, 3, 1, 2, 4)]
    done = translate(registries.translation(SchemaRules(), (topic, f"{topic}.copy")), [*values, None])
    assert done.bad == ()
    *copied, last = done.values.to_pylist()
    assert last is None
    assert [each[5:] for each in copied] == [each[5:] for each in values]
    assert all(before[:5] != after[:5] for before, after in zip(values, copied, strict=True))
    assert [schema_at(registries, each).canonical() for each in copied] == [
        schemas[at].canonical() for at in (4, 0, 3, 1, 2, 4)
    ]


def test_a_schema_under_several_subjects_lands_under_the_topics_own(registries: Registries, topic: str) -> None:
    shared = avro("Shared", "a", f"f{secrets.token_hex(4)}")
    first, second = f"{topic}.one", f"{topic}.two"
    [number] = registries.fill(f"{first}-value", [shared])
    assert registries.fill(f"{second}-value", [shared]) == [number]
    settings = registries.translation(SchemaRules(), (first, first), (second, f"{second}.copy"))
    done = translate(settings, [prefixed(number, b"x")], routes=[1])
    assert schema_at(registries, done.values[0].as_py()).canonical() == shared.canonical()
    assert registries.texts(f"{second}.copy-value") == [shared.canonical()]
    assert registries.texts(f"{first}-value") == []


@pytest.mark.parametrize("strategy", ["record-name", "topic-record-name"])
def test_subjects_named_after_records(registries: Registries, topic: str, strategy: Any) -> None:
    message = f"M{secrets.token_hex(4)}"
    schema = proto(f"message {message} {{ int32 a = 1; }}")
    record = f"shop.{message}"
    source = record if strategy == "record-name" else f"{topic}-{record}"
    destination = record if strategy == "record-name" else f"{topic}.copy-{record}"
    [number] = registries.fill(source, [schema])
    settings = registries.translation(SchemaRules(strategy=strategy), (topic, f"{topic}.copy"))
    done = translate(settings, [prefixed(number, b"\x00payload")])
    assert done.values[0].as_py()[5:] == b"\x00payload"  # Protobuf's message indexes stay
    assert registries.texts(destination) == [schema.canonical()]


def test_a_bad_record_is_told_apart_and_is_good_once_its_schema_is_there(registries: Registries, topic: str) -> None:
    [number] = registries.fill(f"{topic}-value", [avro("Order", "a")])
    [strange] = registries.fill(f"{topic}.other", [avro("Strange", topic.replace("-", "_"))])
    settings = registries.translation(SchemaRules(), (topic, topic), reask_seconds=0.0)
    ours = translator(settings)
    values = pa.array(
        [prefixed(number, b"good"), b"\x01plain", b"\x00\x00", prefixed(987_654, b"x"), prefixed(strange, b"y")]
    )
    done = ours.translate(routes=0, keys=pa.nulls(5, pa.binary()), values=values)
    reasons = done.reasons()
    assert list(reasons) == [1, 2, 3, 4]
    assert "magic byte" in reasons[1]
    assert "too short" in reasons[2]
    assert "schema id 987654 is unknown to the registry of" in reasons[3]
    assert f'no version of subject "{topic}-value"' in reasons[4]
    assert f'"{topic}.other" version 1' in reasons[4]
    assert done.values.to_pylist()[1:] == values.to_pylist()[1:]

    registries.fill(f"{topic}-value", [avro("Strange", topic.replace("-", "_"))])
    done = ours.translate(routes=0, keys=pa.nulls(1, pa.binary()), values=values.slice(4))
    assert done.bad == ()
    assert done.values[0].as_py() != values[4].as_py()


def test_the_id_of_a_deleted_version_is_bad_unless_only_ids_are_wanted(
    registries: Registries, source_registry: Registry, topic: str
) -> None:
    subject = f"{topic}-value"
    ids = registries.fill(subject, versions(f"Order_{secrets.token_hex(4)}", 2))
    httpx.delete(f"{source_registry.url}/subjects/{subject}/versions/1").raise_for_status()
    values: list[bytes | None] = [prefixed(ids[0], b"old")]
    strict = translate(registries.translation(SchemaRules(), (topic, topic)), values)
    assert "was the version deleted" in strict.reasons()[0]
    ids_only = translate(registries.translation(SchemaRules(mode="ids"), (topic, topic)), values)
    assert ids_only.bad == ()


def test_a_history_the_mode_forbids_stops_before_a_record_passes(registries: Registries, topic: str) -> None:
    [number] = registries.fill(f"{topic}-value", [avro("Order", "a")])
    registries.destination.register(f"{topic}-value", avro("Order", "surplus"))
    with pytest.raises(Refused, match="as mode strict wants it"):
        translate(registries.translation(SchemaRules(), (topic, topic)), [prefixed(number, b"x")])


def test_a_guid_in_a_header_stays_and_its_topics_schemas_are_there_first(registries: Registries, topic: str) -> None:
    """Apicurio cannot be asked by GUID, so the whole subject is copied."""
    registries.fill(f"{topic}-value", versions("Order", 2))
    header = {"key": "__value_schema_id", "value": b"\x01" + uuid.uuid4().bytes}
    headers = pa.array([[{"key": "trace", "value": b"1"}, header]], HEADERS)
    settings = registries.translation(SchemaRules(), (topic, f"{topic}.copy"))
    done = translate(settings, [b"no prefix"], headers=headers)
    assert done.bad == ()
    assert done.values.to_pylist() == [b"no prefix"]
    assert len(registries.texts(f"{topic}.copy-value")) == 2
    other = registries.translation(SchemaRules(), (f"{topic}.none", topic))
    assert "cannot be asked by GUID" in translate(other, [b"no prefix"], headers=headers).reasons()[0]


def test_while_a_registry_is_away_nothing_passes_and_its_breaker_opens(
    registries: Registries, lab_directory: Any, topic: str
) -> None:
    [number] = registries.fill(f"{topic}-value", [avro("Order", "a")])
    now = [0.0]
    with Registry(lab_directory, "outage") as registry:
        away = Registries(registries.settings[0], RegistrySettings(registry.name, registry.url))
        settings = away.translation(SchemaRules(), (topic, topic))
        resolver = Resolver(settings, clock=lambda: now[0])
        ours = Translator(settings, resolver)
        batch = {"routes": 0, "keys": pa.nulls(1, pa.binary()), "values": pa.array([prefixed(number, b"x")])}
        registry.kill()
        for _ in range(2):
            with pytest.raises(Unavailable, match="no connection: is it running"):
                ours.translate(**batch)
        assert resolver.breakers()["outage"]["versions"].state == "open"
        assert resolver.breakers()["outage"]["register"].state == "closed"
        assert {each.state for each in resolver.breakers()["source"].values()} == {"closed"}
        with pytest.raises(Unavailable, match="failed 5 times in a row"):
            ours.translate(**batch)
        with pytest.raises(Unavailable, match='registry of "outage"'):
            resolver.ping()

        registry.start()
        with pytest.raises(Unavailable, match="asked again in 10 s"):
            ours.translate(**batch)
        resolver.ping()
        now[0] = 10.0
        assert resolver.breakers()["outage"]["versions"].state == "half-open"
        done = ours.translate(**batch)
        assert schema_at(away, done.values[0].as_py()).canonical() == avro("Order", "a").canonical()
        assert resolver.breakers()["outage"]["versions"].state == "closed"
