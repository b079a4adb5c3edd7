"""Histories: what strict and lenient accept, what they complete and what they refuse."""

import hashlib
import itertools

import pytest

from barnabas.schemas.history import Entry, compared, described
from barnabas.schemas.settings import Mode


def history(keys: str, first_id: int = 1) -> list[Entry]:
    return [Entry(number, first_id + number, key) for number, key in enumerate(keys, start=1)]


@pytest.mark.parametrize(
    ("mode", "destination", "accepted", "missing"),
    [
        ("strict", "", True, (1, 2, 3)),
        ("strict", "A", True, (2, 3)),
        ("strict", "ABC", True, ()),
        ("strict", "ABCD", False, ()),
        ("strict", "B", False, (1, 3)),
        ("strict", "ACB", False, ()),
        ("strict", "XABC", False, ()),
        ("lenient", "XAYBZ", True, (3,)),
        ("lenient", "X", True, (1, 2, 3)),
        ("lenient", "AXC", False, (2,)),
        ("lenient", "BA", False, (3,)),
        ("ids", "CXA", True, (2,)),
    ],
)
def test_a_destination_is_accepted_or_not(mode: Mode, destination: str, accepted: bool, missing: tuple[int]) -> None:
    found = compared(mode, history("ABC"), history(destination, 100))
    assert (found.problem == "") == accepted
    assert found.missing == missing


def test_where_a_version_stands_is_the_destinations_number_and_id() -> None:
    found = compared("lenient", history("AB"), history("XAYB", 100))
    assert {number: (entry.number, entry.id) for number, entry in found.there.items()} == {1: (2, 102), 2: (4, 104)}


def test_a_schema_that_stands_twice_counts_where_it_stands_first() -> None:
    found = compared("strict", history("ABAC"), history("AAB", 100))
    assert found.problem == ""
    assert found.missing == (4,)
    assert {number: entry.id for number, entry in found.there.items()} == {1: 101, 2: 103, 3: 101}


def test_problems_name_the_versions_and_mark_what_is_equal() -> None:
    mark = {key: hashlib.sha256(key.encode()).hexdigest()[:8] for key in "ABXY"}
    assert compared("strict", history("A"), history("AXY", 100)).problem == (
        f"version 2 (id 102, {mark['X']}) of the destination is not at the source"
    )
    assert compared("lenient", history("AB"), history("B", 100)).problem == (
        f"where the source has version 1 (id 2, {mark['A']}) the destination has version 1 (id 101, {mark['B']})"
    )
    assert described(history("AB")) == f"1 (id 2, {mark['A']}), 2 (id 3, {mark['B']})"
    assert described([]) == "no version"


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_appending_what_is_missing_to_an_accepted_history_gives_the_sources_order(mode: Mode) -> None:
    source = "ABC"
    accepted = 0
    for length in range(5):
        for keys in map("".join, itertools.permutations("ABCXY", length)):
            found = compared(mode, history(source), history(keys))
            completed = keys + "".join(source[number - 1] for number in found.missing)
            ordered = "".join(key for key in completed if key in source) == source
            assert (found.problem == "") == (ordered and (mode == "lenient" or completed == source))
            accepted += found.problem == ""
    assert accepted >= 4
