"""A registry that answers with anything at all: an error of ours each time, in bounded time and memory."""

import gzip
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.errors import BarnabasError, Refused
from barnabas.schemas.fields import LARGEST_ID
from barnabas.schemas.registry import LARGEST_ANSWER, RegistryClient
from barnabas.schemas.schema import TYPES, Schema, Version, proto_tokens
from barnabas.schemas.settings import RegistrySettings
from barnabas.schemas.subjects import Nameless, record_name
from tests.fake_registry import Server
from tests.unit.hostile_json import ODD, altered, texts

Ask = Callable[[RegistryClient], Any]
GOOD = {
    "id": 7,
    "version": 3,
    "subject": "orders-value",
    "schemaType": "JSON",
    "schema": '{"title": "Order"}',
    "references": [{"name": "a", "subject": "a-value", "version": 1}],
    "metadata": {"properties": {"owner": "me"}},
    "compatibilityLevel": "FULL",
}
ASKED: dict[str, tuple[Any, Ask]] = {
    "subjects": (["a", "b"], lambda client: client.subjects()),
    "schema": (GOOD, lambda client: client.schema(7)),
    "places": ([{"subject": "a", "version": 1}], lambda client: client.places(7)),
    "history": ([1, 2], lambda client: client.history("a")),
    "version": (GOOD, lambda client: client.version("a", 1)),
    "lookup": (GOOD, lambda client: client.lookup("a", Schema('"int"'))),
    "register": (GOOD, lambda client: client.register("a", Schema('"int"'))),
    "compatibility": (GOOD, lambda client: client.compatibility("a")),
}


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> RegistryClient:
    return RegistryClient(RegistrySettings("grape", server.url, attempts=1), pause=lambda _: None)


def is_sound(found: Any) -> bool:
    """What comes back has the types that the client promises, all the way down."""
    if isinstance(found, Version):
        return isinstance(found.subject, str) and is_sound((found.number, found.id)) and is_sound(found.schema)
    if isinstance(found, Schema):
        parts = [(each.name, each.subject, each.version) for each in found.references]
        assert isinstance(found.canonical(), str)
        return isinstance(found.text, str) and all(is_sound(part) for part in parts)
    if isinstance(found, tuple):
        return all(map(is_sound, found))
    return found is None or isinstance(found, str) or (type(found) is int and 0 <= found <= LARGEST_ID)


@pytest.mark.parametrize("asked", ASKED)
def test_any_answer_is_understood_or_refused(server: Server, client: RegistryClient, asked: str) -> None:
    good, ask = ASKED[asked]
    understood, refused = 0, list[int]()
    for text in [*altered(good, 60, seed=len(asked)), *texts(20, seed=len(asked))]:
        server.answers = [(200, text.encode(errors="surrogatepass"))]
        try:
            assert is_sound(ask(client)), text[:200]
            understood += 1
        except BarnabasError as error:
            refused.append(len(str(error)))
    assert understood
    assert len(refused) > 20
    assert max(refused) < 1000


@pytest.mark.parametrize("status", [400, 404, 409, 422, 500])
def test_any_error_answer_is_an_error_of_ours_of_bounded_length(
    server: Server, client: RegistryClient, status: int
) -> None:
    told = list[str]()
    for text in altered({"error_code": 1, "message": "a"}, 40, seed=status):
        server.answers = [(status, text.encode(errors="surrogatepass"))]
        try:
            assert client.schema(7) is None
        except BarnabasError as error:
            told.append(str(error))
        client.settle()
    assert len(told) > 20
    assert max(map(len, told)) < 1500


def test_a_compressed_answer_is_neither_asked_for_nor_read(server: Server, client: RegistryClient) -> None:
    server.answers = [(200, gzip.compress(b'["' + b"a" * (100 << 20) + b'"]', 1))]
    server.headers = {"Content-Encoding": "gzip"}
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="its answer is encoded as 'gzip' though `identity` was asked for"):
            client.subjects()
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert server.encodings == ["identity"]


def test_an_answer_that_is_too_large_is_not_read_to_its_end(server: Server, client: RegistryClient) -> None:
    server.answers = [(200, b" " * LARGEST_ANSWER + b"[]")]
    with pytest.raises(Refused, match=re.escape(f"more than {LARGEST_ANSWER:,} bytes: is this a registry's address?")):
        client.subjects()
    server.answers = [(200, b" " * (LARGEST_ANSWER - 2) + b"[]")]
    assert client.subjects() == ()


def test_any_schema_has_a_canonical_text_and_a_name_or_none() -> None:
    nameless = list[str]()
    for text in [*ODD, *texts(100, seed=3)]:
        for kind in TYPES:
            schema = Schema(text, kind)
            assert isinstance(schema.canonical(), str)
            try:
                assert isinstance(record_name(schema), str)
            except Nameless as error:
                nameless.append(str(error))
    assert len(nameless) > 20
    assert max(map(len, nameless)) < 500


@pytest.mark.parametrize("text", ['"\\' * 500_000, "/*" * 500_000, "'\\'" * 300_000, '"\\"' * 300_000 + "\\"])
def test_a_proto_file_whose_strings_do_not_end_costs_no_more_time_than_another(text: str) -> None:
    started = time.monotonic()
    assert sum(1 for _ in proto_tokens(text)) <= len(text)
    assert time.monotonic() - started < 10
