"""What Spark's JVM and its workers are told, and what an operator says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.java_options import COLLECTOR, COMPILER, HUGE_PAGES, MEMORY, default_options, tunables

HEAP = "2g"
PLACE = Path("/tmp/place")
VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_our_options_come_first_so_that_the_operators_count() -> None:
    told = default_options("-Xmn64m", HEAP, PLACE, 4).split()
    assert {COLLECTOR, *MEMORY, HUGE_PAGES, *COMPILER} <= set(told)
    assert told[-1] == "-Xmn64m"


def test_another_heap_has_its_own_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not set(MEMORY) & set(default_options("", "8g", PLACE, 4).split())
    monkeypatch.setenv("_JAVA_OPTIONS", "-Xmx1g")
    assert not set(MEMORY) & set(default_options("", HEAP, PLACE, 4).split())


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_collector_of_the_operator_leaves_ours_out_and_what_only_ours_is_known_to_take(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "-XX:+UseZGC")
    told = default_options("", HEAP, PLACE, 4)
    assert COLLECTOR not in told and HUGE_PAGES not in told and MEMORY[0] not in told


@pytest.mark.parametrize("said", ["-XX:-UseTransparentHugePages", "-XX:+UseLargePages", "-XX:+UseHugeTLBFS"])
def test_what_the_operator_says_of_large_pages_counts(said: str) -> None:
    assert HUGE_PAGES not in default_options(said, HEAP, PLACE, 4)


def test_java_puts_temporary_files_where_ours_lie() -> None:
    assert f'"-Djava.io.tmpdir={PLACE}"' in default_options("", HEAP, PLACE, 4)


def test_java_keeps_its_own_place_where_the_operator_says_one_or_a_socket_would_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "tmpdir" not in default_options("", HEAP, Path("/") / ("d" * 64), 4)
    assert "tmpdir" in default_options("", HEAP, Path("/") / ("d" * 63), 4)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Djava.io.tmpdir=/elsewhere")
    assert "tmpdir" not in default_options("", HEAP, PLACE, 4)


def test_the_operators_tunables_of_glibc_stay() -> None:
    assert tunables("") == "glibc.malloc.hugetlb=1"
    assert tunables("glibc.malloc.arena_max=2") == "glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1"
    assert tunables("glibc.malloc.hugetlb=0") == "glibc.malloc.hugetlb=0"
