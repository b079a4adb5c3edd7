"""A client of one schema registry, in the API that Confluent's and Apicurio's (/apis/ccompat/v7) share.

Why not the client that comes with confluent-kafka: its `get_compatibility` cannot fall back to the global
level; it answers `register` and ids from a cache without end, so that a registry which lost a schema, or a
history that somebody changed, is never seen; it has neither a breaker nor a limit on a whole answer; and it
brings four more packages. What is needed here is a dozen requests on httpx.

Every request has a time limit, is tried a bounded number of times with jitter where trying again may help
(every request here can be repeated: registering is idempotent), and passes a breaker of its operation.
"""

import random
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx

from barnabas.errors import Refused, Unavailable
from barnabas.schemas import fields
from barnabas.schemas.answers import Absent, answered, meaning_of_exception
from barnabas.schemas.breaker import Breaker, BreakerState, Clock
from barnabas.schemas.schema import Schema, Version, from_answer
from barnabas.schemas.settings import RegistrySettings

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 2.0
LARGEST_ANSWER: Final = 16 * 1024 * 1024  # the names of 200,000 subjects; no schema is as large
T = TypeVar("T")
OPERATIONS: Final = ("compatibility", "lookup", "ping", "register", "schema", "subjects", "versions")


class RegistryClient:
    """Asks one registry. Thread-safe. Make it in the process that uses it: it holds connections."""

    def __init__(
        self,
        settings: RegistrySettings,
        *,
        clock: Clock = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._pause = pause
        self._http = httpx.Client(
            base_url=settings.address.rstrip("/") + "/",
            auth=_credentials(settings),
            headers={"Accept": f"{CONTENT_TYPE}, application/json", "Accept-Encoding": "identity"} | _bearer(settings),
            verify=_tls(settings),
            timeout=httpx.Timeout(settings.answer_seconds, connect=settings.connect_seconds),
        )
        self._breakers = {
            operation: Breaker(
                f"{self.title}: {operation}", settings.breaker_failures, settings.breaker_seconds, self._clock
            )
            for operation in OPERATIONS
        }

    @property
    def title(self) -> str:
        """How error sentences call this registry."""
        return f'registry of "{self.settings.name}" ({self.settings.address})'

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    def breakers(self) -> dict[str, BreakerState]:
        """The state of each operation's breaker, for metrics and `status`."""
        return {operation: breaker.snapshot() for operation, breaker in self._breakers.items()}

    def hold(self) -> None:
        """Raises `Unavailable` while a breaker is open."""
        for breaker in self._breakers.values():
            breaker.refuse_open()

    def count(self, operation: str, failures: int, error: str) -> None:
        """An operation failed so many times elsewhere, with the same settings."""
        breaker = self._breakers[operation]
        with suppress(Unavailable):  # where it was half-open, that was the one to try it
            breaker.enter()
        for _ in range(failures):
            breaker.failed(error)

    def settle(self) -> None:
        """All went well elsewhere."""
        for breaker in self._breakers.values():
            breaker.succeeded()

    def ping(self) -> None:
        """Ask the cheapest question there is: raises where the registry is not there."""
        self._ask("ping", "GET", "config", fields.level)

    def subjects(self) -> tuple[str, ...]:
        """Every subject."""
        return self._ask("subjects", "GET", "subjects", fields.names)

    def schema(self, number: int) -> Schema | None:
        """The schema with this id, or None where the registry has none."""
        try:
            return self._ask("schema", "GET", f"schemas/ids/{number}", from_answer)
        except Absent:
            return None

    def schema_of_guid(self, guid: str) -> Schema | None:
        """The schema with this GUID, or None; raises `NoSuchPath` where the registry cannot be asked so."""
        try:
            return self._ask("schema", "GET", f"schemas/guids/{guid}", from_answer)
        except Absent:
            return None

    def places(self, number: int) -> tuple[tuple[str, int], ...]:
        """The (subject, version) pairs where this id stands."""
        try:
            return self._ask("schema", "GET", f"schemas/ids/{number}/versions", fields.places)
        except Absent:
            return ()

    def history(self, subject: str) -> tuple[Version, ...]:
        """All versions of a subject, oldest first; none where it does not exist."""
        try:
            numbers = self._ask("versions", "GET", f"subjects/{_quoted(subject)}/versions", fields.numbers)
        except Absent:
            return ()
        found = (self.version(subject, number) for number in numbers)
        return tuple(each for each in found if each is not None)

    def version(self, subject: str, number: int) -> Version | None:
        """One version of a subject."""
        try:
            return self._ask("versions", "GET", f"subjects/{_quoted(subject)}/versions/{number}", fields.version)
        except Absent:
            return None

    def lookup(self, subject: str, schema: Schema) -> tuple[int, int] | None:
        """The (version, id) under which the registry itself finds this schema in a subject, or None."""
        try:
            return self._ask("lookup", "POST", f"subjects/{_quoted(subject)}", fields.place, body=schema.body())
        except Absent:
            return None

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema and return its id; one that is there already keeps its version and id."""
        try:
            return self._ask(
                "register", "POST", f"subjects/{_quoted(subject)}/versions", fields.schema_id, body=schema.body()
            )
        except Absent as error:
            raise Refused(
                f'{self.title}: cannot register a schema in "{subject}": {error}: is a reference of it missing there?'
            ) from error

    def compatibility(self, subject: str) -> str:
        """The level in force for a subject: its own, or else the registry's."""
        try:
            return self._ask("compatibility", "GET", f"config/{_quoted(subject)}?defaultToGlobal=true", fields.level)
        except Absent:
            return self._ask("compatibility", "GET", "config", fields.level)

    def set_compatibility(self, subject: str, level: str) -> None:
        """Set a subject's own level; the subject need not have a version yet."""
        try:
            self._ask("compatibility", "PUT", f"config/{_quoted(subject)}", bool, body={"compatibility": level})
        except Absent as error:
            raise Refused(
                f'{self.title}: cannot set the compatibility of subject "{subject}" to {level}: {error}: '
                "create the subject there first"
            ) from error

    def _ask(
        self, operation: str, method: str, path: str, read: Callable[[Any], T], *, body: dict[str, Any] | None = None
    ) -> T:
        """One question, asked again a few times where that may help, and its answer as `read` understands it."""
        request = self._http.build_request(
            method, path, json=body, headers={"Content-Type": CONTENT_TYPE} if body else None
        )
        for attempt in range(1, self.settings.attempts):
            try:
                return self._understood(request, self._attempt(operation, request), read)
            except Unavailable:
                longest = min(FIRST_PAUSE_SECONDS * 2**attempt, LONGEST_PAUSE_SECONDS)
                self._pause(random.uniform(longest / 2, longest))  # noqa: S311 - spreads load, hides nothing
        return self._understood(request, self._attempt(operation, request), read)

    def _understood(self, request: httpx.Request, answer: Any, read: Callable[[Any], T]) -> T:
        try:
            return read(answer)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refused(
                f"{self._where(request)}: answered {str(answer)[:120]!r}, which no registry says: is this a registry's "
                "address?"
            ) from error

    def _where(self, request: httpx.Request) -> str:
        return f"{self.title}: {request.method} {request.url.raw_path.decode()}"

    def _attempt(self, operation: str, request: httpx.Request) -> Any:
        breaker = self._breakers[operation]
        breaker.enter()
        where = self._where(request)
        try:
            answer = answered(where, self._sent(where, request))
        except (Refused, Absent):
            breaker.succeeded()  # it did answer
            raise
        except BaseException as error:
            breaker.failed(str(error) or type(error).__name__)
            if isinstance(error, Unavailable):
                failures = breaker.snapshot().failures
                error.details = {"registry": self.settings.name, "operation": operation, "failures": failures}
            raise
        breaker.succeeded()
        return answer

    def _sent(self, where: str, request: httpx.Request) -> httpx.Response:
        """The whole response. httpx limits the wait for each piece; one that drips or does not end is cut off here."""
        until = self._clock() + self.settings.connect_seconds + self.settings.answer_seconds
        try:
            response = self._http.send(request, stream=True)
            try:
                _refuse_encoded(where, response)
                pieces, size = [], 0
                for piece in response.iter_raw():
                    pieces.append(piece)
                    size += len(piece)
                    if size > LARGEST_ANSWER:
                        raise Refused(
                            f"{where}: its answer has more than {LARGEST_ANSWER:,} bytes: is this a registry's address?"
                        )
                    if self._clock() > until:
                        raise httpx.ReadTimeout("the answer does not end")
            finally:
                response.close()
            return httpx.Response(response.status_code, headers=response.headers, content=b"".join(pieces))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            kind, meaning = meaning_of_exception(error)
            # What httpx says of a request that it does not send may quote a header, and one of them is a secret.
            said = "" if isinstance(error, httpx.LocalProtocolError) else str(error)
            raise kind(f"{where}: {said or type(error).__name__}: {meaning}") from None


def _refuse_encoded(where: str, response: httpx.Response) -> None:
    """A small compressed answer can be a thousand times as large in memory; none was asked for."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise Refused(
            f"{where}: its answer is encoded as {encoding[:40]!r} though `identity` was asked for: does a proxy in "
            "between compress?"
        )


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _credentials(settings: RegistrySettings) -> httpx.Auth | None:
    if settings.username is None:
        return None
    return httpx.BasicAuth(settings.username, settings.password or "")


def _bearer(settings: RegistrySettings) -> dict[str, str]:
    if settings.token is None:
        return {}
    token = settings.token.strip()  # a line's end behind it came from the file that it was made of
    if not token or not token.isascii() or not token.isprintable():
        raise Refused(
            f'registry of "{settings.name}" ({settings.address}): its token is empty or has characters that no HTTP '
            "header takes: does `token` point to the right secret?"
        )
    return {"Authorization": f"Bearer {token}"}


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key, password="")  # or OpenSSL would ask for one
    except OSError as error:  # ssl.SSLError is one too
        raise Refused(
            f'registry of "{settings.name}" ({settings.address}): cannot load {", ".join(settings.files)}: {error}: '
            "are these PEM files there and readable on this machine?"
        ) from error
    return context
