"""What Barnabas reads from a registry's answers; each raises where an answer holds something else."""

from typing import Any, Final

from barnabas import jsontext
from barnabas.schemas.schema import Version, from_answer, version_number

LARGEST_ID: Final = 2**31 - 1


def schema_id(answer: dict[str, Any]) -> int:
    return jsontext.whole(answer["id"], 0, LARGEST_ID)  # what fits the four bytes in a record


def place(answer: dict[str, Any]) -> tuple[int, int]:
    return version_number(answer["version"]), schema_id(answer)


def places(answer: list[dict[str, Any]]) -> tuple[tuple[str, int], ...]:
    return tuple((jsontext.words(each["subject"]), version_number(each["version"])) for each in answer)


def version(answer: dict[str, Any]) -> Version:
    return Version(jsontext.words(answer["subject"]), *place(answer), from_answer(answer))


def names(answer: list[Any]) -> tuple[str, ...]:
    return tuple(map(jsontext.words, _list(answer)))


def numbers(answer: list[Any]) -> list[int]:
    return sorted(map(version_number, _list(answer)))


def _list(answer: list[Any]) -> list[Any]:
    if not isinstance(answer, list):
        raise TypeError("no list")
    return answer


def level(answer: dict[str, Any]) -> str:
    return jsontext.words(answer["compatibilityLevel"])
