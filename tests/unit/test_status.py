"""`status` tells of a registry that does not answer, however few questions it asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.commands.status import registries
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TranslationSettings
from tests.fake_registry import Server


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    made.answers = [(200, {"compatibilityLevel": "NONE"})]
    yield made
    made.close()


def test_a_registry_that_is_down_is_shown_as_one_that_does_not_answer(server: Server) -> None:
    source, gone = RegistrySettings("orange", server.url), RegistrySettings("grape", "http://127.0.0.1:9")
    breakers, silent = registries(TranslationSettings("m", source, gone, SchemaRules(), ()))
    assert list(silent) == ["grape"] and "is it running" in silent["grape"]
    assert breakers["orange"]["ping"].state == breakers["grape"]["ping"].state == "closed"


def test_a_mirror_without_schemas_asks_no_registry() -> None:
    assert registries(None) == ({}, {})
