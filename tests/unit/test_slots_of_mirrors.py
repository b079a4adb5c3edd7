"""However many mirrors hang, one slot is left for the one that does not; a mirror alone has all cores."""

from __future__ import annotations

import pytest

from barnabas.slots import MOST_MIRRORS, lanes_of, slots_for

CORES = [1, 2, 3, 4, 8, 16, 64]


@pytest.mark.parametrize("cores", CORES)
def test_all_mirrors_but_one_may_hang(cores: int) -> None:
    for mirrors in range(2, MOST_MIRRORS + 1):
        slots = slots_for(mirrors, cores)
        lanes = lanes_of(slots, mirrors, cores)
        assert lanes >= 1 and (mirrors - 1) * lanes < slots <= max(4 * cores, MOST_MIRRORS)


@pytest.mark.parametrize("cores", CORES)
def test_a_mirror_alone_and_two_have_a_lane_for_each_core(cores: int) -> None:
    for mirrors in (1, 2):
        assert slots_for(mirrors, cores) == 2 * cores
        assert lanes_of(2 * cores, mirrors, cores) == cores


@pytest.mark.parametrize(("slots", "mirrors", "lanes"), [(1, 1, 1), (1, 3, 1), (4, 1, 4), (4, 2, 3), (4, 3, 1)])
def test_a_master_that_the_operator_chose_keeps_the_rule_where_it_can(slots: int, mirrors: int, lanes: int) -> None:
    assert lanes_of(slots, mirrors, slots) == lanes
