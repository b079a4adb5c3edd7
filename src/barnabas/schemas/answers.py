"""What a registry's answers and httpx's errors mean to Barnabas: one table for each.

Registries answer errors with `{"error_code": 40403, "message": "Schema not found"}`. The message is the
registry's own and is always passed on.
"""

from typing import Any, Final

import httpx

from barnabas import jsontext
from barnabas.errors import BarnabasError, Refused, Unavailable

LONGEST_WORDS: Final = 200  # of a registry's own, in an error


class Absent(LookupError):  # noqa: N818 - an answer, not an error
    """The registry knows the question and has no such subject, version, schema or level."""


class NoSuchPath(Refused):
    """The registry does not know the question at all."""


class Conflict(Refused):
    """What is asked for does not go with what stands there, or somebody else did the same at this moment."""


# Subject, version, schema, subject-level compatibility. Any other 404 says that the address is wrong,
# and must not be taken for "no such schema": good records would be thought bad.
ABSENT_CODES: Final = frozenset({40401, 40402, 40403, 40408})

STATUSES: Final[dict[int, tuple[type[BarnabasError], str]]] = {
    401: (  # retried like a broker's: a password may be rotating, and is read again for each epoch
        Unavailable,
        "it does not accept these credentials: are this registry's username and password, or token, right?",
    ),
    403: (Refused, "these credentials may not do this: a source needs read, a destination also write"),
    404: (NoSuchPath, "nothing answers there: is the registry's url complete? Apicurio's ends in /apis/ccompat/v7"),
    405: (
        NoSuchPath,
        "it does not speak this API: is the registry's url complete? Apicurio's ends in /apis/ccompat/v7",
    ),
    408: (Unavailable, "it gave up waiting"),
    409: (Conflict, "incompatible with what stands there: remove what is in the way, or set compatibility: NONE"),
    422: (Refused, "it does not accept the schema or the level"),
    423: (Unavailable, "it is locked for now"),
    425: (Unavailable, "it wants to be asked later"),
    429: (Unavailable, "it is asked too often"),
}
SERVER_ERROR: Final = (Unavailable, "it failed itself")
REDIRECTION: Final = (Refused, "it points elsewhere: use that address as the registry's url")
OTHER: Final = (Refused, "it does not accept the request")

EXCEPTIONS: Final[dict[type[Exception], tuple[type[BarnabasError], str]]] = {
    httpx.UnsupportedProtocol: (Refused, "the url must start with http:// or https://"),
    httpx.InvalidURL: (Refused, "the url is not one"),
    httpx.ConnectTimeout: (Unavailable, "no connection in time: is it running, and is a firewall in between?"),
    httpx.TimeoutException: (Unavailable, "no answer in time"),
    httpx.ConnectError: (Unavailable, "no connection: is it running, and does it want https?"),
    httpx.ProxyError: (Unavailable, "the proxy in between refuses"),
    httpx.RequestError: (Unavailable, "the connection broke"),
}


def meaning_of_status(status: int) -> tuple[type[BarnabasError], str]:
    """The error a status stands for, and what it probably means."""
    if status in STATUSES:
        return STATUSES[status]
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return SERVER_ERROR
    return REDIRECTION if status < httpx.codes.BAD_REQUEST else OTHER


def meaning_of_exception(error: Exception) -> tuple[type[BarnabasError], str]:
    """The same for an exception of httpx: the nearest ancestor in the table."""
    return next(EXCEPTIONS[kind] for kind in type(error).__mro__ if kind in EXCEPTIONS)


def answered(where: str, response: httpx.Response) -> Any:
    """The parsed answer of a response; raises `Absent`, `Refused` or `Unavailable` where there is none.

    `where` starts the error sentence: which registry, which request.
    """
    parsed = _parsed(response)
    if response.is_success:
        if parsed is None:
            raise Refused(f"{where}: answered {response.text[:120]!r}, which is no JSON: is this a registry's address?")
        return parsed
    code, words = _words(parsed, response)
    if response.status_code == httpx.codes.NOT_FOUND and code in ABSENT_CODES:
        raise Absent(words)
    kind, meaning = meaning_of_status(response.status_code)
    raise kind(f"{where}: answered {response.status_code} {words!r}: {meaning}")


def _parsed(response: httpx.Response) -> Any:
    try:
        return jsontext.parsed(response.content)
    except ValueError:
        return None


def _words(parsed: Any, response: httpx.Response) -> tuple[int | None, str]:
    if isinstance(parsed, dict):
        code = parsed.get("error_code")
        message = parsed.get("message") or parsed.get("detail") or parsed.get("title") or response.reason_phrase
        return (code if isinstance(code, int) else None), str(message)[:LONGEST_WORDS]
    return None, (response.headers.get("location") or response.text or response.reason_phrase)[:LONGEST_WORDS]
