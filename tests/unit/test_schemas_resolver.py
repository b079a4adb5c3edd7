"""GUIDs in headers, where both registries can be asked by GUID, as Confluent's can and Apicurio's cannot."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from barnabas.errors import Refused, Unavailable
from barnabas.schemas.resolver import Resolver, Unresolved
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TopicRoute, TranslationSettings
from tests.fake_registry import Server

GUID = "00000000-0000-0000-0000-000000000007"
ABSENT = (404, {"error_code": 40403, "message": "Schema not found"})
INT = {"schema": '"int"', "guid": GUID}


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    both = Server(), Server()
    for server in both:
        server.answers = [ABSENT]
    yield both
    for server in both:
        server.close()


@pytest.fixture
def resolver(servers: tuple[Server, Server]) -> Iterator[Resolver]:
    source, destination = (
        RegistrySettings(name, server.url) for name, server in zip(("orange", "grape"), servers, strict=True)
    )
    rules = SchemaRules(mode="ids", compatibility="NONE")
    resolver = Resolver(TranslationSettings("m", source, destination, rules, (TopicRoute(0, "orders", "orders.copy"),)))
    yield resolver
    resolver.close()


def test_a_guid_that_the_source_does_not_know_is_unresolved(resolver: Resolver) -> None:
    found = resolver.bring_guid(0, "value", GUID)
    assert isinstance(found, Unresolved)
    assert not found.known
    assert found.reason.startswith(f'schema GUID {GUID} is unknown to the registry of "orange"')


def test_a_guid_is_ready_when_the_destination_shows_it_too_and_is_not_asked_for_again(
    resolver: Resolver, servers: tuple[Server, Server]
) -> None:
    source, destination = servers
    source.pages[f"GET /api/schemas/guids/{GUID}"] = (200, INT)
    destination.pages["POST /api/subjects/orders.copy-value"] = (200, {"version": 1, "id": 9, **INT})
    destination.pages[f"GET /api/schemas/guids/{GUID}"] = (200, INT)
    assert resolver.bring_guid(0, "value", GUID) is None
    asked = len(source.asked) + len(destination.asked)
    assert resolver.bring_guid(0, "value", GUID) is None
    assert len(source.asked) + len(destination.asked) == asked


def test_a_schema_that_has_another_guid_at_the_destination_is_unresolved(
    resolver: Resolver, servers: tuple[Server, Server]
) -> None:
    source, destination = servers
    source.pages[f"GET /api/schemas/guids/{GUID}"] = (200, INT)
    destination.pages["POST /api/subjects/orders.copy-value"] = (200, {"version": 1, "id": 9, **INT})
    found = resolver.bring_guid(0, "value", GUID)
    assert isinstance(found, Unresolved)
    assert found.known
    assert 'stands in subject "orders.copy-value"' in found.reason
    assert "with id 9, but under another GUID" in found.reason


def test_a_destination_that_cannot_be_asked_by_guid_is_trusted(
    resolver: Resolver, servers: tuple[Server, Server]
) -> None:
    source, destination = servers
    source.pages[f"GET /api/schemas/guids/{GUID}"] = (200, INT)
    destination.pages["POST /api/subjects/orders.copy-value"] = (200, {"version": 1, "id": 9, **INT})
    destination.pages[f"GET /api/schemas/guids/{GUID}"] = (404, b"")
    assert resolver.bring_guid(0, "value", GUID) is None


def test_a_schema_that_is_registered_but_not_shown_is_asked_for_again_later(
    resolver: Resolver, servers: tuple[Server, Server]
) -> None:
    source, destination = servers
    source.pages["GET /api/schemas/ids/7"] = (200, INT)
    destination.pages["GET /api/config/orders.copy-value?defaultToGlobal=true"] = (200, {"compatibilityLevel": "NONE"})
    destination.pages["POST /api/subjects/orders.copy-value/versions"] = (200, {"id": 9})
    with pytest.raises(Unavailable, match="does not show the schema just registered with id 9"):
        resolver.destination_id(0, "value", 7)


def test_what_leaves_for_the_driver_has_a_name_of_the_error_tree(
    resolver: Resolver, servers: tuple[Server, Server]
) -> None:
    servers[0].answers = [(404, b"")]
    with pytest.raises(Refused, match="is the registry's url complete") as error:
        resolver.destination_id(0, "value", 7)
    assert type(error.value) is Refused


def test_a_route_that_is_not_in_the_plan_is_refused(resolver: Resolver, servers: tuple[Server, Server]) -> None:
    servers[0].pages["GET /api/schemas/ids/7"] = (200, INT)
    with pytest.raises(Refused, match="route 5, which is not in the plan"):
        resolver.destination_id(5, "value", 7)


@pytest.mark.parametrize("number", [2**31, 2**32 - 1])
def test_an_id_that_no_registry_gives_is_unknown_without_a_question(
    resolver: Resolver, servers: tuple[Server, Server], number: int
) -> None:
    found = resolver.destination_id(0, "value", number)
    assert isinstance(found, Unresolved) and not found.known
    assert found.reason.startswith(f'schema id {number} is unknown to the registry of "orange"')
    assert servers[0].asked == []


def test_a_schema_without_a_name_is_unresolved_where_subjects_are_named_after_records(
    resolver: Resolver, servers: tuple[Server, Server]
) -> None:
    settings = replace(resolver.settings, rules=SchemaRules(mode="ids", compatibility="NONE", strategy="record-name"))
    nameless = {"schema": '{"type":"object"}', "schemaType": "JSON"}
    servers[0].pages["GET /api/schemas/ids/7"] = (200, nameless)
    servers[0].pages[f"GET /api/schemas/guids/{GUID}"] = (200, nameless)
    with closing(Resolver(settings)) as by_record:
        for found in (by_record.destination_id(0, "value", 7), by_record.bring_guid(0, "value", GUID)):
            assert isinstance(found, Unresolved) and found.known
            assert "has no record name" in found.reason


def test_failures_of_workers_open_a_breaker_that_outlives_them(servers: tuple[Server, Server]) -> None:
    now = [0.0]
    source, destination = (RegistrySettings(n, s.url) for n, s in zip(("orange", "grape"), servers, strict=True))
    resolver = Resolver(TranslationSettings("m", source, destination, SchemaRules(), ()), clock=lambda: now[0])
    failure = Unavailable("500")
    failure.details = {"registry": "grape", "operation": "register", "failures": 3}

    def state() -> str:
        return resolver.breakers()["grape"]["register"].state

    resolver.count(failure)
    resolver.hold()  # three are not too many yet
    resolver.count(failure)
    assert state() == "open"
    with pytest.raises(Unavailable, match="register: failed 6 times in a row, last with: 500"):
        resolver.hold()
    now[0] += destination.breaker_seconds
    resolver.hold()
    assert state() == "half-open"
    resolver.count(failure)
    assert state() == "open", "the one that tried it failed"
    assert {each.state for each in resolver.breakers()["orange"].values()} == {"closed"}
    now[0] += destination.breaker_seconds
    resolver.hold()
    resolver.settle()
    assert state() == "closed"
    resolver.close()
