"""The client against a server that misbehaves: retries, time limits, and errors that say what they mean."""

import base64
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from barnabas.errors import BarnabasError, Refused, Unavailable
from barnabas.schemas.answers import NoSuchPath, meaning_of_exception, meaning_of_status
from barnabas.schemas.registry import RegistryClient
from barnabas.schemas.schema import Reference, Schema
from barnabas.schemas.settings import RegistrySettings
from tests.fake_registry import Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def client(server: Server, pauses: list[float]) -> RegistryClient:
    return RegistryClient(RegistrySettings("grape", server.url), pause=pauses.append)


def test_an_answer_that_comes_at_the_third_attempt_is_taken(
    server: Server, client: RegistryClient, pauses: list[float]
) -> None:
    server.answers = [(503, {"error_code": 50003, "message": "no leader"}), (429, b""), (200, {"id": 7})]
    assert client.register("orders-value", Schema('"int"')) == 7
    assert len(server.asked) == 3
    assert 0.2 <= pauses[0] <= 0.4 <= pauses[1] <= 0.8


def test_attempts_are_bounded_and_the_last_answer_is_told(server: Server, client: RegistryClient) -> None:
    server.answers = [(500, {"error_code": 50001, "message": "store is full"})]
    with pytest.raises(Unavailable) as error:
        client.schema(7)
    assert len(server.asked) == 3
    assert str(error.value) == (
        f"registry of \"grape\" ({server.url}): GET /api/schemas/ids/7: answered 500 'store is full': it failed itself"
    )


def test_after_five_failures_in_a_row_an_operation_is_not_asked_but_others_are(
    server: Server, client: RegistryClient
) -> None:
    server.answers = [(500, {})]
    for _ in range(3):
        with pytest.raises(Unavailable):
            client.schema(7)
    assert len(server.asked) == 5
    assert client.breakers()["schema"].state == "open"
    server.answers = [(200, ["a"])]
    assert client.subjects() == ("a",)
    with pytest.raises(Unavailable, match="failed 5 times in a row"):
        client.schema(7)
    assert client.breakers()["subjects"].state == "closed"


@pytest.mark.parametrize("code", [40401, 40402, 40403])
def test_absent_is_an_answer_and_no_failure(server: Server, client: RegistryClient, code: int) -> None:
    server.answers = [(404, {"error_code": code, "message": "not found"})]
    for _ in range(6):
        assert client.schema(7) is None
    assert client.history("orders-value") == ()
    assert client.lookup("orders-value", Schema('"int"')) is None
    assert client.places(7) == ()
    assert client.breakers()["schema"].failures == 0


@pytest.mark.parametrize("body", [b"", b"<html>", {"error_code": 404, "message": "HTTP 404"}, {"status": 404}])
def test_a_wrong_address_is_never_taken_for_a_schema_that_is_absent(
    server: Server, client: RegistryClient, body: Any
) -> None:
    server.answers = [(404, body)]
    with pytest.raises(NoSuchPath, match="is the registry's url complete"):
        client.schema(7)
    with pytest.raises(NoSuchPath):
        client.schema_of_guid("0-0")
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "may not do this"), (409, "set compatibility: NONE"), (422, "does not accept")],
)
def test_refusals_are_not_repeated_and_carry_the_registrys_own_words(
    server: Server, client: RegistryClient, status: int, words: str
) -> None:
    server.answers = [(status, {"error_code": status, "message": "in its own words"})]
    with pytest.raises(Refused, match=rf"answered {status} 'in its own words': .*{words}"):
        client.register("orders-value", Schema('"int"'))
    assert len(server.asked) == 1


def test_credentials_that_are_not_accepted_may_be_rotating_and_are_tried_again(
    server: Server, client: RegistryClient
) -> None:
    server.answers = [(401, {"message": "in its own words"})]
    with pytest.raises(Unavailable, match="answered 401 'in its own words': it does not accept these credentials"):
        client.subjects()
    server.answers = [(200, [])]
    assert client.subjects() == ()


def test_a_page_that_is_no_json_is_no_registry(server: Server, client: RegistryClient) -> None:
    server.answers = [(200, b"<html>welcome")]
    with pytest.raises(Refused, match="is this a registry's address"):
        client.subjects()


@pytest.mark.parametrize("number", [None, -1, 2**31, "7"])
def test_an_id_that_does_not_fit_a_record_is_refused(server: Server, client: RegistryClient, number: Any) -> None:
    server.answers = [(200, {"id": number})]
    with pytest.raises(Refused, match="which no registry says"):
        client.register("orders-value", Schema('"int"'))


@pytest.mark.parametrize("number", [0, 2**31 - 1])
def test_the_smallest_and_the_largest_id_are_taken(server: Server, client: RegistryClient, number: int) -> None:
    server.answers = [(200, {"id": number})]
    assert client.register("orders-value", Schema('"int"')) == number


@pytest.mark.parametrize("answer", [[], {}, {"id": 1}, "text", 7, None])
def test_an_answer_of_another_shape_is_refused(server: Server, client: RegistryClient, answer: Any) -> None:
    server.answers = [(200, answer)]
    questions: list[Callable[[], object]] = [
        partial(client.schema, 7),
        partial(client.schema_of_guid, "0-0"),
        partial(client.compatibility, "orders-value"),
        partial(client.version, "orders-value", 1),
        partial(client.lookup, "orders-value", Schema('"int"')),
    ]
    for ask in questions:
        with pytest.raises(Refused, match="is this a registry's address"):
            ask()


def test_a_registry_that_drips_is_cut_off(server: Server) -> None:
    server.answers, server.drip = [(200, b"[" + b" " * 1000 + b"]")], 0.02
    client = RegistryClient(
        RegistrySettings("grape", server.url, connect_seconds=0.1, answer_seconds=0.1, attempts=1),
    )
    started = time.monotonic()
    with pytest.raises(Unavailable, match="no answer in time"):
        client.subjects()
    assert time.monotonic() - started < 2


def test_nobody_there_is_unavailable(pauses: list[float]) -> None:
    client = RegistryClient(RegistrySettings("grape", "http://127.0.0.1:9/api"), pause=pauses.append)
    with pytest.raises(Unavailable, match="no connection: is it running"):
        client.subjects()
    assert len(pauses) == 2


def test_what_is_sent_to_register(server: Server, client: RegistryClient) -> None:
    server.answers = [(200, {"id": 1})]
    client.register("a/b.proto", Schema("syntax", "PROTOBUF", (Reference("c", "d", 2),), '{"metadata": {"x": 1}}'))
    client.register("plain", Schema('"int"'))
    assert [(path, body) for _, path, body, _ in server.asked] == [
        (
            "/api/subjects/a%2Fb.proto/versions",
            {
                "schema": "syntax",
                "schemaType": "PROTOBUF",
                "references": [{"name": "c", "subject": "d", "version": 2}],
                "metadata": {"x": 1},
            },
        ),
        ("/api/subjects/plain/versions", {"schema": '"int"'}),
    ]


def test_the_level_in_force_is_the_subjects_or_else_the_registrys(server: Server, client: RegistryClient) -> None:
    server.answers = [(404, {"error_code": 40408, "message": "none"}), (200, {"compatibilityLevel": "FULL"})]
    assert client.compatibility("orders-value") == "FULL"
    assert [path for _, path, *_ in server.asked] == ["/api/config/orders-value?defaultToGlobal=true", "/api/config"]


def test_credentials_are_sent_and_never_shown(server: Server) -> None:
    secret = RegistrySettings("grape", server.url.replace("//", "//who:hidden@"), "user", "hidden", attempts=1)
    server.answers = [(401, {"message": "no"})]
    client = RegistryClient(secret)
    with pytest.raises(Unavailable) as error:
        client.subjects()
    assert server.asked[0][3] == "Basic " + base64.b64encode(b"user:hidden").decode()
    for shown in (repr(secret), str(secret), str(error.value), f"{[secret]}"):
        assert "hidden" not in shown
    server.answers = [(200, [])]
    RegistryClient(RegistrySettings("grape", server.url, token="hidden-token")).subjects()
    assert server.asked[-1][3] == "Bearer hidden-token"
    RegistryClient(RegistrySettings("grape", server.url, token="hidden-token \n")).subjects()
    assert server.asked[-1][3] == "Bearer hidden-token"


@pytest.mark.parametrize("token", ["hid\nden", "hid\u00e9den", " \n", "hid\x00den"])
def test_a_token_that_no_header_takes_is_refused_and_not_shown(server: Server, token: str) -> None:
    with pytest.raises(Refused, match=r'registry of "grape".*its token is empty or has characters') as said:
        RegistryClient(RegistrySettings("grape", server.url, token=token))
    assert "hid" not in str(said.value)


def test_what_the_client_says_of_a_header_is_not_shown(server: Server) -> None:
    client = RegistryClient(RegistrySettings("grape", server.url, attempts=1))
    client._http.headers["Authorization"] = "Bearer hidden\n"
    with pytest.raises(Unavailable, match="LocalProtocolError") as said:
        client.subjects()
    assert "hidden" not in "".join(traceback.format_exception(said.value))


def test_a_missing_ca_file_is_named() -> None:
    with pytest.raises(Refused, match=r"cannot load /nowhere/ca.pem: .*are these PEM files there"):
        RegistryClient(RegistrySettings("grape", "https://x", ca="/nowhere/ca.pem"))


def _descendants(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _descendants(each)


def test_every_error_of_the_http_library_has_a_meaning() -> None:
    make: Callable[[type[Exception]], Exception] = lambda kind: kind.__new__(kind)  # noqa: E731
    for kind in (*_descendants(httpx.RequestError), httpx.InvalidURL):
        error, meaning = meaning_of_exception(make(kind))
        assert issubclass(error, BarnabasError)
        assert meaning
    assert meaning_of_exception(httpx.ReadTimeout(""))[0] is Unavailable
    assert meaning_of_exception(httpx.UnsupportedProtocol(""))[0] is Refused


def test_every_status_has_a_meaning() -> None:
    assert {status for status in range(300, 600) if meaning_of_status(status)[0] is Unavailable} == {
        401,
        408,
        423,
        425,
        429,
        *range(500, 600),
    }
