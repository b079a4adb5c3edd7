"""JSON that others wrote is plain values or a ValueError, whatever it is."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.jsontext import parsed, whole, words
from tests.unit.hostile_json import texts


def leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from leaves(each)
    else:
        yield found


def test_a_hostile_text_is_plain_values_or_a_value_error() -> None:
    taken = refused = 0
    for text in texts(2000, seed=7):
        for given in (text, text.encode(errors="surrogatepass")):
            try:
                found = parsed(given)
            except ValueError:
                refused += 1
                continue
            taken += 1
            assert all(math.isfinite(each) for each in leaves(found) if isinstance(each, float))
    assert taken > 500
    assert refused > 500


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "[" * 100_000, "9" * 5000, "\udcff"]
)
def test_what_python_takes_and_json_does_not_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parsed(text.encode(errors="surrogateescape"))


def test_what_is_json_is_taken_as_it_is() -> None:
    good = {"a": [1, -2.5, 1e300, True, None, "é\n"], "b": {"c": {}}}
    assert parsed(json.dumps(good)) == good


@pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 11, [], 10**4000])
def test_a_whole_number_is_one_within_its_bounds(value: object) -> None:
    assert whole(10, 0, 10) == 10
    with pytest.raises(ValueError, match="no whole number from 0 to 10"):
        whole(value, 0, 10)


@pytest.mark.parametrize("value", [1, None, ["a"], {}, b"a"])
def test_words_are_a_string(value: object) -> None:
    assert words("a") == "a"
    with pytest.raises(ValueError, match="is no string"):
        words(value)
