"""JSON texts that somebody made to break a parser, always the same ones: from a seed."""

import json
import random
from collections.abc import Iterator
from typing import Any

ODD = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "1.5", "-1", "0", "9" * 5000, "2147483648", "true"),
    *("null", '""', '"\\ud800"', '"\\u0000\\n\\u001b[31m"', '"7"', "[]", "{}", "[" * 20_000, '{"a":' * 10_000, ""),
    *("[" * 900 + "]" * 900, '"' + "x" * 10_000 + '"', "'a'", "\x00", "[1,]", '{"id": 1, "id": 2}'),
)


def value(chance: random.Random, depth: int = 0) -> Any:
    """A plain value, or a mark that stands for one of the odd texts."""
    kind = chance.randrange(8 if depth < 4 else 4)
    if kind < 3:
        return f"ODD{chance.randrange(len(ODD))}ODD"
    if kind == 3:
        return chance.choice(["a", 1, 2**31 - 1, True, None])
    if kind < 6:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {str(number): value(chance, depth + 1) for number in range(chance.randrange(4))}


def written(given: Any) -> str:
    text = json.dumps(given)
    for number, odd in enumerate(ODD):
        text = text.replace(f'"ODD{number}ODD"', odd)
    return text


def texts(count: int, seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    yield from ODD
    for _ in range(count):
        yield written(value(chance))


def altered(good: Any, count: int, seed: int) -> Iterator[str]:
    """The good value with one part of it replaced, or left out, each time."""
    chance = random.Random(seed)
    for _ in range(count):
        copy = json.loads(json.dumps(good))
        _alter(copy, chance)
        yield written(copy)


def _alter(node: Any, chance: random.Random) -> None:
    places = list(node) if isinstance(node, dict) else list(range(len(node)))
    place = chance.choice(places)
    if isinstance(node[place], dict | list) and node[place] and chance.random() < 0.7:
        _alter(node[place], chance)
    elif chance.random() < 0.1:
        del node[place]
    else:
        node[place] = value(chance)
