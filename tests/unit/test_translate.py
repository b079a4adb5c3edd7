"""The translation of whole columns does what a simple one, record by record, does."""

import random
import uuid
from typing import Any

import pyarrow as pa
import pytest

from barnabas.errors import Unavailable
from barnabas.schemas.resolver import Resolver, Unresolved
from barnabas.schemas.settings import Carried, RegistrySettings, SchemaRules, TopicRoute, TranslationSettings
from barnabas.schemas.wire import prefixed, schema_id
from barnabas.worker.translate import Translated, Translator

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
REGISTRY = RegistrySettings("nowhere", "http://127.0.0.1:9")
GUID = uuid.UUID(int=7)
STRANGE = uuid.UUID(int=8)
UNKNOWN, MISPLACED = 13, 17
ROUTES = (0, 1, 2**31, 2**32 - 1)  # a route number is any that has 32 bits


def becomes(number: int, route: int) -> int:
    return (number * 1000 + route) % 2**31


class Table(Resolver):
    """Resolves from arithmetic: see `becomes`."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str, int | str]] = []

    def destination_id(self, route: int, side: str, number: int) -> int | Unresolved:
        self.asked.append((route, side, number))
        if number in (UNKNOWN, MISPLACED):
            return Unresolved(f"id {number}", known=number == MISPLACED)
        return becomes(number, route)

    def bring_guid(self, route: int, side: str, guid: str) -> Unresolved | None:
        self.asked.append((route, side, guid))
        return Unresolved(f"guid {guid}", known=False) if guid == str(STRANGE) else None


def translator(key: Carried = "none", value: Carried = "registry") -> tuple[Translator, Table]:
    routes = tuple(TopicRoute(n, f"t{n}", f"u{n}") for n in ROUTES)
    settings = TranslationSettings("m", REGISTRY, REGISTRY, SchemaRules(key=key, value=value), routes)
    table = Table()
    return Translator(settings, table), table


def translate(ours: Translator, values: Any, routes: Any = 0, keys: Any = None, headers: Any = None) -> Translated:
    keys = pa.nulls(len(values), pa.binary()) if keys is None else keys
    return ours.translate(routes=routes, keys=keys, values=values, headers=headers)


def simply(payload: bytes | None, route: int, carried: Carried) -> tuple[bytes | None, bool]:
    """What the payload becomes and whether it is bad, one at a time."""
    if payload is None or carried == "none":
        return payload, False
    number = schema_id(payload)
    if number is None:
        return payload, carried == "registry"
    if number in (UNKNOWN, MISPLACED):
        return payload, True
    return prefixed(becomes(number, route), payload[5:]), False


def some_payload(dice: random.Random) -> bytes | None:
    return dice.choice(
        [
            None,
            b"",
            b"\x00",
            b"\x00\x00\x00\x01",
            b"\x01" + dice.randbytes(6),
            dice.randbytes(dice.randrange(9)),
            prefixed(UNKNOWN, b"x"),
            prefixed(MISPLACED, b""),
            *(prefixed(dice.randrange(1, 6), dice.randbytes(dice.randrange(300))) for _ in range(4)),
        ]
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_random_columns_and_slices_come_out_as_record_by_record(seed: int, kind: Any) -> None:
    dice = random.Random(seed)
    length = dice.choice([0, 1, 7, 200])
    keys, values = ([some_payload(dice) for _ in range(length)] for _ in range(2))
    routes = [dice.choice(ROUTES) for _ in range(length)]
    carried: tuple[Carried, Carried] = (
        dice.choice(["registry", "none", "auto"]),
        dice.choice(["registry", "none", "auto"]),
    )
    first = dice.randrange(length + 1)
    count = dice.randrange(length - first + 1)
    part = slice(first, first + count)
    ours, _ = translator(*carried)
    given = [pa.array(each, kind).slice(first, count) for each in (keys, values)]
    done = translate(ours, given[1], pa.array(routes, pa.int64()).slice(first, count), given[0])

    expected = [
        tuple(simply(payload, route, how) for payload, how in zip(both, carried, strict=True))
        for *both, route in zip(keys[part], values[part], routes[part], strict=True)
    ]
    bad = [at for at, sides in enumerate(expected) if any(wrong for _, wrong in sides)]
    for at in bad:
        expected[at] = ((keys[part][at], True), (values[part][at], True))
    assert list(done.reasons()) == bad
    assert done.keys.to_pylist() == [key for (key, _), _ in expected]
    assert done.values.to_pylist() == [value for _, (value, _) in expected]
    for column in (done.keys, done.values):
        column.validate(full=True)
        assert column.type == kind
    assert [each.to_pylist() for each in given] == [keys[part], values[part]]


def test_every_distinct_id_is_asked_for_once_per_route() -> None:
    ours, table = translator()
    values = pa.array([prefixed(n % 3 + 1, b"x") for n in range(600)])
    translate(ours, values, [n % 2 for n in range(600)])
    assert sorted(table.asked) == [(route, "value", number) for route in (0, 1) for number in (1, 2, 3)]


def test_the_largest_ids_and_the_last_byte_of_a_column() -> None:
    ours, _ = translator()
    ours._resolver.destination_id = lambda *_: 2**31 - 1  # type: ignore[method-assign]
    done = translate(ours, pa.array([prefixed(2**32 - 1, b""), prefixed(2**31 - 1, b"")]), 3)
    assert done.values.to_pylist() == [prefixed(2**31 - 1, b"")] * 2


def test_nothing_is_copied_where_the_ids_are_the_same_at_both_ends() -> None:
    ours, _ = translator()
    ours._resolver.destination_id = lambda route, side, number: number  # type: ignore[method-assign]
    values = pa.array([prefixed(1, b"x"), None, prefixed(2, b"")])
    assert translate(ours, values).values is values


def test_reasons_say_what_is_wrong_and_on_which_side() -> None:
    ours, _ = translator(key="registry")
    keys = pa.array([b"\x00", prefixed(1, b"k"), prefixed(1, b"k"), prefixed(1, b"k"), prefixed(UNKNOWN, b"")])
    values = pa.array([prefixed(1, b"v"), b"\x07plain", b"", prefixed(UNKNOWN, b"v"), b""])
    done = translate(ours, values, keys=keys)
    assert done.reasons() == {
        0: "the key is too short to hold a schema id",
        1: "the value does not start with the magic byte 0 of a schema id",
        2: "the value is too short to hold a schema id",
        3: f"value: id {UNKNOWN}",
        4: f"key: id {UNKNOWN}",
    }
    assert done.keys.to_pylist() == keys.to_pylist()
    assert done.values.to_pylist() == values.to_pylist()


def test_an_idle_translator_and_an_all_null_column_ask_nobody() -> None:
    ours, table = translator(value="none")
    assert ours.idle
    values = pa.array([b"anything"])
    assert translate(ours, values).values is values
    ours, table = translator()
    assert not ours.idle
    nulls = pa.nulls(3, pa.binary())
    assert translate(ours, nulls).bad == ()
    assert table.asked == []


def test_a_column_that_is_not_binary_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="this one is string"):
        translate(translator()[0], pa.array(["text!"]))


def header(name: str, value: bytes | None) -> dict[str, Any]:
    return {"key": name, "value": value}


def test_records_with_a_guid_in_a_header_pass_as_they_are_once_the_schema_is_there() -> None:
    ours, table = translator(key="registry")
    by_guid = header("__value_schema_id", b"\x01" + GUID.bytes)
    rows = [
        [header("other", b"")],  # cut off by the slice
        [header("trace", b"1"), by_guid],
        [],
        [header("__key_schema_id", b"\x01" + GUID.bytes), by_guid],
        [header("__value_schema_id", b"\x01" + STRANGE.bytes)],
        [header("__value_schema_id", b"\x00\x00\x00\x00\x01")],
        [header("__value_schema_id", None)],
    ]
    headers = pa.array(rows, HEADERS).slice(1)
    values = pa.array([b"plain", prefixed(2, b"v"), b"plain", b"plain", prefixed(2, b"v"), prefixed(2, b"v")])
    keys = pa.array([None, None, b"key", None, None, None], pa.binary())
    done = translate(ours, values, [1, 1, 2, 1, 1, 1], keys, headers)
    assert done.reasons() == {
        3: f"header __value_schema_id: guid {STRANGE}",
        4: "header __value_schema_id does not hold a schema GUID",
        5: "header __value_schema_id does not hold a schema GUID",
    }
    assert done.values.to_pylist() == [b"plain", prefixed(2001, b"v"), b"plain", *values.to_pylist()[3:]]
    assert done.keys.to_pylist() == keys.to_pylist()
    guids = [each for each in table.asked if isinstance(each[2], str)]
    assert sorted(guids) == sorted(
        [(2, "key", str(GUID)), (1, "value", str(GUID)), (2, "value", str(GUID)), (1, "value", str(STRANGE))]
    )


def test_auto_leaves_headers_it_does_not_know() -> None:
    ours, _ = translator(value="auto")
    rows = [[header("__value_schema_id", b"\x01" + STRANGE.bytes)], [header("__value_schema_id", b"junk")]]
    done = translate(ours, pa.array([prefixed(2, b"v"), prefixed(2, b"v")]), headers=pa.array(rows, HEADERS))
    assert done.bad == ()
    assert done.values.to_pylist() == [prefixed(2, b"v"), prefixed(2000, b"v")]


def test_auto_takes_an_id_that_no_registry_gives_out_for_bytes_and_any_other_unknown_id_for_a_bad_record() -> None:
    ours, _ = translator(key="auto", value="auto")
    ours._resolver.destination_id = lambda *_: Unresolved("unknown", known=False)  # type: ignore[method-assign]
    numbers = [0, 2**31, 2**32 - 1, 1, 2**31 - 1]
    payloads = [*(prefixed(number, b"rest") for number in numbers), b"\x01\x00\x00\x00\x01x", b"\x00\x00", b""]
    done = translate(ours, pa.array(payloads))
    assert done.reasons() == dict.fromkeys((3, 4), "value: unknown")
    assert done.values.to_pylist() == payloads
    done = translate(ours, pa.nulls(len(payloads), pa.binary()), keys=pa.array(payloads))
    assert done.reasons() == dict.fromkeys((3, 4), "key: unknown")


class Answers(Resolver):
    """A real resolver whose schemas are brought by a list of answers instead of two registries."""

    def __init__(self, settings: TranslationSettings, clock: Any) -> None:
        super().__init__(settings, clock=clock)
        self.answers: list[int | Unresolved | Exception] = []

    def _bring_id(self, route: int, side: str, number: int) -> int | Unresolved:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_what_is_known_is_kept_what_is_unknown_is_asked_again_and_an_outage_forgets_all() -> None:
    now = [0.0]
    settings = TranslationSettings(
        "m", REGISTRY, REGISTRY, SchemaRules(), (TopicRoute(0, "a", "b"),), reask_seconds=10.0
    )
    resolver = Answers(settings, lambda: now[0])
    unknown = Unresolved("unknown", known=False)
    resolver.answers = [1, unknown, 2, Unavailable("away"), 3]
    assert [resolver.destination_id(0, "value", 7) for _ in range(2)] == [1, 1]
    assert [resolver.destination_id(0, "value", 8) for _ in range(2)] == [unknown, unknown]
    now[0] = 9.9
    assert resolver.destination_id(0, "value", 8) is unknown
    now[0] = 10.0
    assert resolver.destination_id(0, "value", 8) == 2
    with pytest.raises(Unavailable):
        resolver.destination_id(0, "value", 9)
    assert resolver.destination_id(0, "value", 7) == 3
    assert resolver.answers == []
    resolver.close()
