"""Schemas are equal where they mean the same; ids and GUIDs are read where they stand; settings survive a worker."""

import pickle
from dataclasses import replace

import pytest
from pydantic import ValidationError

from barnabas.config.cluster import Registry
from barnabas.config.schemas import Schemas, registry_settings
from barnabas.errors import Refused
from barnabas.schemas.schema import Reference, Schema, from_answer
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TopicRoute, TranslationSettings
from barnabas.schemas.wire import guid, prefixed, schema_id

PROTO = 'syntax = "proto3";\nmessage A {\n  int32 a = 1; // one\n}\n'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Schema('{"type":"record", "name":"A"}'), Schema('{"name":"A","type":"record"}')),
        (Schema('"int"'), Schema(' "int" ')),
        (Schema(PROTO, "PROTOBUF"), Schema('syntax="proto3";/* x */message A{int32 a=1;}', "PROTOBUF")),
        (
            Schema('"A"', references=(Reference("x", "x", 1), Reference("y", "y", 1))),
            Schema('"A"', references=(Reference("y", "y", 1), Reference("x", "x", 1))),
        ),
    ],
)
def test_formatting_makes_no_other_schema(one: Schema, other: Schema) -> None:
    assert one.canonical() == other.canonical()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Schema('{"fields":["a","b"]}'), Schema('{"fields":["b","a"]}')),
        (Schema('{"title":"A"}', "JSON"), Schema('{"title":"A"}', "AVRO")),
        (Schema('"A"', references=(Reference("x", "x", 1),)), Schema('"A"', references=(Reference("x", "x", 2),))),
        (Schema(PROTO, "PROTOBUF"), Schema(PROTO.replace("= 1", "= 2"), "PROTOBUF")),
        (Schema('option a = "// b";', "PROTOBUF"), Schema('option a = "// c";', "PROTOBUF")),
        (Schema('"A"', contract='{"metadata": 1}'), Schema('"A"')),
    ],
)
def test_another_meaning_is_another_schema(one: Schema, other: Schema) -> None:
    assert one.canonical() != other.canonical()


def test_an_answer_becomes_a_schema_and_an_unknown_type_is_refused() -> None:
    answer = {"schema": "x", "schemaType": "JSON", "references": [{"name": "n", "subject": "s", "version": 3}]}
    assert from_answer(answer) == Schema("x", "JSON", (Reference("n", "s", 3),))
    assert from_answer({"schema": '"int"', "references": None, "metadata": None}) == Schema('"int"')
    ruled = from_answer({"schema": "x", "ruleSet": {"domainRules": []}})
    assert ruled.body()["ruleSet"] == {"domainRules": []}
    with pytest.raises(Refused, match="schema type XML is none of AVRO, JSON, PROTOBUF"):
        from_answer({"schema": "x", "schemaType": "XML"})


def test_the_wire_format() -> None:
    assert prefixed(0x01020304, b"rest") == b"\x00\x01\x02\x03\x04rest"
    assert schema_id(b"\x00\x01\x02\x03\x04rest") == 0x01020304
    assert schema_id(b"\x00\x00\x00\x00\x07") == 7
    assert schema_id(b"\x00\x00\x00\x07") is None
    assert schema_id(b"\x01\x00\x00\x00\x07") is None
    raw = bytes(range(16))
    assert guid(b"\x01" + raw) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert guid(b"\x00" + raw) is None
    assert guid(b"\x01" + raw[:-1]) is None


def test_settings_hide_secrets_and_do_not_leave_the_process() -> None:
    registry = RegistrySettings("grape", "https://u:hidden@h/p?q=hidden", username="hidden", password="hidden")
    settings = TranslationSettings("m", registry, registry, SchemaRules(), (TopicRoute(3, "a", "b"),))
    with pytest.raises(TypeError, match='registry of "grape" hold secrets and do not leave this process'):
        pickle.dumps(settings)
    assert hash(settings) == hash(replace(settings))
    assert "hidden" not in repr(settings)
    assert registry.address == "https://h/p"


def test_the_configurations_defaults_are_the_workers_defaults() -> None:
    assert Schemas().rules("stop") == SchemaRules()


def test_a_schemas_block_becomes_rules() -> None:
    block = {"value": "auto", "key": "registry", "mode": "ids", "subjects": {"fixed": "all"}, "compatibility": "NONE"}
    assert Schemas.model_validate(block).rules("quarantine") == SchemaRules(
        key="registry",
        value="auto",
        mode="ids",
        strategy="fixed",
        subject="all",
        compatibility="NONE",
        on_bad="quarantine",
    )


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"subjects": {"fixed": "all"}}, "it needs `mode: ids`, not strict"),
        ({"subjects": "fixed"}, "topic-record-name"),
        ({"compatibility": "backward"}, "BACKWARD"),
        ({"valeu": "auto"}, "valeu"),
        ({"value": "avro"}, "registry"),
    ],
)
def test_a_wrong_schemas_block_is_refused(block: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as error:
        Schemas.model_validate(block)
    assert words in str(error.value)


def test_a_registry_block_becomes_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SR_KEY", "me")
    monkeypatch.setenv("SR_SECRET", "hidden")
    block = {"url": "http://h:8081/", "username": "env:SR_KEY", "password": "env:SR_SECRET"}
    settings = registry_settings("grape", Registry.model_validate(block))
    assert settings == RegistrySettings("grape", "http://h:8081", username="me", password="hidden")
